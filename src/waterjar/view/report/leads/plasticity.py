"""What happened inside the network: units that fall silent, directions that are left, and what that says.

Dormant units and a shrinking rank are signs. That plasticity was lost is said only where the ability to learn itself
was measured: epochs to fit fresh random labels, or a fresh network on the same task.
"""

from __future__ import annotations

import numpy as np

from waterjar.diagnose.labelled import reasons_of
from waterjar.diagnose.result import NEVER_REACHED
from waterjar.view.numbers import counted, number
from waterjar.view.report.leads._claims import FEW, Mean, hundredths, means_of, percent, row, seeds_of, written
from waterjar.view.report.leads._courses import Course, course, ways, which_first
from waterjar.view.report.leads._learned import constant_answers, nobody_learned
from waterjar.view.report.model import Model
from waterjar.view.results import by_cell

TITLE = "Inside the network"
ORDER = 30
FAMILY = "plasticity"
_LABELS = "random_label_epochs"
DORMANT, RANK = "dormant_units", "effective_rank"
_WHAT = {DORMANT: "The share of dormant units", RANK: "Effective rank"}
_DEAD_UNITS, _DEAD_RANK, _NEAR = 0.9, 1.5, 0.02
"""A dead network has at least this share of dormant units, at most this rank, and accuracy this near to a constant
answer's."""


def sentences(model: Model) -> list[str]:
    """Dead networks first, then units and rank from begin to end, then what is known of the ability to learn."""
    if FAMILY not in model.diagnosis.results:
        return []
    dead = _dead(model)
    inside = _inside(model, [cell for cell in model.names.values() if cell not in dead])
    able = _able(model)
    if inside and not able:
        able = ["Whether the networks can still learn was not measured."]
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
        over = " (mean over layers)" if one.sizes.get("layer", 1) > 1 else ""
        units = f"{hundredths(float(dormant[dead].mean()))} % of its units are dormant{over}"
        used = "its features have no rank"
        if np.isfinite(rank[dead]).any():
            used = f"their effective rank is {number(float(np.nanmean(rank[dead])))}"
        said[cell] = (
            f"{cell}: the network is dead at the end {seeds}. {units}, {used}, and its accuracy "
            f"({number(float(own[dead].mean()))}) is that of one constant answer."
        )
    return said


def _inside(model: Model, cells: list[str]) -> list[str]:
    found = {name: _courses(model, name, cells) for name in (DORMANT, RANK)}
    if not any(found.values()):
        return []
    if len(cells) > FEW:
        return [text for text in (_many(found[DORMANT], DORMANT), _many(found[RANK], RANK)) if text]
    said: list[str] = []
    for name, lines in found.items():
        _few(name, lines, said)
    every = [one.end for lines in found.values() for one in lines.values()]
    begin, end = (said[-1][:-2], ";") if said[-1].endswith(").") else (said[-1][:-1], " (")
    said[-1] = f"{begin}{end} {seeds_of(every)}).".replace("( ", "(")
    return said + [text for cell in cells if (text := _first(model, cell, found))]


def _courses(model: Model, metric: str, cells: list[str]) -> dict[str, Course]:
    made = {cell: course(model, FAMILY, metric, cell) for cell in cells}
    return {cell: one for cell, one in made.items() if one is not None}


def _few(name: str, found: dict[str, Course], said: list[str]) -> None:
    """Say one metric of a few learners: those that went the same way in one sentence. A layer is named once."""
    for where in dict.fromkeys(one.where for one in found.values()):

        def what(begin: str = "", where: str = where) -> str:
            named = not where or any(where in text for text in said)
            metric = _WHAT[name] if not begin else f"{_WHAT[name][0].lower()}{_WHAT[name][1:]}"
            return f"{begin}{metric}" if named else f"{begin}{metric} in {where}"

        lines = [one for one in found.values() if one.where == where]
        settled = [one for one in lines if one.end.n > 1 and not one.stays]
        for sign, verb in ((1, "rose"), (-1, "fell")):
            if own := [one for one in settled if one.sign == sign]:
                said.append(f"{what()} {verb} {ways(own, _WRITE[name])}.")
        still: dict[str, list[str]] = {}
        for one in lines:
            if one.stays:
                still.setdefault(_WRITE[name](one.end.mean), []).append(one.cell)
        if still:
            said.append(f"{what()} stays at {row([f'{value} in {row(cells)}' for value, cells in still.items()])}.")
        if lone := [one for one in lines if one.end.n == 1 and not one.stays]:
            said.append(f"{what()} went {ways(lone, _WRITE[name])}; other seeds may differ.")
        if rest := [f"{one.cell} ({_WRITE[name](one.end.mean)} at the end)" for one in settled if not one.sign]:
            said.append(f"{what('Whether ')} changed in {row(rest)} is not settled.")


def _in_per_cent(value: float) -> str:
    return f"{hundredths(value)} %"


_WRITE = {DORMANT: _in_per_cent, RANK: number}


def _first(model: Model, cell: str, found: dict[str, dict[str, Course]]) -> str:
    """Whether units and rank moved before accuracy fell: only where seeds settle it."""
    said = []
    for name in () if nobody_learned(model) else (DORMANT, RANK):
        order = which_first(model, found[name][cell], FAMILY) if cell in found[name] else None
        if order is None or not order.sign:
            continue
        when = "before" if order.sign > 0 else "after"
        said.append(
            f"In {cell}, half of the change in {'dormancy' if name == DORMANT else 'rank'} was there {when} accuracy "
            f"had lost half of what it lost in all (epoch {order.metric:.3g} against {order.accuracy:.3g}, "
            f"{counted(order.lead.n, 'seed')})."
        )
    return " ".join(said)


def _many(found: dict[str, Course], name: str) -> str:
    """Of many learners the two ends, and how many moved."""
    if not found:
        return ""
    ordered = sorted(found.values(), key=lambda one: one.end.mean, reverse=name == DORMANT)
    what = _WHAT[name]
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
    ends = [f"{_WRITE[name](one.end.mean)} ({one.cell})" for one in (ordered[0], ordered[-1])]
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
            times = f"{number(one.end.mean)} epochs to fit at the end, {number(one.begin.mean)} before"
            told = f"fresh random labels take {times}"
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
