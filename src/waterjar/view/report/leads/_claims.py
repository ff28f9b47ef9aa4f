"""What may be claimed: a learner's mean with its interval, and its difference to the baseline with its p."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from waterjar.diagnose.over_seeds import OverSeeds, over_seeds
from waterjar.stats.samples import MIN_PAIRS
from waterjar.view.numbers import counted, listed, no_width, number
from waterjar.view.report.model import Model

FEW = 3
"""Learners up to which each has its own words; of more the ends are named, and the rest is counted."""
OVER_TASKS = ("forgetting", "average_accuracy")
"""What learners of tasks in a row are judged by."""
SMALL = 0.001
"""A p below it is not written out."""
Write = Callable[[float], str]
"""How a number is written."""


class Mean(NamedTuple):
    """A number over seeds."""

    cell: str
    mean: float
    low: float
    high: float
    n: int

    @property
    def above(self) -> float:
        """Below this its mean is not, as far as seeds tell; of one seed the value itself."""
        return self.mean if math.isnan(self.low) else self.low

    @property
    def below(self) -> float:
        """Above this its mean is not, as far as seeds tell; of one seed the value itself."""
        return self.mean if math.isnan(self.high) else self.high


class Difference(NamedTuple):
    """A learner less its baseline."""

    own: Mean
    other: Mean
    mean: float
    low: float
    high: float
    n: int
    p: float
    """Corrected over all that `waterjar compare` tests."""
    significant: bool
    paired: bool = True
    left_out: str = ""
    """Of pairs: which seeds count in a mean alone, for the other has no value of them."""

    @property
    def sign(self) -> int:
        """1 or -1 where the difference is shown to have that sign, else 0.

        All seeds may differ by the same amount: a t test has no scale then, and an interval of no width is clear of 0.
        """
        alike = self.n >= MIN_PAIRS and math.isnan(self.p) and no_width(self.low, self.high, 1.0)
        clear = self.significant or (alike and abs(self.mean) > 1e-12)
        return (1 if self.mean > 0 else -1) if clear else 0

    @property
    def too_few(self) -> bool:
        """Whether so few pairs show nothing, however alike they are."""
        return self.paired and 1 < self.n < MIN_PAIRS

    @property
    def equal(self) -> bool:
        """Whether there is no difference in any seed."""
        return self.n > 1 and abs(self.mean) <= 1e-12 and no_width(self.low, self.high, 1.0)


def means_of(model: Model, metric: str) -> list[Mean]:
    """Every learner that has a value of a metric."""
    rows = model.means[(model.means["metric"] == metric) & (model.means["n"] > 0)]
    return [Mean(str(one.cell), one.mean, one.low, one.high, int(one.n)) for one in rows.itertuples()]


def differences_of(model: Model, metric: str) -> list[Difference]:
    """Every learner beside its baseline, as `waterjar compare` has them; none where nothing is tested."""
    table, _ = model.compared
    known = {one.cell: one for one in means_of(model, metric)}
    rows = model.table[(model.table["metric"] == metric) & model.table["value"].notna()]
    seeds = {str(cell): {int(seed) for seed in part["seed"]} for cell, part in rows.groupby("cell")}
    found = []
    for line in table[table["metric"] == metric].itertuples() if len(table) else ():
        pair = known.get(str(line.group)), known.get(str(line.baseline))
        if line.is_baseline or pair[0] is None or pair[1] is None or not line.n_compared:
            continue
        bounds = line.difference, line.difference_low, line.difference_high
        lone = left_out(model, *((str(name), seeds.get(str(name), set())) for name in (line.group, line.baseline)))
        sure_of = int(line.n_compared), line.p_corrected, line.significant
        found.append(Difference(pair[0], pair[1], *bounds, *sure_of, paired=model.paired, left_out=lone))
    return found


def left_out(model: Model, *sides: tuple[str, set[int]]) -> str:
    """In words, the seeds that one of two learners (name, seeds with a value) has and the other lacks, of pairs."""
    if not model.paired:
        return ""
    (name, own), (base, theirs) = sides
    alone = [(name, sorted(own - theirs)), (base, sorted(theirs - own))]
    told = [f"seed{'s' * (len(more) > 1)} {listed(map(str, more))} of {who}" for who, more in alone if more]
    return f"without {row(told)}, which the other lacks" if told else ""


def valueless(model: Model, metric: str) -> list[str]:
    """Every learner without a value of a metric that others have."""
    known = {one.cell for one in means_of(model, metric)}
    return [name for name in model.names.values() if name not in known]


def moved(before: Sequence[float], after: Sequence[float], confidence: float) -> tuple[OverSeeds, int]:
    """The change of every seed over seeds, and its sign where seeds show it: 1, -1, or 0."""
    change = [b - a for a, b in zip(before, after, strict=True)]
    found = over_seeds(change, None, confidence)
    if found.n < 2:
        return found, 0
    return found, (found.low > 0) - (found.high < 0)


def written(one: Mean, write: Write = number, unit: str = "") -> str:
    """A mean and its interval: "0.20 [0.19, 0.21]"; where all seeds agree, or there is one, the number alone.

    >>> written(Mean("a", 0.2, 0.1, 0.3, 3)), written(Mean("a", 0.2, 0.2, 0.2, 3)), percent(Mean("a", 0.2, 0.1, 0.3, 3))
    ('0.200 [0.100, 0.300]', '0.200', '20 % [10, 30]')
    """
    if math.isnan(one.low) or no_width(one.low, one.high, 1.0):
        return f"{write(one.mean)}{unit}"
    return f"{write(one.mean)}{unit} [{write(one.low)}, {write(one.high)}]"


def percent(one: Mean) -> str:
    """A share and its interval in per cent."""
    return written(one, hundredths, " %")


def hundredths(value: float) -> str:
    """A share in per cent, without the sign.

    >>> hundredths(0.974), hundredths(0.0041), hundredths(-0.2)
    ('97', '0.41', '−20')
    """
    few = abs(value) < 0.095
    return (f"{100 * value:.2g}" if few else f"{100 * value:.0f}").replace("-", "−")


def row(parts: Sequence[str]) -> str:
    """Phrases in a row, as they are: "a, b and c"."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def seeds_of(lines: Sequence[Mean] | Sequence[Difference]) -> str:
    """How many seeds numbers rest on: "3 seeds", "2 to 3 seeds"."""
    counts = sorted({line.n for line in lines})
    return counted(counts[0], "seed") if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"


