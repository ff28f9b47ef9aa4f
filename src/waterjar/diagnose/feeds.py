"""Which families a run can feed, and what would change it where it cannot: told from names and shapes alone.

For that no array is read but the first epoch. A family brings what is special to it as its `feeds`, a function of the
run and the family's settings that yields what is lacking; that groups and variables are there which the family and its
metrics name as their `needs` is looked at for all. What is missing for another reason (NaN, a task that was never
trained) shows when it is measured; what `gaps` finds of it is told beside.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from waterjar.errors import WaterjarError, brief
from waterjar.run.schema import REASON
from waterjar.run.shown import visible

if TYPE_CHECKING:
    from waterjar.diagnose.registry import Family
    from waterjar.run.reader import Run

_LOG = "recorder.log(..., {group}={{{of}}})"
_SNAPSHOT = 'recorder.log(..., snapshot={{"{group}": {{{of}}}}})'
_PER_SET = '"{name}": {{"test": value}}'
_HOW: Mapping[str, tuple[str, str]] = {
    "performance": (_LOG, '"accuracy": {"test": accuracy}'),
    "expert": (_LOG, '"accuracy": {"test": accuracy}'),
    "train": (_LOG, '"loss": loss'),
    "resources": (_LOG, '"seconds": seconds'),
    "features": (_SNAPSHOT, '"fc1": activations'),
    "weights": ('recorder.log(..., snapshot={{"weights": network.state_dict()}})', ""),
    "streams": (_SNAPSHOT, '"logits": logits, "collective_logits": collective_logits'),
    "examples": ('recorder.log(..., examples=waterjar.judge_examples({{"test": logits}}, {{"test": labels}}))', ""),
    "probe_samples": ('recorder.once("probe_samples", label=labels)', ""),
}
"""Group -> the line that records it, and what stands in it where no variable is asked for."""
_OF_VARIABLES = {_LOG: '"{name}": value', _SNAPSHOT: '"{name}": array'}
_PER_EVAL_SET = ("performance", "expert")


@dataclass(frozen=True)
class Lack:
    """Something without which a family, or some of its metrics, has no value."""

    what: str
    """What is lacking, as the end of "... without <metrics>: "."""
    line: str
    """The code, or words, that would change it."""
    metrics: tuple[str, ...] | None = None
    """The metrics that have no value for it, as far as that can be said; None where it is the whole family."""
    annotate: str = ""
    """Options of `waterjar annotate` that change it in a run that is recorded already; empty where nothing does."""
    is_telling: bool = True
    """Whether it is worth a line when a run is closed; `waterjar show` has all."""


@dataclass(frozen=True)
class Feed:
    """Whether a run can feed a family."""

    family: str
    title: str
    feeds: bool
    lacks: tuple[Lack, ...]


def feeds(run: Run) -> tuple[Feed, ...]:
    """Every family, and whether the run alone has something for it, with the settings that its study declares."""
    from waterjar.diagnose.registry import families  # noqa: PLC0415 - whose families bring their rules, of Lacks

    declared = _declared(run)
    found = []
    for family in families().values():
        lacks = tuple(_lacks(family, run, declared.get(family.name, {})))
        gone = {name for one in lacks for name in one.metrics or ()}
        able = all(one.metrics is not None for one in lacks) and any(
            name not in gone for name, metric in family.metrics.items() if not metric.optional
        )
        found.append(Feed(family.name, family.title, able, lacks))
    return tuple(found)


def _declared(run: Run) -> Mapping[str, Mapping[str, Any]]:
    """Family -> the settings that the run's study declares; what is wrong with them is told where they are used."""
    from waterjar.diagnose.analysis import analysis_of  # noqa: PLC0415
    from waterjar.diagnose.measuring import study_of  # noqa: PLC0415

    try:
        return analysis_of(study_of(run)).settings
    except WaterjarError:
        return {}


def _lacks(family: Family, run: Run, declared: Mapping[str, Any]) -> Iterator[Lack]:
    absent = [need for need in family.needs if not _there(run, need)]
    own: list[Lack] = []
    if family.feeds is not None:
        try:
            own = list(family.feeds(run, family.settings(declared)))
        except WaterjarError as error:  # settings that do not fit: it would refuse, in these words
            own = [Lack(str(error), "")]
    whole = [one for one in own if one.metrics is None]
    if whole or absent:
        yield from whole or [_unrecorded(absent)]
        return
    yield from own
    metrics = {name: one for name, one in family.metrics.items() if not one.optional}
    told = {name for one in own for name in one.metrics or ()}
    without: dict[tuple[str, ...], list[str]] = {}
    for name, metric in metrics.items():
        needs = tuple(need for need in metric.needs if not _chosen(family, need) and not _there(run, need))
        if needs and name not in told:
            without.setdefault(needs, []).append(name)
    if sum(map(len, without.values())) == len(metrics) and without:
        yield _unrecorded(list(dict.fromkeys(need for needs in without for need in needs)))
        return
    for needs, names in without.items():
        yield _unrecorded(needs, names, is_telling=needs == ("probe_samples/label",))
    seeds = [name for name, one in metrics.items() if one.between_seeds and name not in told]
    if seeds and len(run.seeds) == 1:
        yield Lack(f"{_few(seeds)} compare seeds", "record another seed of the same settings", (), is_telling=False)


def _chosen(family: Family, need: str) -> bool:
    """Whether settings choose what is read in the place of a need, so that the family's own rule has to tell it."""
    return family.feeds is not None and "performance" in family.needs and need.startswith(_PER_EVAL_SET)


