"""From whatever a user has at hand to a study, and to what was measured of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from waterjar.errors import WaterjarError, brief

if TYPE_CHECKING:
    from waterjar.diagnose.study import Diagnosis
    from waterjar.run.reader import Run
    from waterjar.run.study import Study

Source: TypeAlias = "str | os.PathLike[str] | Run | Study | Diagnosis"
"""A path, a run, a study, or what was measured."""


def study_of(source: Source) -> Study:
    """The runs behind a source, as its command has them: a run counts as a study of one, with its study's settings."""
    from waterjar.diagnose.study import Diagnosis  # noqa: PLC0415 - xarray: not for `import waterjar`
    from waterjar.run.reader import Run  # noqa: PLC0415
    from waterjar.run.study import Study, study_at  # noqa: PLC0415

    if isinstance(source, Diagnosis):
        return source.study
    if isinstance(source, Study):
        return source
    if isinstance(source, Run):
        return study_at(source.path)
    if isinstance(source, str | os.PathLike):
        return study_at(source)
    raise WaterjarError(
        f"{brief(repr(source))}: expected a path, a run (wj.open_run), a study (wj.open_study) or what wj.measure gave"
    )


def measured(
    source: Source,
    only: str | Sequence[str] | None = None,
    *,
    families: str | Sequence[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    baseline: str | None = None,
    fresh: bool = False,
    partly: bool = False,
) -> Diagnosis:
    """What was measured of a source, `partly` as far as it can be; of a `Diagnosis` without anything new, itself.

    Long families are measured on all cores, in threads: their kernels let go of the interpreter.
    """
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    from waterjar.diagnose.study import Diagnosis, diagnose  # noqa: PLC0415

    asked = (only, families, settings, baseline)
    if isinstance(source, Diagnosis) and not fresh and all(one is None for one in asked):
        return source
    study = study_of(source)
    wanted = _families(names_of(only) or names_of(families))
    given = settings_of(settings, wanted)
    if isinstance(source, Diagnosis):  # what it was measured with counts, where nothing else is asked for
        known = [family for family in source.results if wanted is None or family in wanted]
        before = {family: source.settings(family) for family in known}
        given = {**before, **{family: {**before.get(family, {}), **own} for family, own in given.items()}}
        baseline = baseline if baseline is not None else source.analysis.baseline_name
        if baseline is not None:
            given = {family: {k: v for k, v in own.items() if k != "baseline"} for family, own in given.items()}
    with ThreadPoolExecutor(_cores()) as threads:
        return diagnose(
            study,
            only=names_of(only),
            families=names_of(families),
            settings=given,
            baseline=baseline,
            fresh=fresh,
            executor=threads,
            partly=partly,
        )


def settings_of(given: Mapping[str, Any] | None, among: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """Settings by family; those that stand alone go to the family that has them, of those `among` which to look."""
    from waterjar.diagnose.analysis import by_family  # noqa: PLC0415
    from waterjar.diagnose.registry import families  # noqa: PLC0415

    if given is not None and not isinstance(given, Mapping):
        raise WaterjarError(f'settings={brief(repr(given))}: expected a mapping, such as {{"threshold": 0.8}}')
    nested = {key: dict(own) for key, own in (given or {}).items() if key in families() and isinstance(own, Mapping)}
    alone = {key: value for key, value in (given or {}).items() if key not in nested}
    for family, own in by_family(alone, among=among).items() if alone else ():
        twice = own.keys() & nested.get(family, {}).keys()
        if twice:
            raise WaterjarError(f"setting {family}.{min(twice)} is given twice: leave one out")
        nested[family] = {**nested.get(family, {}), **own}
    return nested


def _families(names: Sequence[str] | None) -> list[str] | None:
    """The families that names of families and metrics stand for; a name of neither is told where it is measured."""
    from waterjar.diagnose.registry import families, metrics  # noqa: PLC0415

    if names is None:
        return None
    owners = dict.fromkeys(metrics()[name].family if name in metrics() else name for name in names)
    return [name for name in owners if name in families()] or None


def names_of(given: str | Sequence[str] | None) -> list[str] | None:
    """One name or several, as a list; None stays."""
    if given is None:
        return None
    return [given] if isinstance(given, str) else list(dict.fromkeys(given))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