def sure(one: Difference) -> str:
    """How sure a difference is, for brackets: its p, and over which seeds."""
    p = "p < 0.001" if one.p < SMALL else f"p = {number(one.p)}"
    alike = "the same in every seed" if one.n > 1 else ""
    said = alike if math.isnan(one.p) else p
    if one.too_few:
        pairs = f"{one.n} pairs of seeds, and at least {MIN_PAIRS} are needed"
        return ", ".join(text for text in (said, pairs, one.left_out) if text)
    return ", ".join(text for text in (said, counted(one.n, "seed"), one.left_out) if text)


def inside(sentence: str) -> str:
    """A sentence that follows a comma: one that begins with a word of ours, and no name, begins small."""
    return sentence[:1].lower() + sentence[1:] if sentence.startswith(("Of ", "Whether ")) else sentence


def against(
    found: Sequence[Difference],
    words: tuple[str, str, str],
    *,
    lower_is_better: bool,
    plural: tuple[str, str],
    write: Write = number,
    without: Sequence[str] = (),
) -> str:
    """Learners against their baseline, a sentence each: (better, worse, equal), such as "forgets less than".

    `plural` says the first two of several learners. Of more than a few the best and the worst are named, and those
    `without` a value.
    """
    if not found:
        return ""
    better = -1 if lower_is_better else 1
    if len(found) <= FEW:
        return " ".join(f"{_one(one, words, better, write)}." for one in found)
    bases = listed(dict.fromkeys(one.other.cell for one in found), 2)
    groups = [[one for one in found if one.sign == sign] for sign in (better, -better, 0)]
    alone = [word.removesuffix(" than") for word in words[:2]]
    counts = zip(groups, alone, plural, strict=False)
    said = [f"{len(part)} {single if len(part) == 1 else many}" for part, single, many in counts if part]
    equal, rest = ([one for one in groups[2] if one.equal is same] for same in (True, False))
    said += [f"{len(equal)} {'is' if len(equal) == 1 else 'are'} equal to it"] if equal else []
    said += [f"{len(rest)} {'is' if len(rest) == 1 else 'are'} not settled{_with_few(rest)}"] if rest else []
    ends = sorted(found, key=lambda one: one.own.mean, reverse=not lower_is_better)
    best, worst = (f"{one.own.cell} ({write(one.own.mean)})" for one in (ends[0], ends[-1]))
    means = {one.other.cell: one.other.mean for one in found}
    ahead = len(means) == 1 and all(better * (found[0].other.mean - one.own.mean) > 0 for one in found)
    lead = f"{bases} itself has the best mean; of the others the best is" if ahead else "The best of them is"
    lacking = f" No value: {listed(without, FEW)}." if without else ""
    base = write(found[0].other.mean)
    return (
        f"Of {len(found)} learners compared with {bases} ({base}), {row(said)}. {lead} {best}, the worst {worst}."
        f"{lacking}"
    )


def _with_few(found: Sequence[Difference]) -> str:
    """Of how many learners there are too few pairs, in brackets."""
    few = sum(one.too_few for one in found)
    return f" ({few} of them by 2 pairs of seeds, and at least {MIN_PAIRS} are needed)" if few else ""


def _one(one: Difference, words: tuple[str, str, str], better: int, write: Write) -> str:
    name, base = one.own.cell, one.other.cell
    if one.n < 2:
        own, other = write(one.own.mean), write(one.other.mean)
        return f"With one seed, {name} {words[2]} {own}, {base} {other}; what other seeds would give is not known"
    if one.equal:
        seeds = ", ".join(text for text in (counted(one.n, "seed"), one.left_out) if text)
        return f"{name} and {base} are equal in each of {seeds}: {name} {words[2]} {write(one.own.mean)}"
    if one.sign == 0:
        open_end = written(Mean("", one.mean, one.low, one.high, one.n), write)
        return f"Whether {name} {words[0]} {base} is not settled: the difference is {open_end} ({sure(one)})"
    verb = words[0] if one.sign == better else words[1]
    low, high = sorted((one.sign * one.low, one.sign * one.high))
    by = written(Mean("", abs(one.mean), low, high, one.n), write)
    return f"{name} {verb} {base}, by {by} ({sure(one)})"
