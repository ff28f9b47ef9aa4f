"""The numbers of before: three recorded studies give what they gave before the redesign.

What a study gave is in `<name>.npz`; `frozen.py` says how, `freeze.py` made it. Where the redesign renames or rewords
something on purpose, RENAMED and REWORDED say so; a number that is another on purpose stands in CHANGED, with why.
All settings are written out, so that what a study declares of its analysis changes nothing here. Numbers of geometry
that were the solver's choice are missing now (`inside_cone`, `not_unique`), wherever that is the reason and nowhere
else; tests of them leave the family that p is corrected over.

Numbers agree to 1e-12 where they were frozen on the same kind of processor. Elsewhere BLAS and LAPACK round otherwise,
and the old code itself differs by up to 1e-9 from what it gave: there the families that use them have a tolerance of
their own. WATERJAR_BEFORE names a folder where the old code's numbers were frozen on this machine; all agree to 1e-12,
but for capacities of a snapshot in which coefficients cancel: ANOTHER_WAY.
"""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import waterjar
from before.frozen import FAMILIES, MEASURED_HERE, STUDIES, cases, load, unpack
from waterjar.diagnose.registry import families, find_metric
from waterjar.diagnose.result import INSIDE_CONE, NOT_ASKED, NOT_RECORDED, NOT_UNIQUE, ONE_TASK, UNDEFINED
from waterjar.diagnose.study import Diagnosis, diagnose
from waterjar.run.schema import REASONS

_CELLS = {"cell": "cell_id", "name": "cell"}
"""Cells go by their names since; the hash stands beside. Of variables and of the table's columns."""
RENAMED: dict[str, str] = {f"{family}/{was}": now for family in FAMILIES for was, now in _CELLS.items()}
"""`family/variable` -> its name now; `family/variable@units` (or `@direction`) -> what stands there now."""
REWORDED: set[str] = {"sensitivity/reason", "compare/reason"}
"""`family/variable` of text, or `table/column` (table, compare, sensitivity), whose words are others now."""
_INSIDE = "the interval of a cell's own bounded or positive value stays inside its range; it was a t interval"
_BY_T = "ad_restricted is bounded by t below ten seeds, where the bootstrap of before covered 74 % at three"
CHANGED: dict[str, str] = {
    "rigidity/*_low": _INSIDE,
    "rigidity/*_high": _INSIDE,
    "compare/low": _INSIDE,
    "compare/high": _INSIDE,
    "sensitivity/low": _INSIDE,
    "sensitivity/high": _INSIDE,
    "rigidity/ad_restricted_bootstrap_low": _BY_T,
    "rigidity/ad_restricted_bootstrap_high": _BY_T,
    "rigidity/ad_restricted_bootstrap_note": _BY_T,
    "einstellung_paper/rigidity/pattern": "no pattern where masking leaves neither side clearly above chance "
    "(bound_by_floor), nor where nobody learned; equal delays count from six seeds on, as equal accuracies do",
    **dict.fromkeys(
        [
            f"rigidity/{name}_reason"
            for name in (
                "ad_seeds_needed",
                "ad_restricted_seeds_needed",
                "seeds_needed",
                "ad_restricted_bootstrap_low",
                "ad_restricted_bootstrap_high",
            )
        ],
        "where no seed has a value, why that is (never_reached, say), and not undefined",
    ),
    "geometry/nonunique_share": "counts draws with other anchors, no longer those with other coefficients",
    "rigidity/sentence": "says the same, names the floor, runs that ended and unequal training, that of equal delays "
    "in few seeds the spread is unknown, and that more than 200 seeds are not asked for",
}
"""What is another now on purpose -> why: `family/variable`, `study/family/variable`, `table/column`; `*` is any metric
whose range has a finite end and that is no difference to a baseline. Of all others these bounds are what they were."""

TRUER = {ONE_TASK: UNDEFINED, NOT_ASKED: NOT_RECORDED}
"""Reasons that say more than those of before did -> what was said then, of the very same missing values."""

EXACT = 1e-12
ROUNDED = {"drift": 1e-8, "geometry": 1e-8, "plasticity": 1e-8}
"""Families whose numbers go through BLAS or LAPACK."""
ROOTS = {"procrustes": 1e-7, "procrustes_matrix": 1e-7}
"""Square roots of what is zero but for rounding: 1e-16 is 1e-8 here."""
ANOTHER_WAY = {"capacity": 2e-11}
"""Draws whose coefficients are a thousand times |t| are now solved with orthogonalised points, in an order of their
own: one capacity of 144 is another in the 12th digit, of old and new code on one machine."""
MEASURED = [
    pytest.param(name, case, family, id=f"{name}-{case}-{family}")
    for name in STUDIES
    for case, of_families in cases(name).items()
    for family in of_families
]


