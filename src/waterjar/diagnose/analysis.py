"""What counts when a study is analysed: the command line, then the study's declaration, then the defaults.

A study's declaration (`study.yaml`) has one section `analysis`, whatever its kind:

    analysis:
      families: [rigidity, continual]         # left out: all that the runs have recorded the data for
      settings: {rigidity: {threshold: 0.8}}  # or threshold: 0.8, where one family alone has such a setting
      baseline: {where: {scenario: scratch_t2}, ignore: [recording], tell: [training.batch_size]}
      tests: {correction: holm, alpha: 0.05}  # false for none
      figures: true                           # or a list of their names, or false
      export_formats: [csv, json, png]
      lead: rigidity                          # the family whose sentence comes first

`analysis_of` is the only function that says what counts; every command, and `measure` of every family, asks it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from waterjar.diagnose.baseline import DEFAULT, check_baseline
from waterjar.diagnose.registry import Family, families, find_family
from waterjar.diagnose.settings import Names, Share
from waterjar.errors import WaterjarError, unknown_name
from waterjar.run.faults import parse_settings
from waterjar.run.study import Study

_STRICT = ConfigDict(extra="forbid", frozen=True)
WORDS = {
    "statistical_tests": "tests",
    "generate_plots": "figures",
    "adaptation_threshold": "rigidity.threshold",
}
"""Other names of keys of the section."""
_PAIRED, _UNPAIRED = ("paired_t", "wilcoxon"), ("welch", "mann_whitney")
"""Tests that are of one kind of values alone; a permutation test is of both."""
SHARED = ("baseline", "chance", "confidence")
"""Settings that mean the same in every family that has them: a bare name is given to all of these."""


class Baseline(BaseModel):
    """Which runs the others are compared with, and in what they may differ."""

    model_config = _STRICT

    where: dict[str, Any]
    """Settings that the runs of a baseline have, such as {"scenario": "scratch_t2"}."""
    ignore: tuple[str, ...] = ()
    """Settings, or sections of them, in which a baseline may differ: those of its own learner, say."""
    tell: tuple[str, ...] = ()
    """Settings in which it may differ too; the difference is told."""

    @property
    def name(self) -> str:
        """What it goes by."""
        return ", ".join(map(str, self.where.values()))

    def named(self, name: str) -> Baseline:
        """The same rule for another baseline, which has this name; what may differ stays.

        The name is one of the setting that the rule looks at; where it looks at several, that of a scenario.
        """
        if name == self.name:
            return self
        return self.model_copy(update={"where": {next(iter(self.where)) if len(self.where) == 1 else "scenario": name}})


class Tests(BaseModel):
    """How cells are tested against their baseline."""

    __test__: ClassVar[bool] = False  # it is no test of pytest's
    model_config = _STRICT

    paired: bool = True
    test: Literal["paired_t", "wilcoxon", "permutation", "welch", "mann_whitney"] | None = None
    correction: Literal["holm", "benjamini_hochberg"] = "holm"
    alpha: Share = 0.05
    """Level of the tests; intervals are at 1 - alpha."""

    def with_given(self, given: Mapping[str, Any]) -> Tests:
        """With what is given put in its place. A test that is given says whether values are paired, and the reverse."""
        told = {key: value for key, value in given.items() if value is not None}
        if "paired" not in told and told.get("test") in (*_PAIRED, *_UNPAIRED):
            told["paired"] = told["test"] in _PAIRED
        kept = self.model_dump()
        if told.get("paired", self.paired) != self.paired and "test" not in told:
            kept["test"] = None  # the one declared is of the other kind of values
        return parse_settings(Tests, {**kept, **told}, "tests")

    @field_validator("test")
    @classmethod
    def _fits(cls, test: str | None, info: ValidationInfo) -> str | None:
        paired = info.data.get("paired", True)
        if test in (_UNPAIRED if paired else _PAIRED):
            raise ValueError(f"{test} is a test of {'unpaired' if paired else 'paired'} values: see paired")
        return test


class Analysis(BaseModel):
    """The section `analysis` of a declaration; runs do not depend on it."""

    model_config = _STRICT

    families: Names | None = None
    """Families to measure; None for all that the runs have recorded the data for."""
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Family -> its settings, such as {"geometry": {"n_t": 50}}."""
    figures: bool | tuple[str, ...] = True
    """Whether figures are drawn, or which."""
    export_formats: tuple[str, ...] = ()
    """Formats of figures (png, pdf, svg) and of the report's numbers (csv, json, latex, markdown, html)."""
    tests: bool | Tests = True
    """Whether cells are tested against their baseline, or how."""
    baseline: str | Baseline | None = None
    """What cells are compared with: a rule, a scenario or the name of a cell."""
    lead: str | None = None
    """The family whose sentence comes first."""
    attention_analysis: bool = False
    """Accepted, and not acted on before attention can be recorded."""

    def settings_of(self, family: Family) -> Any:
        """All settings of a family, checked: those that count, and the defaults for the rest."""
        own = dict(self.settings.get(family.name, {}))
        if family.compared and self.baseline_name is not None:
            own.setdefault("baseline", self.baseline_name)
        if family.compared and "confidence" in family.settings_model.model_fields:
            own.setdefault("confidence", self.confidence)
        return family.settings(own)

    @property
    def confidence(self) -> float:
        """The level of intervals, where a family is not given one of its own."""
        return round(1 - self.test_settings.alpha, 12)

    @property
    def baseline_name(self) -> str | None:
        """What the baseline goes by; None where nobody named one."""
        return self.baseline.name if isinstance(self.baseline, Baseline) else self.baseline

    @property
    def rule(self) -> Baseline | None:
        """How a baseline is found, where it was declared."""
        return self.baseline if isinstance(self.baseline, Baseline) else None

    @property
    def test_settings(self) -> Tests:
        """How cells are tested."""
        return self.tests if isinstance(self.tests, Tests) else Tests()

    def faults(self) -> list[str]:
        """What is wrong with it, a line each: families that there are not, settings that they do not have."""
        found, known = [], families()
        for place, name in [*(("families", name) for name in self.families or ()), ("lead", self.lead)]:
            if name is not None and name not in known:
                found.append(str(unknown_name(f"analysis.{place}: family", name, known)))
        if self.rule is not None and not self.rule.where:
            found.append("analysis.baseline.where is empty: expected settings that a baseline has, such as a scenario")
        if self.lead in known and self.families is not None and self.lead not in self.families:
            found.append(f"analysis.lead: {self.lead} is not among analysis.families {list(self.families)}")
        for name, given in self.settings.items():
            if name not in known:
                found.append(str(unknown_name("analysis.settings: family", name, known)))
            else:
                try:
                    known[name].settings(given)
                except WaterjarError as error:
                    found += [f"analysis.settings.{line}" for line in str(error).split("\n")]
        return found


