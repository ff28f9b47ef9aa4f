"""Parts by name: files of ours, and entry points of other packages."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import outside
from waterjar.errors import WaterjarError
from waterjar.run import shelf
from waterjar.run.shelf import SHELVES, PartError, Shelf

FRUIT = "a_package_of_fruit"


@pytest.fixture
def fruit(site: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """A shelf of our own, with two parts in its folder; `bring(...)` adds others."""
    (site / FRUIT).mkdir()
    for name in ("__init__", "apple", "pear", "_shared"):
        (site / FRUIT / f"{name}.py").write_text(f"NAME = '{name}'\nSettings = None\n")
    made = Shelf("fruit", "fruit", FRUIT, ("Settings", "eat|drink"))
    monkeypatch.setitem(SHELVES, "fruit", made)
    shelf._modules_in.cache_clear()
    return made


def bring(site: Path, package: str, parts: dict[str, str], version: str = "1.0", group: str = "waterjar.fruit") -> None:
    """A package whose parts are modules: name -> its text."""
    folder = package.replace("-", "_")
    (site / folder).mkdir(exist_ok=True)
    for name, text in parts.items():
        (site / folder / f"{name.replace('/', '_')}.py").write_text(text)
    outside.bring(site, package, {group: {name: f"{folder}.{name.replace('/', '_')}" for name in parts}}, version)
    outside.forget(site)


MODEL = "from pydantic import BaseModel\n\nclass Settings(BaseModel):\n    pass\n"
GOOD = f"{MODEL}\ndef eat():\n    return 'eaten'\n"


class TestOurs:
    def test_one_new_file_is_found_and_shared_modules_are_not(self, fruit: Shelf) -> None:
        assert fruit.names() == ("apple", "pear")
        assert fruit.module("pear").NAME == "pear"

    @pytest.mark.parametrize("name", ["aple", "_shared", "os", "..errors"])
    def test_unknown_name_lists_the_known_ones_and_imports_nothing(self, fruit: Shelf, name: str) -> None:
        told = r"fruit '.*' is unknown(\.|: did you mean 'apple'\?) Known: 'apple', 'pear'"
        with pytest.raises(WaterjarError, match=told):
            fruit.module(name)

    @pytest.mark.parametrize("own", [one for one in SHELVES.values() if one.folder], ids=lambda one: one.name)
    def test_every_file_of_ours_has_what_is_asked_of_others(self, own: Shelf) -> None:
        pytest.importorskip("torch")
        assert own.ours
        for name in own.ours:
            for wanted in own.has:
                able = wanted.replace("{name}", name).split("|")
                assert any(hasattr(own.module(name), one) for one in able), (name, wanted)


class TestTheirs:
    def test_a_part_is_like_ours_and_nearest(self, fruit: Shelf, site: Path) -> None:
        bring(site, "orchard", {"plum": GOOD})
        assert fruit.names() == ("apple", "pear", "plum")
        assert fruit.module("plum").eat() == "eaten"
        with pytest.raises(WaterjarError, match="fruit 'plumm' is unknown: did you mean 'plum'"):
            fruit.module("plumm")
        (part,) = shelf.from_outside({"fruit": ["plum", "apple"]})
        assert (part.origin, part.entry) == ("orchard 1.0", "waterjar.fruit: plum = orchard.plum")

    def test_listing_imports_nothing(self, fruit: Shelf, site: Path) -> None:
        bring(site, "orchard", {"plum": "raise SystemExit('imported')"})
        assert "plum" in fruit.names() and "orchard.plum" not in sys.modules
        assert fruit.refusals() == {} and "orchard" not in sys.modules

    @pytest.mark.parametrize(
        ("text", "why"),
        [
            ("import nowhere_to_be_found", "ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
            ("raise SystemExit('bye')", "SystemExit: bye"),
            ("def eat(:", "SyntaxError"),
            ("Settings = None", "it has no eat or drink; expected Settings, eat or drink"),
            ("eat = Settings = dict", "its Settings is <class 'dict'>; expected a pydantic model"),
            (f"{MODEL}\ndrink = None", "its drink is None; expected a function"),
        ],
    )
    def test_a_broken_one_is_named_once_asked_for_and_costs_nothing_else(
        self, fruit: Shelf, site: Path, text: str, why: str
    ) -> None:
        bring(site, "orchard", {"plum": GOOD, "quince": text}, version="2.3")
        for _ in range(2):  # the second time from memory
            with pytest.raises(PartError) as error:
                fruit.module("quince")
            told = str(error.value)
            assert "fruit 'quince' (waterjar.fruit: quince = orchard.quince, of orchard 2.3) cannot be used: " in told
            assert why in told
        found, faults = fruit.modules()
        assert list(found) == ["apple", "pear", "plum"] and why in faults["quince"]
        assert fruit.behind("quince", "menu").faults[0].startswith("menu: fruit 'quince' (waterjar.fruit: quince")

    def test_what_it_prints_is_not_among_our_numbers(
        self, fruit: Shelf, site: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        bring(site, "orchard", {"plum": f"print('hello from plum')\n{GOOD}"})
        fruit.module("plum")
        assert capsys.readouterr() == ("", "hello from plum\n")

    def test_a_module_that_fails_runs_once(self, fruit: Shelf, site: Path) -> None:
        bring(site, "orchard", {"plum": "import a_package_of_fruit as f\nf.NAME += '!'\nraise ValueError('no')"})
        for _ in range(3):
            with pytest.raises(PartError, match="ValueError: no"):
                fruit.module("plum")
        assert sys.modules[FRUIT].NAME == "__init__!"

    def test_memory_that_runs_out_is_no_fault_of_the_part(self, fruit: Shelf, site: Path) -> None:
        bring(site, "orchard", {"plum": "raise MemoryError"})
        with pytest.raises(MemoryError):
            fruit.module("plum")


class TestNames:
    def test_ours_stays_and_theirs_is_named(self, fruit: Shelf, site: Path, caplog: pytest.LogCaptureFixture) -> None:
        bring(site, "orchard", {"apple": GOOD})
        ((part, why),) = fruit.refusals().items()
        assert part.package == "orchard" and why == "passed over: the fruit 'apple' is waterjar's own, which stays"
        assert fruit.names() == ("apple", "pear")
        with caplog.at_level(logging.WARNING):
            assert fruit.module("pear").NAME == "pear"
            assert not caplog.messages
            for _ in range(2):
                assert fruit.module("apple").NAME == "apple"
        assert caplog.messages == ["waterjar.fruit: apple = orchard.apple, of orchard 1.0, is " + why]

    def test_two_strangers_with_one_name_are_both_refused(self, fruit: Shelf, site: Path) -> None:
        bring(site, "orchard", {"plum": GOOD})
        bring(site, "garden", {"plum": GOOD, "quince": GOOD}, version="0.2")
        assert fruit.names() == ("apple", "pear", "quince")
        assert {part.package for part in fruit.refusals()} == {"orchard", "garden"}
        expected = "refused: garden 0.2 and orchard 1.0 both have a fruit 'plum'; expected one of them installed"
        with pytest.raises(PartError, match=expected):
            fruit.module("plum")
        assert expected in fruit.behind("plum", "menu").faults[0]

    @pytest.mark.parametrize("name", ["Plum", "../../plum", "_plum", "pl um"])
    def test_names_that_are_none(self, fruit: Shelf, site: Path, name: str) -> None:
        (site / "orchard.py").write_text(GOOD)
        outside.bring(site, "orchard", {"waterjar.fruit": {name: "orchard"}})
        assert fruit.names() == ("apple", "pear")
        assert list(fruit.refusals().values()) == ["refused: expected a name of small letters, digits and _"]

    def test_an_object_is_no_module(self, fruit: Shelf, site: Path) -> None:
        outside.bring(site, "orchard", {"waterjar.fruit": {"plum": "orchard:plum"}})
        with pytest.raises(PartError, match="refused: 'orchard:plum' is no module; expected package.module"):
            fruit.module("plum")


class TestPackages:
    def test_the_copy_that_is_imported_counts(self, fruit: Shelf, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        bring(site, "orchard", {"plum": GOOD}, version="1.0")
        (site / "nearer").mkdir()
        outside.bring(site / "nearer", "orchard", {"waterjar.fruit": {"quince": "orchard.plum"}}, "2.0")
        monkeypatch.syspath_prepend(str(site / "nearer"))
        assert [(part.name, part.version) for part in fruit.parts()] == [("quince", "2.0")]
        (site / "nearer" / "orchard-2.0.dist-info" / "entry_points.txt").write_text("[waterjar.fruit]\n")
        outside.forget(site)
        assert fruit.parts() == ()

    def test_damaged_metadata_costs_no_other_package(
        self, fruit: Shelf, site: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        bring(site, "orchard", {"plum": GOOD})
        outside.bring(site, "garden", {"waterjar.fruit": {"quince": "garden"}})
        with (site / "garden-1.0.dist-info" / "entry_points.txt").open("a") as file:
            file.write("this is no line of such a file\n")
        outside.forget(site)
        with caplog.at_level(logging.WARNING):
            assert fruit.names() == ("apple", "pear", "plum")
        assert any("nothing of garden is offered: its metadata cannot" in message for message in caplog.messages)


def test_help_and_import_load_no_entry_point(strange_parts: Path) -> None:
    """Neither the parts, nor anything that would look for them."""
    script = """
import sys
import waterjar
from waterjar.cli.main import app
try:
    app(["--help"])
except SystemExit:
    pass
for shelf in ("export", "plot", "new"):
    try:
        app([shelf, "--help"])
    except SystemExit:
        pass
from waterjar.run.shelf import SHELVES, _found
assert _found.cache_info().currsize == 0, "entry points were looked up"
names = {name: shelf.names() for name, shelf in SHELVES.items()}
assert "narrow" in names["networks"] and "coin" in names["kinds"], names
heavy = ("strange_parts", "torch", "zarr", "matplotlib")
loaded = [name for name in sys.modules if name.partition(".")[0] in heavy]
assert not loaded, loaded
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
