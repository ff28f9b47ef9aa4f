"""The Einstellung experiment in small: what `make demo` runs. Ends with the index, what it means, and a report."""

import sys
from pathlib import Path

from waterjar.cli.main import app

HERE = Path(__file__).parent
OUT = Path("demo-out")


def main() -> None:
    app(["run", str(HERE / "demo.yaml"), "--out", str(OUT)], standalone_mode=False)
    sys.stdout.write(
        f"\nThe report, one page that opens offline: {OUT / 'report.html'}\n"
        f"More of it: waterjar ls {OUT}, waterjar diagnose {OUT} --only ad,pd,sfr,sfr_rel, waterjar compare {OUT}, "
        f"waterjar plot {OUT} --figure eri_dynamics --out dynamics.pdf\n"
    )


if __name__ == "__main__":
    main()
