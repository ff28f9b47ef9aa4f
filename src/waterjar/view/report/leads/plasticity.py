"""What happened inside the network: units that fall silent, directions that are left, and what that says.

Dormant units and a shrinking rank are signs. That plasticity was lost is said only where the ability to learn itself
was measured: epochs to fit fresh random labels, or a fresh network on the same task.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.over_seeds import over_seeds
from waterjar.diagnose.registry import find_metric
from waterjar.diagnose.result import NEVER_REACHED
from waterjar.view.numbers import counted, number
from waterjar.view.report.leads._claims import FEW, Mean, hundredths, means_of, percent, row, seeds_of, written
from waterjar.view.report.leads._courses import Course, course, which_first
from waterjar.view.report.leads._learned import constant_answers, nobody_learned
from waterjar.view.report.model import Model
from waterjar.view.results import by_cell

TITLE = "Inside the network"
ORDER = 30
FAMILY = "plasticity"
_LABELS = "random_label_epochs"
DORMANT, RANK, NORM = "dormant_units", "effective_rank", "feature_norm"
_DEAD_UNITS, _DEAD_RANK, _NEAR = 0.9, 1.5, 0.02
"""A dead network has at least this share of dormant units, at most this rank, and accuracy this near to a constant
answer's."""


def sentences(model: Model) -> list[str]:
    """Dead networks first, then units, rank and norm from begin to end, then what is known of the ability to learn."""
    if FAMILY not in model.diagnosis.results:
        return []
    dead = _dead(model)
    inside = _inside(model, [cell for cell in model.names.values() if cell not in dead])
    able = _able(model)
    if inside and not able:
        able = [
            "Whether the networks can still learn was not measured: epochs to fit random labels, or a fresh network on "
            "each task, would tell."
        ]
    return [*dead.values(), *inside, *able]


def _dead(model: Model) -> dict[str, str]:
    """Learner -> what to say of it, where networks answer with one class whatever they are shown: seed by seed."""
    said = {}
    accuracy = model.table[model.table["metric"] == "average_accuracy"]
    for cell, one in by_cell(model.diagnosis.results[FAMILY]):
        level = constant_answers(model, cell)[1]
        ends = {int(line.seed): line.value for line in accuracy[accuracy["cell"] == cell].itertuples()}
        dormant, rank = (one[f"{metric}_final"].values for metric in (DORMANT, RANK))
        own = np.array([ends.get(int(seed), np.nan) for seed in one["seed"].values])
        dead = (dormant >= _DEAD_UNITS) & ~(rank > _DEAD_RANK) & (own <= level + _NEAR)
        known = np.isfinite(dormant) & np.isfinite(own)
        if not dead.any():
            continue
        n = int(known.sum())
        seeds = f"in {int(dead.sum())} of {counted(n, 'seed')}" if n > 1 else "(one seed)"
        over = "Mean over layers: " if one.sizes.get("layer", 1) > 1 else ""
        units = f"{hundredths(float(dormant[dead].mean()))} % of its units are dormant{_was(model, one, DORMANT)}"
        used = "its features have no rank"
        if np.isfinite(rank[dead]).any():
            used = f"their effective rank is {number(float(np.nanmean(rank[dead])))}{_was(model, one, RANK)}"
        said[cell] = (
            f"{cell}: the network is dead at the end {seeds}. {over}{units}, {used}, and its accuracy "
            f"({number(float(own[dead].mean()))}) is that of one constant answer."
        )
    return said


def _was(model: Model, one: xr.Dataset, metric: str) -> str:
    """In brackets what it was at the first snapshot, mean over layers as it is at the end."""
    over = [name for name in one[metric].dims if name not in ("repeat", "snapshot")]
    values = one[metric].mean(over, skipna=False).transpose("repeat", "snapshot").values.astype(float)
    known = np.flatnonzero(np.isfinite(values).any(axis=0))
    if not known.size:
        return ""
    first = over_seeds(values[:, known[0]], None, model.diagnosis.confidence(FAMILY), **find_metric(metric).bounding)
    began = Mean("", first.mean, first.low, first.high, first.n)
    return f" (was {percent(began) if metric == DORMANT else written(began)})"


def _inside(model: Model, cells: list[str]) -> list[str]:
    found = {name: _courses(model, name, cells) for name in (DORMANT, RANK, NORM)}
    if not any(found.values()):
        return []
    if len(cells) > FEW:
        return [text for text in (_many(found[DORMANT], DORMANT), _many(found[RANK], RANK)) if text]
    said = []
    for cell in cells:
        own = {name: lines[cell] for name, lines in found.items() if cell in lines}
        if own:
            words = row([_words(name, one) for name, one in own.items()])
            whose = next(iter(own.values()))
            where = f"{whose.where} of {cell}" if whose.layers > 1 else cell
            said.append(f"In {where}, {words} ({seeds_of([one.end for one in own.values()])}).{_first(model, own)}")
    return said


def _courses(model: Model, metric: str, cells: list[str]) -> dict[str, Course]:
    made = {cell: course(model, FAMILY, metric, cell) for cell in cells}
    return {cell: one for cell, one in made.items() if one is not None}


