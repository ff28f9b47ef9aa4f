"""The Einstellung experiment in small: what `make demo` runs. Ends with the index, what it means, and a figure."""

import sys
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import waterjar
from waterjar.cli.main import app
from waterjar.view import figures
from waterjar.view.style import house_style

HERE = Path(__file__).parent
OUT = Path("demo-out")
PANELS = {"t2_shortcut_normal": "shortcut visible", "t2_shortcut_masked": "shortcut masked"}


def draw(study: waterjar.Study) -> Path:
    with house_style():
        figure = Figure(figsize=(9.5, 3.4))
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2, sharey=True)
    for ax, (eval_set, title) in zip((left, right), PANELS.items(), strict=True):
        figures.draw(
            "learning_curves", study, eval_sets=[eval_set], tasks=["t2", "joint"], over="effective_epoch", ax=ax
        )
        ax.set_title(title)
    left.get_legend().remove()
    right.set_ylabel("")
    return figures.save(figure, OUT / "learning_curves.png")


def main() -> None:
    app(["run", str(HERE / "demo.yaml"), "--out", str(OUT)], standalone_mode=False)
    app(["diagnose", str(OUT), "--only", "ad,pd,sfr,sfr_rel"], standalone_mode=False)
    study = waterjar.open_study(OUT)
    sys.stdout.write(
        f"\n{len(study)} sealed runs in {OUT}: waterjar ls {OUT}, waterjar diagnose {OUT}, waterjar compare {OUT} "
        f"--metrics ad,pd,sfr_rel\nAccuracy on the shortcut classes while T2 is learned: {draw(study)}\n"
    )


if __name__ == "__main__":
    main()