def spelled_out(section: Mapping[str, Any], usual: Sequence[str] | None = None) -> dict[str, Any]:
    """The section with other words in their place, and settings that stand in it under their families.

    `usual` are the families that are measured where the section names none.
    """
    found: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    for key, value in section.items():
        name = WORDS.get(key, key)
        if name in Analysis.model_fields:
            if name in found or (name != key and name in section):
                raise WaterjarError(f"analysis: {key} is another word for {name}, and both are given: leave one out")
            found[name] = value
        elif name in settings or (name != key and name in section):
            raise WaterjarError(f"analysis: {key} is another word for {name}, and both are given: leave one out")
        else:
            settings[name] = value
    if isinstance(found.get("families"), str):
        found["families"] = [found["families"]]
    given = found.get("settings", {})
    if settings and isinstance(given, Mapping) and all(isinstance(own, Mapping) for own in given.values()):
        merged = {family: dict(own) for family, own in given.items()}
        for family, own in _of_section(settings, found.get("families") or usual).items():
            twice = [key for key in own if key in merged.get(family, {})]
            if twice:
                raise WaterjarError(f"analysis: {twice[0]} is given twice, also as settings.{family}.{twice[0]}")
            merged[family] = {**merged.get(family, {}), **own}
        found["settings"] = merged
    return _with_one_baseline(found)


def _with_one_baseline(section: dict[str, Any]) -> dict[str, Any]:
    """The section with the baseline of a family's settings as that of all: what is compared has one. null is none."""
    found = {key: value for key, value in section.items() if key != "baseline" or value is not None}
    settings = found.get("settings", {})
    for family, own in settings.items() if isinstance(settings, Mapping) else ():
        one = families().get(str(family))
        if one is None or not one.compared or not isinstance(own, Mapping) or own.get("baseline") is None:
            continue
        if "baseline" in found:
            raise WaterjarError(f"analysis: baseline is given twice, also as settings.{family}.baseline: leave one out")
        found["baseline"] = own["baseline"]
        rest = {key: value for key, value in own.items() if key != "baseline"}
        found["settings"] = {**settings, family: rest}
    return found