class Before:
    """A study as it was recorded, opened by the present package, and what was once measured of it."""

    def __init__(self, name: str, folder: Any) -> None:
        self.name = name
        self.arrays, self.meta = load(name)
        self.study = waterjar.open_study(unpack(name, folder))

    @functools.cached_property
    def diagnosis(self) -> Diagnosis:
        """All families that did not refuse, with the defaults of before."""
        settings = {name: of for name, of in self.meta["defaults"].items() if name not in self.meta["passed_over"]}
        return diagnose(self.study, only=list(settings), settings=settings)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Before]:
    return functools.cache(lambda name: Before(name, tmp_path_factory.mktemp("before")))


@pytest.mark.parametrize(("name", "case", "family"), MEASURED)
def test_every_variable_is_what_it_was(name: str, case: str, family: str, before: Callable[[str], Before]) -> None:
    frozen = before(name)
    settings = frozen.meta["defaults"][family] | frozen.meta["settings"][case][family]
    measure = functools.partial(families()[family].measure, frozen.study, **settings)
    if family in frozen.meta["refused"][case]:
        with pytest.raises(waterjar.WaterjarError):
            measure()
        return
    found = list(differences(frozen, f"{case}/{family}/", measure()))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("family", FAMILIES)
def test_defaults_are_what_they_were(family: str) -> None:
    was = load(STUDIES[0])[1]["defaults"][family]
    now = json.loads(json.dumps(families()[family].defaults))
    assert {name: now.get(name, "gone") for name in was} == was


@pytest.mark.parametrize("name", STUDIES)
def test_the_table_is_what_it_was(name: str, before: Callable[[str], Before]) -> None:
    frozen = before(name)
    keys = ["family", "metric", "cell", "seed"]
    was = pd.read_csv(io.StringIO(frozen.meta["table"])).rename(columns=_CELLS).to_csv(index=False)
    found = changed_rows("table", was, frozen.diagnosis.table(), keys)
    assert not found, "\n".join(found)
    assert set(frozen.diagnosis.seals.values()) == {"sealed"}


@pytest.mark.parametrize("name", STUDIES)
def test_comparisons_are_what_they_were(name: str, before: Callable[[str], Before]) -> None:
    from waterjar.diagnose.compare import compare_cells

    frozen = before(name)
    asked = frozen.meta["compare"]
    table = compare_cells(frozen.diagnosis, asked["metrics"], baseline=asked["baseline"])
    found = changed_rows("compare", asked["csv"], table, ["metric", "group"])
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", [name for name in STUDIES if name.startswith("einstellung")])
def test_sensitivity_to_the_threshold_is_what_it_was(name: str, before: Callable[[str], Before]) -> None:
    from waterjar.diagnose.sensitivity import sensitivity

    frozen = before(name)
    asked = frozen.meta["sensitivity"]
    rest = {key: value for key, value in frozen.meta["defaults"]["rigidity"].items() if key != "threshold"}
    means, *_ = sensitivity(
        frozen.study, asked["metric"], "threshold", values=asked["values"], settings={"rigidity": rest}
    )
    found = changed_rows("sensitivity", asked["csv"], means, ["group", "setting", "value"])
    assert not found, "\n".join(found)


def differences(frozen: Before, start: str, result: xr.Dataset) -> Iterator[str]:
    """What differs between the variables of one case and family and those measured now, a line each."""
    family = start.split("/")[1]
    variables = frozen.meta["variables"]
    for key, about in variables.items():
        if not key.startswith(start):
            continue
        old = key.removeprefix(start)
        name = RENAMED.get(f"{family}/{old}", old)
        if name not in result.variables:
            yield f"{key}: there is no variable '{name}' any more"
            continue
        item = result.variables[name]
        if list(item.dims) != about["dims"]:
            yield f"{key}: dims were {about['dims']}, are {list(item.dims)}"
            continue
        for attribute in {"units", "direction"} & about["attrs"].keys():  # one that was not told may be now
            was = RENAMED.get(f"{family}/{old}@{attribute}", about["attrs"][attribute])
            if item.attrs.get(attribute, "none") != was:
                yield f"{key}: {attribute} was {was!r}, is {item.attrs.get(attribute)!r}"
        known = {f"{family}/{old}", f"{frozen.name}/{family}/{old}"}
        if not known & {*REWORDED, *CHANGED} and not changed_on_purpose(family, old):
            was = frozen.arrays.get(key, about.get("values"))
            codes = result.get(name if name.endswith("_reason") else f"{name}_reason", xr.DataArray(0))
            chosen = np.broadcast_to(np.isin(codes.values, (INSIDE_CONE, NOT_UNIQUE)), item.shape)
            yield from changed_values(key, was, as_before(name, item.values), tolerance(family, old), chosen)
        reasons = f"{name}_reason"
        known_now = result[reasons].values if reasons in result.variables else np.zeros(0)
        if f"{key}_reason" not in variables and not np.isin(known_now, (0, INSIDE_CONE, NOT_UNIQUE)).all():
            yield f"{key}: nothing was missing, now something is: {reasons}"