def _words(name: str, one: Course) -> str:
    """One metric of one learner, from begin to end."""
    start = "at the start" if one.first_epoch == 0 else f"at epoch {one.first_epoch:g}"
    unsure = "" if one.sign or one.stays or one.end.n == 1 else "a change that these seeds do not settle"
    if name == DORMANT:
        layer = f"the units of layer {one.layer}" if one.layers == 1 and one.layer else "units"
        began = f"{percent(one.begin)} {start}" + (unsure and f"; {unsure}")
        return f"{percent(one.end)} of {layer} are dormant at the end ({began})"
    what = "effective rank" if name == RANK else "the norm of features"
    if one.stays:
        return f"{what} stays at {written(one.end)}"
    verb = {1: "rose", -1: "fell", 0: "went"}[one.sign]
    return f"{what} {verb} from {written(one.begin)} to {written(one.end)}" + (unsure and f" ({unsure})")


def _first(model: Model, own: dict[str, Course]) -> str:
    """Whether units and rank moved before accuracy fell: only where seeds settle it."""
    before: list[tuple[str, str]] = []
    after: list[tuple[str, str]] = []
    for name in () if nobody_learned(model) else (DORMANT, RANK):
        order = which_first(model, own[name], FAMILY) if name in own else None
        if order is None or not order.sign:
            continue
        word = "dormancy" if name == DORMANT else "rank"
        times = f"epoch {order.metric:.3g} against {order.accuracy:.3g}, {counted(order.lead.n, 'seed')}"
        (before if order.sign > 0 else after).append((word, times))
    said = ""
    for part, when in ((before, "before"), (after, "after")):
        if part:
            told = row([f"{word} ({times})" for word, times in part])
            said += f" Half of the change in {told} was there {when} accuracy had lost half of what it lost in all."
    return said


def _many(found: dict[str, Course], name: str) -> str:
    """Of many learners the two ends, and how many moved."""
    if not found:
        return ""
    ordered = sorted(found.values(), key=lambda one: one.end.mean, reverse=name == DORMANT)
    what = "The share of dormant units" if name == DORMANT else "Effective rank"
    if any(one.layers > 1 for one in ordered):
        what += " of the last layer"
    write = percent if name == DORMANT else written
    if all(one.stays and one.end.mean == ordered[0].end.mean for one in ordered):
        return f"{what} is {write(ordered[0].end)} in all {len(ordered)} learners, at the start and at the end."
    still = sum(one.stays for one in ordered)
    rose, fell = (sum(one.sign == sign for one in ordered if not one.stays) for sign in (1, -1))
    counts = {"rose": rose, "fell": fell, "is unchanged": still, "is not settled": len(ordered) - rose - fell - still}
    told = [f"{word} in {n}" for word, n in counts.items() if n]
    told[0] += f" of {len(ordered)} learners"
    ends = [f"{write(one.end)} ({one.cell}; {write(one.begin)} at the start)" for one in (ordered[0], ordered[-1])]
    return f"{what} {row(told)}. At the end it reaches from {ends[0]} to {ends[1]}."


def _able(model: Model) -> list[str]:
    """What was measured of the ability to learn."""
    said = []
    never = _never_fitted(model)
    for cell in model.names.values():
        one = course(model, FAMILY, _LABELS, cell)
        if cell in never:
            said.append(never[cell])
        elif one is not None:
            told = f"fresh random labels take {written(one.end)} epochs to fit at the end, {written(one.begin)} before"
            verdict = {1: "has lost plasticity", -1: "learns new labels quicker than before"}.get(
                one.sign, "is not shown to have lost plasticity"
            )
            said.append(f"{cell} {verdict}: {told} ({counted(one.end.n, 'seed')}).")
    return [*said, *_against_fresh(model)]


def _never_fitted(model: Model) -> dict[str, str]:
    """Learners that fitted random labels once, and in some seed do not any more within the epochs they were given."""
    found = {}
    for cell, one in by_cell(model.diagnosis.results[FAMILY]):
        if _LABELS not in one:
            continue
        values = one[_LABELS].transpose("repeat", "snapshot").values.astype(float)
        codes = reasons_of(one, _LABELS).transpose("repeat", "snapshot").values
        asked = np.isfinite(values) | (codes == NEVER_REACHED)
        able = asked.any(axis=1) & np.isfinite(values).any(axis=1)
        last = asked.shape[1] - 1 - asked[:, ::-1].argmax(axis=1)
        lost = able & (codes[np.arange(len(codes)), last] == NEVER_REACHED)
        if lost.any():
            found[cell] = (
                f"{cell} has lost plasticity in {int(lost.sum())} of {counted(int(able.sum()), 'seed')}: fresh random "
                "labels, which were fitted before, are not at the end within the epochs that the probe was given."
            )
    return found


def _against_fresh(model: Model) -> list[str]:
    """A network with a past beside a fresh one on the same tasks: forward transfer, where an expert was recorded."""
    lines = means_of(model, "forward_transfer")
    if not lines:
        return []
    costs_above = model.diagnosis.declared("forward_transfer").direction == "lower"  # of losses it is the other way

    def judge(one: Mean) -> str:
        if one.n < 2 or not (one.low > 0 or one.high < 0):
            return "is not shown to learn worse, or better, than a fresh network"
        return "has lost plasticity" if (one.low > 0) == costs_above else "learns better than a fresh network"

    shown = lines if len(lines) <= FEW else [*sorted(lines, key=lambda one: one.mean)][:: len(lines) - 1]
    told = "; ".join(f"{one.cell} {judge(one)} ({written(one)}, {counted(one.n, 'seed')})" for one in shown)
    more = f" (the ends of {len(lines)} learners)" if len(lines) > len(shown) else ""
    side = "above" if costs_above else "below"
    return [f"Beside a fresh network on each task (forward transfer, {side} 0 where the past costs){more}: {told}."]
