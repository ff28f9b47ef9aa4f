"""How to read the page, for somebody who has never heard of the experiment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from waterjar.diagnose.rigidity import pattern as patterns
from waterjar.run.cells import flat
from waterjar.run.shown import shown_settings
from waterjar.view.numbers import counted, listed
from waterjar.view.report.blocks import Block, Items, Picture, Pictures
from waterjar.view.report.ends import tests_of
from waterjar.view.report.leads._pairs import seed_pairs
from waterjar.view.report.leads.rigidity import seen
from waterjar.view.report.model import Model

TITLE = "How to read this"
ORDER = 15
_FOLDER = "pictures"
_MOST, _LARGEST = 8, 256_000
"""Pictures that are shown, and bytes of each."""
_PNG = b"\x89PNG\r\n\x1a\n"
_ABOUT = {"continual": ("forgetting",), "plasticity": ("dormant_units", "effective_rank"), "drift": ("probe_accuracy",)}
"""Family -> the metrics that its words are about; of others, any."""
_WORDS = {
    "continual": (
        "Forgetting",
        "how much of an earlier task is lost while later ones are trained: 0 is nothing, 1 all of it. A network that "
        "is good at each task when it has just trained it, and bad at all but the last one at the end, forgets.",
    ),
    "plasticity": (
        "Dormant units, effective rank",
        "a unit is dormant if it is hardly ever active (a tenth of its layer's mean, or less). Effective rank is how "
        "many independent directions the features fill. Many dormant units and a small rank are signs that a network "
        "has less to learn with. Whether it does learn worse is another question, and has to be measured.",
    ),
    "drift": (
        "Representation",
        "what a layer makes of an input. A fresh linear probe asks whether a task's own classes can still be told "
        "apart by it. Untrained features may allow that, too: what counts is how much better it became by training.",
    ),
    "geometry": ("Untangling", "how easily a plane parts the classes in a layer's space: capacity, higher is easier."),
    "collective": (
        "Collective",
        "several streams that answer together: do they beat the best of them?",
    ),
    "robustness": ("Robustness", "what is left of accuracy when inputs are changed, by chance or on purpose."),
}
"""Family -> its words, in plain ones."""


def blocks(model: Model) -> list[Block]:
    """What was trained, what the network saw, and the words and signs of the page; nothing of an empty study."""
    if not model.study.entries:
        return []
    items = [("What was trained", _trained(model)), *_effect(model), *_signs(model)]
    items += [words for family, words in _WORDS.items() if _is_told(model, family)]
    shown = _pictures(model)
    return [Items(tuple(items[:1])), *shown, Items(tuple(items[1:]))] if shown else [Items(tuple(items))]


def _is_told(model: Model, family: str) -> bool:
    """Whether a family was measured, and what its words are about has a value."""
    rows = model.means[model.means["family"] == family]
    return bool((rows["n"] > 0)[rows["metric"].isin(_ABOUT.get(family, rows["metric"]))].any())


def _trained(model: Model) -> str:
    """Tasks in their order, and what is repeated with every seed."""
    entries = model.study.entries
    orders = {
        key: list(dict.fromkeys(one["train_task"].values.astype(str)))
        for key, one in model.recorded("performance").items()
        if "train_task" in one.coords
    }
    longest = max(orders.values(), key=len, default=[])
    cells, seeds = model.names, {seed for entry in entries for seed in entry.seeds}
    what = counted(len(cells), "learner")
    if len(longest) > 1:
        what += f": tasks are trained one after the other ({listed(longest, 8, longest=60)})"
        apart = [cell for cell, own in orders.items() if own != longest]
        what += (
            f"; {listed(apart, 4, longest=60)} not so: on some of them alone, in another order, or on all at once"
            * bool(apart)
        )
    repeated = "Everything was trained once, with one seed" if len(seeds) == 1 else f"There are {len(seeds)} seeds"
    return f"{what}. {repeated}. {_pairing(model)}A number on this page is a mean over seeds unless it says otherwise."


def _pairing(model: Model) -> str:
    """Whether learners share seeds with what they are compared with; nothing where they are not compared in pairs."""
    pairs = seed_pairs(model)
    if all(one.own == one.theirs for one in pairs):
        return "Learners share their seeds, so that they are compared pair by pair. " if pairs else ""
    apart = [one.cell for one in pairs if not one.shared]
    some = "Learners are compared pair by pair, over the seeds that both have. " if len(apart) < len(pairs) else ""
    who = f"{listed(apart, 4)} {'shares' if len(apart) == 1 else 'share'} no seed with the baseline"
    return some + (f"{who}, so that there are no pairs to compare. " if apart else "")


def _signs(model: Model) -> list[tuple[str, str]]:
    analysis = model.diagnosis.analysis
    level = f"{100 * analysis.confidence:g} %"
    found = [
        (
            "[low, high], n",
            f"the {level} interval: with other seeds, the mean of many would lie in there, as far as these n seeds can "
            "tell. Few seeds give wide intervals. One seed gives none, and nothing is claimed of other seeds from it; "
            "where an interval is over samples it is said, and it speaks of that one network.",
        )
    ]
    tests = tests_of(model)
    if tests:
        words = (
            f"how often chance alone would give so large a difference to the baseline ({model.baseline}), corrected "
            f"for {counted(tests, 'test')}. * where it is {analysis.test_settings.alpha:g} or less. A large p is no "
            "proof that two learners are alike: more seeds may tell them apart."
        )
        found.append(("p, *", words))
    return [*found, ("↑ ↓", "higher, or lower, is better; without an arrow neither is.")]


def _effect(model: Model) -> list[tuple[str, str]]:
    """What Einstellung is, which classes the tasks have, and whether this study found it."""
    result = model.diagnosis.results.get("rigidity")
    if result is None:
        return []
    found = seen(result)
    classical = found.count(patterns.CLASSICAL)
    learners = sum(pattern != patterns.BASELINE for pattern in found)
    verdict = (
        f"Here {classical} of {counted(learners, 'learner')} show it."
        if classical
        else "Here no learner shows it: a study may well find nothing, or the opposite of what was expected."
    )
    made = [
        (
            "The Einstellung effect",
            "who knows one solution may overlook a better one. The hypothesis: a network that has learned T1 learns T2 "
            "later, ends lower, and leans more on a shortcut (a mark on the images of some classes of T2 that gives "
            f"their label away) than a fresh network, the baseline. {verdict}",
        )
    ]
    classes = _classes(model)
    return [*made, ("The classes", classes)] if classes else made


def _classes(model: Model) -> str:
    """Which classes T1 and T2 have, of a study of the laboratory."""
    entry = model.study.entries[0]
    config: Mapping[str, Any] = flat(shown_settings(entry.config))
    first = config.get("tasks.t1_superclasses")
    names = [str(name) for name in model.study.open(entry).attributes.get("classes") or []]
    groups = list(dict.fromkeys(name.partition("/")[0] for name in names))
    if not isinstance(first, list | tuple) or not 0 < len(first) < len(groups):
        return ""
    t1, t2 = groups[: len(first)], groups[len(first) :]
    marked = config.get("tasks.shortcut_superclasses")
    many = f", {len(marked)} of which carry the shortcut" if isinstance(marked, list | tuple) else ""
    return f"T1 has {listed(t1, 8, longest=60)}; T2 has {listed(t2, 8, longest=60)}{many}."


def _pictures(model: Model) -> list[Block]:
    """The PNG files of the study's folder `pictures`: what the network saw. What is no PNG, or large, is left out."""
    shown = []
    folder = model.study.path / _FOLDER
    for file in sorted(folder.glob("*.png"))[:_MOST] if folder.is_dir() else []:
        try:
            data = file.read_bytes() if file.is_file() and file.stat().st_size <= _LARGEST else b""
        except OSError:
            data = b""
        if data.startswith(_PNG):
            shown.append(Picture(file.stem.lstrip("0123456789 ") or file.stem, data))
    caption = "What the network saw: files of the study's folder pictures, which no seal covers."
    return [Pictures("pictures", tuple(shown), caption)] if shown else []