def _there(run: Run, need: str) -> bool:
    """Whether a group, a `group/variable` or the `performance[eval_set]` was recorded; `a|b`: one of them."""
    return any(_is_there(run, part) for part in need.split("|"))


def _is_there(run: Run, need: str) -> bool:
    group, _, name = need.rstrip("]").partition("[")
    if name:
        return name in run.attributes["eval_sets"] and _is_there(run, group)
    return any(
        (key == group or key.startswith(f"{group}/")) and 0 not in node["shape"]
        for key, node in run.nodes.items()
        if node["node_type"] == "array"
    )


def _unrecorded(needs: Sequence[str], metrics: Sequence[str] | None = None, *, is_telling: bool = True) -> Lack:
    line = " and ".join(dict.fromkeys(how_to_record(need.split("|")[0]) for need in needs))
    words = " and ".join(needs).replace("|", " or ")
    labels = "--probe-labels FILE.npy" if set(needs) <= {"probe_samples", "probe_samples/label"} else ""
    return Lack(f"no {words}", line, None if metrics is None else tuple(metrics), labels, is_telling)


def how_to_record(need: str) -> str:
    """The line of a training loop that records a group, or a `group/variable`.

    >>> print(how_to_record("train/gradient_norm"))
    recorder.log(..., train={"gradient_norm": value})
    """
    group, _, name = need.partition("[")[0].partition("/")
    if group not in _HOW:
        return f'recorder.probe("{name}", value)' if group == "probes" and name else f"record /{need}"
    line, of = _HOW[group]
    if name and line in _OF_VARIABLES:
        of = (_PER_SET if group in _PER_EVAL_SET else _OF_VARIABLES[line]).format(name=name)
    return line.format(group=group, of=of)


def as_plain(found: Iterable[Feed]) -> list[dict[str, Any]]:
    """As plain data for JSON."""
    return [{**asdict(one), "lacks": [asdict(lack) for lack in one.lacks]} for one in found]


def lines_of(feed: Feed, path: object, *, telling: bool = False, named: bool = True) -> list[str]:
    """What a family lacks, a line each: what, and what would change it; of a family that is fed the `telling` alone."""
    lines = []
    for one in feed.lacks:
        if telling and not one.is_telling:
            continue
        whose = [feed.family] if named else []
        whose += [f"without {_few(one.metrics)}"] if one.metrics and feed.feeds else []
        now = f"waterjar annotate {visible(str(path))} {one.annotate}" if one.annotate else ""
        cures = " | now: ".join(part for part in (one.line, now) if part)
        who = f"{' '.join(whose)}: " if whose else ""
        lines.append(visible(f"{who}{one.what}" + (f" -> {cures}" if cures else "")))
    return lines


def _of_training(run: Run) -> list[str]:
    """What is to be said where tasks were not trained as declared; this reads the few numbers that say it."""
    from waterjar.diagnose.gaps import gaps  # noqa: PLC0415 - of the summary alone
    from waterjar.diagnose.training_order import order_note  # noqa: PLC0415
    from waterjar.run.visits import visits_by_step  # noqa: PLC0415

    trained, tasks = list(dict(visits_by_step(run).values()).values()), run.attributes["tasks"]
    never = [task for place, task in enumerate(tasks) if place not in trained and -1 not in trained and trained]
    said = [order_note([task for task in trained if task >= 0], tasks)]
    said += [f"never trained: {', '.join(never)} (log(train_task=...))"] if never else []
    return [*(visible(one) for one in said if one), *gaps(run)]


def _courses(run: Run) -> list[str]:
    """Numbers along training, which learners are compared by where there is no accuracy of tasks."""
    groups = ("performance", "monitor", "train")
    found = [key for key, node in run.nodes.items() if key.split("/")[0] in groups and _is_course(node)]
    return sorted((key for key in found if not key.endswith(REASON)), key=lambda key: groups.index(key.split("/")[0]))


def _losses(run: Run) -> list[str]:
    """Losses as commands take them by name: of one task, they may be what learners are compared by."""
    sets = list(run.attributes["eval_sets"])[:3]
    of_sets = [""] if len(sets) == 1 else [f"[{name}]" for name in sets]
    found = [key for key in _courses(run) if key.endswith("/loss")]
    return [f"{key}{one}" for key in found for one in (of_sets if key.startswith("performance/") else [""])]


def _is_course(node: Mapping[str, Any]) -> bool:
    is_array = node["node_type"] == "array" and 0 not in node["shape"]
    return is_array and {"step", "repeat"} <= set(node["dimension_names"]) <= {"step", "repeat", "eval_set"}


def _few(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def summary(run: Run) -> str:
    """What is said when a run is closed: what it feeds, and what would change it where it feeds nothing."""
    found = feeds(run)
    able = [one.family for one in found if one.feeds]
    lines = [line for one in found if one.feeds for line in lines_of(one, "RUN", telling=True)[:1]]
    lines += [line for one in found if not one.feeds for line in lines_of(one, "RUN")[:1]]
    lines = [*_of_training(run), *lines]
    if not {"continual", "rigidity"} & set(able):
        courses = _courses(run)
        able += [f"what it recorded ({_few(courses)})"] if courses else []
    elif run.attributes["progress"].get("visit", 0) == 0 and (losses := _losses(run)):
        able += [f"by name --metrics {shlex.quote(visible(','.join(losses)))}"]
    first = f"can be measured: {', '.join(able) or 'nothing'}{'. To know:' if lines else ''}"
    return "\n".join([first, *(f"  {brief(line, 300)}" for line in lines)])
