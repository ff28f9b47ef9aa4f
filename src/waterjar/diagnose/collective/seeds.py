"""The seeds of a cell as a deep ensemble: what each answered alone is in /outputs, and their mean costs no training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from waterjar.diagnose.collective.reading import spoken_for
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.combining import Rule
from waterjar.run.disk import refuse_taken
from waterjar.run.formats import Made
from waterjar.run.formats._logits import from_logits
from waterjar.run.identity import SEED_KEYS
from waterjar.run.reader import Run
from waterjar.run.schema import TRAIN
from waterjar.run.study import Study, create_study

Array = NDArray[Any]
HOW = (
    "expected /outputs, which Recorder.snapshot(outputs={'logits': {'test': logits}}) keeps, and the labels of the "
    "examples, which Recorder.once('examples', label={'test': labels}) does; in a study of kind einstellung, "
    "recording.examples and recording.outputs do both"
)


def ensemble_of_seeds(
    study: Study,
    out: Path,
    *,
    cells: Sequence[str] | None = None,
    eval_sets: Sequence[str] | None = None,
    rule: Rule = "mean_probability",
) -> list[Made]:
    """Make a study at `out` with one run a cell: its seeds are the streams, and `rule` makes the collective of them.

    Snapshots are those that all seeds have. A cell whose seeds have recorded no outputs is passed over, which the notes
    of the first one say; where none has, that is an error.

    Parameters
    ----------
    cells : names or ids of cells; all by default.
    eval_sets : the sets whose outputs are taken. By default of every task the one of all its samples, and `train`.
    """
    chosen = _chosen(study, cells)
    names = study.cell_names
    runs = {cell: [study.open(entry) for entry in study.cells[cell]] for cell in chosen}
    able = [cell for cell in chosen if all(_has_outputs(run) for run in runs[cell])]
    passed = [names[cell] or cell for cell in chosen if cell not in able]
    if not able:
        raise WaterjarError(f"{study.path}: no seed of {', '.join(passed)} has recorded its outputs: {HOW}")
    for cell in able:
        _check(runs[cell], _sets(runs[cell][0], eval_sets))
        refuse_taken(out / _folder(names[cell] or cell))
    create_study(out)
    made = [_made(runs[cell], out / _folder(names[cell] or cell), eval_sets, rule) for cell in able]
    if passed:
        made[0].notes.append(f"passed over, since outputs were not recorded: {', '.join(passed)}")
    return made


def _chosen(study: Study, wanted: Sequence[str] | None) -> list[str]:
    names = study.cell_names
    if not names:
        raise WaterjarError(f"{study.path} holds no runs: there is nothing to make an ensemble of")
    if wanted is None:
        return list(study.cells)
    by_name = {**{cell: cell for cell in names}, **{name: cell for cell, name in names.items()}}
    for name in wanted:
        if name not in by_name:
            raise unknown_name(f"{study.path}: cell", name, list(names.values()))
    return list(dict.fromkeys(by_name[name] for name in wanted))


def _has_outputs(run: Run) -> bool:
    return (
        "outputs/logits" in run.nodes
        and "examples/label" in run.nodes
        and bool(run.nodes["outputs/logits"]["shape"][0])
    )


def _folder(name: str) -> str:
    return "".join(letter if letter.isalnum() or letter in "-_.=" else "_" for letter in name).strip(".") or "ensemble"


def _made(runs: Sequence[Run], path: Path, eval_sets: Sequence[str] | None, rule: Rule) -> Made:
    first = runs[0]
    sets = _sets(first, eval_sets)
    shared = _shared(runs)
    labels = _static(first, 0, "label", sets)
    streams: dict[str, dict[str, Array]] = {}
    for run in runs:
        places = [run.array("outputs/snapshot").tolist().index(label) for label in shared]
        for repeat, seed in enumerate(run.seeds):
            rows = [run.row("outputs/logits", place, slice(repeat, repeat + 1))[0] for place in places]
            streams[f"seed_{seed}"] = {name: np.stack([row[at] for row in rows]) for name, at in sets.items()}
    epochs = [float(run_epoch) for run_epoch in _epochs(first, shared)]
    config = {key: value for key, value in first.config.items() if key not in SEED_KEYS}
    config["ensemble"] = {"members": [name.removeprefix("seed_") for name in streams], "rule": rule}
    from_logits(
        path,
        streams,
        collective=rule,
        labels=labels,
        epochs=epochs,
        classes=first.attributes.get("classes"),
        config=config,
    )
    notes = [f"{len(streams)} members: {', '.join(streams)}", f"sets: {', '.join(sets)}"]
    return Made(path, [*notes, "one seed alone is no ensemble"] if len(streams) == 1 else notes)


def _shared(runs: Sequence[Run]) -> list[int]:
    """Snapshots of outputs that all seeds have."""
    return sorted(set.intersection(*(set(run.array("outputs/snapshot").tolist()) for run in runs)))


def _check(runs: Sequence[Run], sets: Mapping[str, slice]) -> None:
    """Refuse seeds that cannot be joined, before anything is written."""
    if not _shared(runs):
        raise WaterjarError(f"the seeds of {runs[0].path.name} have no snapshot of their outputs in common")
    for run in runs:
        for repeat in range(len(run.seeds)):
            _check_same(run, repeat, runs[0], sets)


def _sets(run: Run, wanted: Sequence[str] | None) -> dict[str, slice]:
    """Set -> where its examples stand."""
    sizes: Mapping[str, int] = run.attributes["example_sets"]
    ends = np.cumsum(list(sizes.values())).tolist()
    places = {name: slice(end - sizes[name], end) for name, end in zip(sizes, ends, strict=True)}
    for name in wanted or ():
        if name not in places:
            raise unknown_name(f"{run.path}: set of examples", name, places)
    if wanted is not None:
        return {name: places[name] for name in wanted}
    tasks = run.attributes["eval_sets"]
    kept = spoken_for({name: int(tasks.get(name, -1)) for name in places if name != TRAIN})
    return {name: at for name, at in places.items() if name in kept or name == TRAIN}


def _static(run: Run, repeat: int, name: str, sets: Mapping[str, slice]) -> dict[str, Array]:
    whole = run.array(f"examples/{name}")[repeat]
    return {key: whole[at] for key, at in sets.items()}


def _check_same(run: Run, repeat: int, first: Run, sets: Mapping[str, slice]) -> None:
    """Refuse seeds that were asked other examples."""
    for name in ("label", "sample_index"):
        if f"examples/{name}" not in run.nodes or f"examples/{name}" not in first.nodes:
            continue
        own, other = _static(run, repeat, name, sets), _static(first, 0, name, sets)
        if run.attributes["example_sets"] != first.attributes["example_sets"] or any(
            not np.array_equal(own[key], other[key]) for key in sets
        ):
            raise WaterjarError(
                f"{run.path.name}, seed {run.seeds[repeat]}, was asked other examples than {first.path.name}, seed "
                f"{first.seeds[0]}: expected the same of all members of an ensemble"
            )


def _epochs(run: Run, labels: Sequence[int]) -> list[float]:
    known = dict(zip(run.array("outputs/snapshot").tolist(), run.array("outputs/total_epoch").tolist(), strict=True))
    return [known[label] for label in labels]
