"""All figures of a study as files: of every algorithm its own, and of algorithms side by side.

figures/{data set}/{algorithm}/learning_curves.png, plasticine_metrics_{data set}.png, ...       album(study, out)
figures/{data set}/comparison/traces_continual.png, boxes_continual.png, ...        compare_figures(diagnosis, out)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from waterjar.diagnose.analysis import Analysis
from waterjar.diagnose.registry import families, find_metric
from waterjar.diagnose.registry import metrics as all_metrics
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.errors import UnwrittenError, WaterjarError
from waterjar.run.index import Entry
from waterjar.run.study import Study
from waterjar.view import figures
from waterjar.view.figures._series import has_course
from waterjar.view.results import Source, study_of
from waterjar.view.style import house_style

FIGURES, COMPARISON = "figures", "comparison"
DRAWN = ("png", "pdf", "svg")
"""Formats of figures."""
Progress = Callable[[str, int, int], None]
"""Called with the name of a figure, how many are done, and how many there are."""
_LONGEST = 60


class Page(NamedTuple):
    """A figure of the album: the name of its file, which figure it is, and how it is set."""

    file: str
    """`{dataset}` stands for the name of the data set."""
    figure: str
    settings: Mapping[str, Any] = {}


PAGES = (
    Page("learning_curves", "learning_curves"),
    Page("loss_curves", "learning_curves", {"variable": "loss"}),
    Page("train_loss_curves", "learning_curves", {"variable": "loss", "group": "train"}),
    Page("train_accuracy_curves", "learning_curves", {"variable": "accuracy", "group": "train"}),
    Page("task_matrix", "task_matrix"),
    Page("continual_metrics_{dataset}", "metric_traces", {
        "metrics": [
            "average_accuracy", "learning_accuracy", "forgetting", "remembering", "zero_shot", "forward_transfer",
            "learning_time", "max_dip", "forgetting_rate",
        ]
    }),
    Page("plasticine_metrics_{dataset}", "plasticity_stack"),
    Page("manifold_metrics_{dataset}", "geometry_stack"),
    Page("drift_matrix", "drift_matrix"),
)  # fmt: skip
"""Of one algorithm; the two names in the middle are those of the seed's layout."""

PAIRS = (
    ("forgetting", "learning_accuracy"),
    ("effective_rank", "forward_transfer"),
    ("dormant_units", "learning_time"),
    ("capacity", "average_accuracy"),
    ("dimension", "forgetting"),
    ("sfr_rel", "masked_accuracy"),
)
"""Stability against plasticity; signs of lost plasticity, and geometry, against what they should foretell."""
MOST_PAIRS = 6


def album(
    source: Source, out: str | Path, *, kinds: Sequence[str] = ("png",), progress: Progress | None = None
) -> dict[str, Path | str]:
    """Draw every cell's figures under out/figures/{data set}/{algorithm}/, as PNG or in other formats.

    A run or a study is measured (a study through its cache); of a `Diagnosis` what it has is shown, and nothing more is
    measured. Folders go by the names in the runs' settings, made fit for a file system; cells of one method have
    folders of their own.

    Returns "{data set}/{algorithm}/{file}" -> where it is, or the reason why there is none: one figure that cannot be
    drawn costs no other.
    """
    with house_style():  # without matplotlib none can be drawn: say so once
        pass
    diagnosis = _measured(source)
    places = folders(diagnosis.study)
    todo = [
        (cell, page, kind)
        for cell in diagnosis.study.cells
        for page in PAGES
        if _is_recorded(page, diagnosis.study, cell)
        for kind in kinds
    ]
    found: dict[str, Path | str] = {}
    for done, (cell, page, kind) in enumerate(todo):
        dataset, algorithm = places[cell]
        file = f"{page.file.format(dataset=dataset)}.{kind}"
        name = f"{dataset}/{algorithm}/{file}"
        if progress is not None:
            progress(name, done, len(todo))
        target = Path(out) / FIGURES / dataset / algorithm / file
        found[name] = _drawn(page, only_cells(diagnosis, [cell]), target)
    if progress is not None and todo:
        progress("", len(todo), len(todo))
    return found


