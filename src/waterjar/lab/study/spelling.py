"""What a person wrote under the names that declarations have: words of the seed, and a filled-in section `analysis`.

The seed's study file says `max_parallel_jobs` beside `seeds`, and `generate_plots` in its section `analysis`. Both are
taken, so that its file is a declaration as it stands; what is written into the study has the names of `Declaration`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from waterjar.diagnose.analysis import WORDS, Analysis, Baseline, spelled_out
from waterjar.diagnose.registry import families
from waterjar.errors import WaterjarError
from waterjar.lab.study.executors import spelled_out as spelled_out_executor
from waterjar.run.faults import unknown

_RESOURCES = {
    "max_parallel_jobs": "workers",
    "gpu_memory_limit": "gpu_memory_limit",
    "checkpoint_frequency": "checkpoint_frequency",
    "executor": "executor",
}
"""Words at the top of a file, some of them the seed's -> the field of `resources` that each stands for."""


def with_resources(content: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The content with words for resources in their section, spelled out, and what is wrong with them.

    >>> with_resources({"seeds": [1], "max_parallel_jobs": 2, "executor": "dask"})
    ({'seeds': [1], 'resources': {'workers': 2, 'executor': {'name': 'dask'}}}, [])
    """
    moved = {field: content[word] for word, field in _RESOURCES.items() if word in content}
    rest = {key: value for key, value in content.items() if key not in _RESOURCES}
    section = _written(rest.get("resources", {}))
    if not isinstance(section, Mapping):
        return rest, []  # told where the types are judged
    section = dict(section)
    for place in (moved, section):
        if "executor" in place:
            place["executor"] = spelled_out_executor(place["executor"])
    if not moved and not section:
        return rest, []
    found = [
        f"{word} is another word for resources.{field}, and they differ ({content[word]!r} and {section[field]!r}): "
        "leave one of them out"
        for word, field in _RESOURCES.items()
        if field in moved and field in section and section[field] != moved[field]
    ]
    return {**rest, "resources": {**moved, **section}}, found


def with_analysis(
    content: Mapping[str, Any], defaults: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]] | None = None
) -> tuple[dict[str, Any], list[str]]:
    """The content with its section `analysis` spelled out and filled in, and what is wrong with that section.

    `defaults` of the kind of study stand where the file is silent, field by field. `settings` are those of a preset,
    by family: the file's own go before them.
    """
    section = _written(content.get("analysis", {}))
    if not isinstance(section, Mapping):
        return dict(content), []  # told where the types are judged
    found = _unknown_keys(section)
    if not found:
        try:
            section = spelled_out({str(key): value for key, value in section.items()}, defaults.get("families"))
            found = _unmeasured(section, defaults)
        except WaterjarError as error:
            found = [str(error)]
    if found:
        return {**content, "analysis": dict(defaults)}, found
    whole = {**defaults, **section}
    if isinstance(whole.get("baseline"), str) and isinstance(defaults.get("baseline"), Mapping):
        whole["baseline"] = Baseline(**defaults["baseline"]).named(whole["baseline"]).model_dump(mode="json")
    wanted = whole.get("families")
    if isinstance(wanted, list | tuple) and "lead" not in section and whole.get("lead") not in wanted:
        whole["lead"] = next((name for name in wanted if isinstance(name, str) and name in families()), None)
    own = whole.get("settings", {})
    if settings and isinstance(own, Mapping):
        beside = {family: values for family, values in own.items() if family not in settings}
        whole["settings"] = {family: _over(values, own.get(family, {})) for family, values in settings.items()} | beside
    return {**content, "analysis": whole}, _faults(whole)


def _unmeasured(section: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[str]:
    """Settings that were written for families that are not to be measured; a line each."""
    wanted, settings = section.get("families", defaults.get("families")), section.get("settings", {})
    if not isinstance(wanted, list | tuple) or not isinstance(settings, Mapping):
        return []
    return [
        f"analysis.settings.{name}: {name} is not among analysis.families {list(wanted)}"
        for name in settings
        if name in families() and name not in wanted
    ]


def _written(section: object) -> object:
    """What was written of a section, where it was given as a model."""
    return section.model_dump(mode="json", exclude_unset=True) if isinstance(section, BaseModel) else section


def _over(preset: Mapping[str, Any], given: object) -> object:
    return {**preset, **given} if isinstance(given, Mapping) else given


def _unknown_keys(section: Mapping[str, Any]) -> list[str]:
    """Keys that are no field of the section, no other word for one and no setting of a family."""
    places = {
        setting: f"analysis.settings.{name}.{setting}"
        for name, family in families().items()
        for setting in family.settings_model.model_fields
    }
    fields = Analysis.model_fields
    return [
        unknown("setting", f"analysis.{key}", key, fields, places)
        for key in map(str, section)
        if key not in fields and key not in WORDS and key not in places and "." not in key
    ]


def _faults(section: Mapping[str, Any]) -> list[str]:
    """Families and settings that there are not; a section of wrong types is told where those are judged."""
    try:
        return Analysis.model_validate(section).faults()
    except ValidationError:
        return []
