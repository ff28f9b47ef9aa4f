"""The Einstellung experiment in small: what `make demo` runs. Ends with the index, what it means, and a report."""

import sys
from pathlib import Path

from waterjar.cli.main import app

HERE = Path(__file__).parent
OUT = Path("demo-out")


def main() -> None:
    app(["run", str(HERE / "demo.yaml"), "--out", str(OUT)], standalone_mode=False)
    app(["diagnose", str(OUT), "--only", "ad,pd,sfr,sfr_rel"], standalone_mode=False)
    sys.stdout.write(
        f"\nMore of it: waterjar ls {OUT}, waterjar compare {OUT} --metrics ad,pd,sfr_rel, "
        f"waterjar plot {OUT} --figure eri_dynamics --out dynamics.pdf\nThe report, one page that opens offline:\n"
    )
    sys.stdout.flush()
    app(["report", str(OUT)], standalone_mode=False)


if __name__ == "__main__":
    main()