def as_before(name: str, values: np.ndarray) -> np.ndarray:
    """Reasons as they were told before; anything else as it is."""
    if not name.endswith("_reason"):
        return values
    told = values.copy()
    for now, was in TRUER.items():
        told[values == now] = was
    return told


def changed_on_purpose(family: str, variable: str) -> bool:
    """Whether CHANGED has a variable, by its name or as the bound of a metric's own value."""
    base, _, end = variable.rpartition("_")
    inside = any(m.scalar == base and keeps_inside(m.name) for m in families()[family].metrics.values())
    return f"{family}/{variable}" in CHANGED or (inside and f"{family}/*_{end}" in CHANGED)


def keeps_inside(metric: str) -> bool:
    """Whether the interval of a metric's mean keeps to a range, by its declaration."""
    return bool(np.isfinite(find_metric(metric).own_range).any())


def tolerance(family: str, variable: str = "") -> float:
    """Absolute and relative; see above."""
    if MEASURED_HERE:
        return ANOTHER_WAY.get(variable, EXACT)
    return max(ROUNDED.get(family, EXACT), ROOTS.get(variable, 0.0))


def changed_values(key: str, old: Any, new: np.ndarray, within: Any, chosen: Any = False) -> Iterator[str]:
    """The first place at which two arrays differ: numbers by more than the tolerance, words and flags at all.

    `chosen`: where a number was the solver's choice, and may be missing.
    """
    was = np.array(old, object) if isinstance(old, list | str) else old
    if was.shape != new.shape:
        yield f"{key}: shape was {was.shape}, is {new.shape}"
        return
    numbers = was.dtype.kind in "fiu" and new.dtype.kind in "fiu"
    same = np.isclose(new, was, within, within, equal_nan=True) if numbers else np.asarray(new == was, bool)
    same = same | chosen
    if not same.all():
        place = tuple(int(i) for i in np.argwhere(~same)[0])
        yield f"{key}: {(~same).sum()} of {same.size} differ, at {place} it was {was[place]!r}, is {new[place]!r}"


def changed_rows(what: str, csv: str, table: pd.DataFrame, keys: list[str]) -> list[str]:
    """What differs in the rows and columns that a table had, both read from CSV."""
    told = {REASONS[now]: REASONS[was] for now, was in TRUER.items()}
    table = table.assign(**{key: table[key].replace(told, regex=True) for key in ("reason", "missing") if key in table})
    old, new = (pd.read_csv(io.StringIO(text)).set_index(keys) for text in (csv, table.to_csv(index=False)))
    gone = [f"no row {row} any more" for row in old.index.difference(new.index)]
    gone += [f"no column '{column}' any more" for column in old.columns.difference(new.columns)]
    if gone:
        return gone
    new = new.loc[old.index]
    metrics = old.reset_index().get("metric", pd.Series("ad_restricted", range(len(old))))
    within = np.array([tolerance(find_metric(name).family, name) for name in metrics])
    anew = np.array([keeps_inside(name) for name in metrics])
    said = new["missing" if "missing" in new else "reason"].astype(str)
    chosen = said.str.contains("inside_cone|not_unique").to_numpy(bool)
    fewer = {"family_size", "family_missing", "p_corrected"} if chosen.any() else set()
    found = []
    for column in old.columns.difference(fewer):
        if f"{what}/{column}" not in REWORDED:
            kept = ~anew if f"{what}/{column}" in CHANGED else np.ones(len(old), bool)
            both = (_filled(table[column][kept & ~chosen].to_numpy()) for table in (old, new))
            found += changed_values(column, *both, within[kept & ~chosen])
    return found


def _filled(values: np.ndarray) -> np.ndarray:
    """Numbers as they are; of words a missing one is the empty one, and so are all where there is none."""
    if values.dtype.kind in "fiub" and not pd.isna(values).all():
        return values
    return np.array(["" if pd.isna(v) else v for v in values], object)
