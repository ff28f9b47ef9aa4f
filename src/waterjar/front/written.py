"""A report from Python: the same page that `waterjar report` writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from waterjar.diagnose.study import Diagnosis
from waterjar.errors import unknown_name
from waterjar.front.sources import Source, measured, settings_of, study_of
from waterjar.run.reader import Run
from waterjar.run.study import Study
from waterjar.view.report.composing import compose
from waterjar.view.report.formats import FORMATS, check_target, default_target, format_of, write
from waterjar.view.report.model import model_of


def write_report(
    source: Source,
    path: str | os.PathLike[str] | None,
    *,
    form: str | None,
    title: str,
    baseline: str | None,
    settings: Mapping[str, Any] | None,
) -> Path:
    """See `waterjar.report`."""
    if form is not None and form not in FORMATS:
        raise unknown_name("format", form, FORMATS)
    form = form or ("html" if path is None else format_of(Path(path)))
    study = study_of(source)
    target = default_target(_place(source, study), study, FORMATS[form]) if path is None else Path(path)
    check_target(target, form)  # before anything long is measured

    def measure(part: Study, **how: Any) -> Diagnosis:
        """What was measured already, unless runs were left out since, or something else is asked for."""
        is_whole = isinstance(source, Diagnosis) and len(part) == len(source.study)
        if isinstance(source, Diagnosis) and is_whole and settings is None and baseline is None:
            return source
        return measured(part, settings=how["settings"], baseline=how["baseline"])

    model = model_of(study, title=title, baseline=baseline, settings=settings_of(settings), measure=measure)
    return write(compose(model), target, form)


def _place(source: Source, study: Study) -> Path:
    """The path that a report stands in, or beside: that of a study, or of a run."""
    if isinstance(source, Run):
        return source.path
    return Path(source) if isinstance(source, str | os.PathLike) else study.path