def compare_figures(
    diagnosis: Diagnosis,
    out: str | Path | None,
    metrics: Sequence[str],
    *,
    kind: str | None = None,
    pairs: Sequence[tuple[str, str]] | None = None,
    progress: Progress | None = None,
) -> dict[str, Path | str]:
    """Draw algorithms side by side, by data set: traces and boxes of every family's metrics, pairs as scatters.

    Into the folder `out`, of several data sets into one for each in it; left out, into the study's own,
    figures/{data set}/comparison. Metrics of snapshots are boxed at the last one, which is the number of the table.
    `pairs` are by default those of PAIRS among the metrics, or the first metric with each of the others. Where the
    study names its figures, the others are left out; `kind` is by default the format that it declares. Returns name ->
    file, or why there is none.
    """
    with house_style():
        pass
    diagnosis = _measured(diagnosis)
    places = folders(diagnosis.study)
    datasets = list(dict.fromkeys(dataset for dataset, _ in places.values()))
    wanted = diagnosis.analysis.figures
    every = _comparing(diagnosis, metrics, pairs)
    pages = [page for page in every if not isinstance(wanted, tuple) or page.figure in wanted]
    if not pages and isinstance(wanted, tuple):
        able = ", ".join(dict.fromkeys(page.figure for page in every))
        return {"figures": f"the study declares {', '.join(wanted) or 'none'}, and what compares cells is {able}"}
    form = kind or drawn_formats(diagnosis.analysis)[0]
    todo = [(dataset, page) for dataset in datasets for page in pages]
    found: dict[str, Path | str] = {}
    for done, (dataset, page) in enumerate(todo):
        own = Path(out) if out is not None else diagnosis.study.path / FIGURES / dataset / COMPARISON
        target = (own if out is None or len(datasets) == 1 else own / dataset) / f"{page.file}.{form}"
        name = f"{dataset}/{target.name}"
        if progress is not None:
            progress(name, done, len(todo))
        cells = [cell for cell, (where, _) in places.items() if where == dataset]
        found[name] = _drawn(page, only_cells(diagnosis, cells), target)
    if progress is not None and todo:
        progress("", len(todo), len(todo))
    return found


def _comparing(diagnosis: Diagnosis, metrics: Sequence[str], pairs: Sequence[tuple[str, str]] | None) -> list[Page]:
    names = list(dict.fromkeys(metrics))
    by_family: dict[str, list[str]] = {}
    recorded = [diagnosis.recorded.quantities[name] for name in names if name not in all_metrics()]
    curves = {(one.group, one.variable): {"variable": one.variable, "group": one.group} for one in recorded}
    names = [name for name in names if name in all_metrics()]
    for name in names:
        by_family.setdefault(find_metric(name).family, []).append(name)
    pages = [Page(f"curves_{'_'.join(about)}", "learning_curves", own) for about, own in curves.items()]
    for family, own in by_family.items():
        over_training = [name for name in own if has_course(diagnosis, name)]
        if over_training:
            pages.append(Page(f"traces_{family}", "metric_traces", {"metrics": over_training}))
        pages.append(Page(f"boxes_{family}", "metric_boxes", {"metrics": own, "snapshots": "final"}))
    if pairs is None:
        known = [pair for pair in PAIRS if set(pair) <= set(names)]
        pairs = (known or [(name, names[0]) for name in names[1:]])[:MOST_PAIRS]
    pages += [Page(f"scatter_{x}_{y}", "metric_scatter", {"x": x, "y": y, "snapshots": "final"}) for x, y in pairs]
    if len(names) > 2:
        pages.append(Page("correlations", "correlation_heatmap", {"metrics": names}))
    return pages


def _measured(source: Source) -> Diagnosis:
    """Everything, of a run or study; a diagnosis as it is: families that it has not are not to be measured now."""
    found = source if isinstance(source, Diagnosis) else diagnose(study_of(source, "an album shows runs"))
    absent = {family: not_measured(family) for family in families() if family not in found.results}
    return replace(found, passed_over={**absent, **found.passed_over})