def _of_section(settings: Mapping[str, Any], wanted: Any) -> dict[str, dict[str, Any]]:
    """Settings that stand in the section itself, by family; a shared one goes to those that are `wanted`."""
    made = by_family({key: value for key, value in settings.items() if key not in SHARED}, "analysis: setting")
    among = [name for name in wanted if name in families()] if isinstance(wanted, list | tuple) else None
    shared = {key: value for key, value in settings.items() if key in SHARED}
    for family, own in by_family(shared, "analysis: setting", among).items():
        twice = [key for key in own if key in made.get(family, {})]
        if twice:
            raise WaterjarError(f"analysis: {twice[0]} is given twice, also as {family}.{twice[0]}: leave one out")
        made[family] = {**made.get(family, {}), **own}
    return made


def by_family(
    settings: Mapping[str, Any], what: str = "setting", among: Iterable[str] | None = None
) -> dict[str, dict[str, Any]]:
    """{"threshold": 0.8} -> {"rigidity": {"threshold": 0.8}}: a setting's family, where one alone has it.

    `rigidity.threshold` names the family; `among` are the families to look in. One that is `SHARED` goes to all that
    have it. `what` begins an error.
    """
    known = {name: find_family(name) for name in (families() if among is None else among)}
    found: dict[str, dict[str, Any]] = {}
    for key, value in settings.items():
        family, dot, name = key.rpartition(".")
        owners = [family] if dot else [owner for owner, one in known.items() if key in one.settings_model.model_fields]
        others = [family] if dot else [o for o, one in families().items() if key in one.settings_model.model_fields]
        if not set(owners) & set(known) and set(others) & set(families()):
            raise WaterjarError(f"{what} {key} is of {' and '.join(others)}: only {', '.join(known)} are measured")
        if not owners:
            every = sorted({setting for one in known.values() for setting in one.settings_model.model_fields})
            raise unknown_name(what, key, every)
        if key in SHARED and owners:
            for owner in owners:
                if key in found.setdefault(owner, {}):
                    raise WaterjarError(f"{what} {owner}.{key} is given twice: leave one out")
                found[owner][key] = value
            continue
        if len(owners) > 1:
            raise WaterjarError(f"{what} {key}: {' and '.join(owners)} have it; write {owners[0]}.{key}")
        if owners[0] not in known:
            raise unknown_name(f"{what}: family", owners[0], known)
        if name not in known[owners[0]].settings_model.model_fields:
            raise unknown_name(f"{owners[0]}: {what}", name, known[owners[0]].settings_model.model_fields)
        if name in found.setdefault(owners[0], {}):
            raise WaterjarError(f"{what} {owners[0]}.{name} is given twice: leave one out")
        found[owners[0]][name] = value
    return found


def declared_analysis(declaration: Mapping[str, Any], where: str) -> Analysis:
    """The section of a declaration; what is wrong with it is one error."""
    section = {} if declaration.get("analysis") is None else declaration["analysis"]
    if not isinstance(section, Mapping):
        raise WaterjarError(f"{where}: analysis: expected a mapping of settings, not {section!r}")
    try:
        spelled = spelled_out({str(key): value for key, value in section.items()})
    except WaterjarError as error:
        raise WaterjarError(f"{where}: {error}") from None
    found = parse_settings(Analysis, spelled, where, "analysis")
    faults = found.faults()
    if faults:
        raise WaterjarError("\n".join(f"{where}: {line}" for line in faults))
    return found


def analysis_of(
    study: Study,
    *,
    families: Iterable[str] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    **given: Any,
) -> Analysis:
    """What counts: what is given here, else what the study declares, else the defaults.

    `settings` goes by family, setting by setting; `given` are further fields of `Analysis`, None where not given. A
    baseline that is given by its name keeps what a declared rule allows to differ.
    """
    declared = declared_analysis(study.declaration, str(study.path))
    merged = {family: dict(own) for family, own in declared.settings.items()}
    wanted = declared.families if families is None else tuple(families)
    update = {key: value for key, value in given.items() if value is not None}
    for family, own in (settings or {}).items():
        compared = find_family(family).compared
        if own and wanted is not None and family not in wanted:
            raise WaterjarError(f"{', '.join(f'{family}.{key}' for key in own)}: only {', '.join(wanted)} are measured")
        merged[family] = {**merged.get(family, {}), **own}
        find_family(family).settings(own)  # what is wrong with it is an error, and not a family passed over
        if compared and isinstance(own.get("baseline"), str):
            name = merged[family].pop("baseline")
            if update.setdefault("baseline", name) != name:
                raise WaterjarError(f"baseline is given twice, as {update['baseline']} and as {family}.baseline {name}")
    name = update.get("baseline")
    if isinstance(name, str) and declared.rule is not None:
        rule = declared.rule.named(name)
        if name not in (DEFAULT, declared.baseline_name):
            check_baseline(study, name, rule)
        update["baseline"] = rule
    return declared.model_copy(update={"settings": merged, "families": wanted, **update})
