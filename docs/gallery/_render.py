"""Draw the whole gallery and write its page: python docs/gallery/_render.py [FOLDER]."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from waterjar.view import figures

HERE = Path(__file__).parent


def scripts() -> list[Path]:
    """One script per figure."""
    return sorted(file for file in HERE.glob("*.py") if not file.name.startswith("_"))


def page() -> str:
    """README.md: every figure with its caption, its picture and its script."""
    lines = [
        "# Gallery",
        "",
        "One figure a file, in `waterjar.view.figures`; one script a figure here, on a small made-up study. From the",
        "shell: `waterjar plot DIR --figure NAME --out x.pdf` (`--list` has the names, `--figure all` draws all that a",
        "study has the data for). `figures.data(name, study)` gives the numbers behind a figure as a table.",
        "",
    ]
    for script in scripts():
        about = figures.describe(script.stem)
        lines += [
            f"## {about.title}",
            "",
            about.caption,
            "",
            f"![{about.title}]({script.stem}.png)",
            "",
            "```python",
            script.read_text().partition("\n\n")[2].strip(),
            "```",
            "",
        ]
    return "\n".join(lines)


def main() -> None:
    """Draw all, beside the scripts or into a folder."""
    sys.path.insert(0, str(HERE))
    for script in scripts():
        runpy.run_path(str(script))
    if len(sys.argv) == 1:
        (HERE / "README.md").write_text(page())


if __name__ == "__main__":
    main()