def drawn_formats(analysis: Analysis) -> tuple[str, ...]:
    """The formats of figures that a study declares; PNG where it declares none."""
    return tuple(form for form in analysis.export_formats if form in DRAWN) or DRAWN[:1]


def not_measured(family: str) -> str:
    """Why a figure of a family that a diagnosis has not is not drawn."""
    return f"{family} was not measured"


def _is_recorded(page: Page, study: Study, cell: str) -> bool:
    """Whether a cell has what a page names of its recorded groups; a loss that was never logged is no missing figure.

    What the page that names nothing shows is not shown twice.
    """
    variable = page.settings.get("variable")
    if variable is None:
        return True
    nodes = study.open(study.cells[cell][0]).nodes
    group = page.settings.get("group", "performance")
    alone = group == "performance" and not any(
        f"performance/{name}" in nodes for name in ("accuracy", "macro_accuracy")
    )
    return f"{group}/{variable}" in nodes and not alone


def _drawn(page: Page, diagnosis: Diagnosis, target: Path) -> Path | str:
    try:
        return figures.save(figures.draw(page.figure, diagnosis, **page.settings), target)
    except UnwrittenError:
        raise
    except WaterjarError as error:  # it says why this cell cannot have this figure
        return str(error)


def only_cells(diagnosis: Diagnosis, cells: Iterable[str]) -> Diagnosis:
    """What was measured, of some cells alone. A family that has none of them was passed over."""
    wanted = list(cells)
    part = diagnosis.study.select(lambda entry: entry.cell_id in wanted)
    results, passed_over = {}, dict(diagnosis.passed_over)
    for family, result in diagnosis.results.items():
        here = [i for i, cell in enumerate(result["cell_id"].values) if str(cell) in wanted]
        if here:
            results[family] = result.isel(cell=here)
        else:
            passed_over[family] = f"{family}: nothing was measured of it"
    names = {entry.name for entry in (*part.entries, *part.probe_runs)}
    seals = {name: state for name, state in diagnosis.seals.items() if name in names}
    return replace(diagnosis, study=part, results=results, passed_over=passed_over, seals=seals)


def folders(study: Study) -> dict[str, tuple[str, str]]:
    """cell -> (data set, algorithm) as names of folders, no two cells with the same.

    The algorithm is the cell's method; cells of one method are told apart by their settings, as tables do.
    """
    found: dict[str, tuple[str, str]] = {}
    by_data: dict[str, list[Entry]] = {}
    for entry in study.entries:
        by_data.setdefault(data_name(entry), []).append(entry)
    names = {cell: name for part in by_data.values() for cell, name in Study(study.path, part).cell_names.items()}
    for cell, runs in study.cells.items():
        place = file_name(data_name(runs[0]) or "data"), file_name(names[cell])
        taken = {(one.lower(), other.lower()) for one, other in found.values()}  # some file systems do not tell apart
        if (place[0].lower(), place[1].lower()) in taken or place[1].lower() == COMPARISON:
            place = place[0], f"{place[1][: _LONGEST - 9]}-{file_name(cell)[:8]}"
        found[cell] = place
    return found


def data_name(entry: Entry) -> str:
    """The data set that a run's settings name; empty where they name none."""
    told = entry.config.get("data") or entry.config.get("dataset") or ""
    return str(told.get("name", "")) if isinstance(told, dict) else str(told)


def file_name(text: str) -> str:
    """A name fit for any file system: letters, digits and `._+=-`, not hidden, not reserved, at most 60 long.

    >>> [file_name(text) for text in ("sl+replay", "../../etc", "a b/c, lr=0.1", "", "CON")]
    ['sl+replay', '_.._etc', 'a_b_c_lr=0.1', '_', '_CON']
    """
    plain = re.sub(r"[^A-Za-z0-9._+=-]+", "_", text)
    plain = re.sub(r"^[.\s-]+", "", plain)[:_LONGEST].rstrip(".")
    reserved = re.fullmatch(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?", plain)
    return f"_{plain}" if reserved or not plain else plain
