"""Modules found by name, and settings turned into a model or one clear error."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from pydantic import BaseModel, ConfigDict, Field

from waterjar.errors import WaterjarError
from waterjar.lab import by_name
from waterjar.run.faults import parse_settings


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    depth: int = 1


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid")
    size: int = Field(4, ge=1)
    path: str
    inner: Inner = Inner()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    folder = tmp_path / "a_package_of_kinds"
    folder.mkdir()
    for name in ("__init__", "apple", "pear", "_shared"):
        (folder / f"{name}.py").write_text(f"NAME = '{name}'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import a_package_of_kinds  # type: ignore[import-not-found]

    yield a_package_of_kinds
    for name in [name for name in sys.modules if name.startswith("a_package_of_kinds")]:
        del sys.modules[name]


def test_one_new_file_is_found_and_shared_modules_are_not(package: ModuleType) -> None:
    assert by_name.names_in(package) == ("apple", "pear")
    assert by_name.module_in(package, "fruit", "pear").NAME == "pear"


@pytest.mark.parametrize("name", ["aple", "_shared", "os", "..errors"])
def test_unknown_name_lists_the_known_ones_and_imports_nothing(package: ModuleType, name: str) -> None:
    with pytest.raises(WaterjarError, match=r"fruit '.*' is unknown:.* Known: 'apple', 'pear'"):
        by_name.module_in(package, "fruit", name)


def test_settings_are_parsed() -> None:
    parsed = parse_settings(Settings, {"path": "x", "inner": {"depth": 3}}, "here")
    assert (parsed.size, parsed.path, parsed.inner.depth) == (4, "x", 3)


def test_all_faults_are_told_at_once_with_the_nearest_name() -> None:
    with pytest.raises(WaterjarError) as error:
        parse_settings(Settings, {"sizee": 3, "size": 0, "inner": {"dpth": 1}}, "patch")
    text = str(error.value)
    assert "patch: setting 'sizee' is unknown: did you mean 'size'?" in text
    assert "patch: setting 'size' is 0: " in text
    assert "patch: setting 'path' is missing" in text
    assert "patch: setting 'inner.dpth' is unknown: did you mean 'inner.depth'?" in text
