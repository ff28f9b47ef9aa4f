"""Reports that several tests look at, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from view.report.studies import einstellung_study, full_study, nasty_study
from waterjar.run.study import study_at
from waterjar.view.report import Model, compose, model_of
from waterjar.view.report.blocks import Report

GEOMETRY = {"geometry": {"n_t": 5, "subsamples": None, "simulate_every": 2, "n_trials": 10}}


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return model_of(study_at(einstellung_study(tmp_path_factory.mktemp("report") / "small")))


@pytest.fixture(scope="session")
def small_report(small: Model) -> Report:
    return compose(small)


@pytest.fixture(scope="session")
def full(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = full_study(tmp_path_factory.mktemp("report") / "full")
    return model_of(study_at(path), settings=GEOMETRY)


@pytest.fixture(scope="session")
def full_report(full: Model) -> Report:
    return compose(full)


@pytest.fixture(scope="session")
def nasty_report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return compose(model_of(study_at(nasty_study(tmp_path_factory.mktemp("report") / "nasty"))))


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")
