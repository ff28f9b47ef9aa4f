"""Pieces of long measurements: whole or not there, and not kept for ever."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

from waterjar.diagnose.array_file import packed, read_whole
from waterjar.diagnose.cache import FOLDER, cached, piece_key
from waterjar.diagnose.measuring import Loaded, Unit
from waterjar.diagnose.pieces import Parts, PieceRunner
from waterjar.diagnose.registry import Family, forget, metric
from waterjar.diagnose.result import Result

PIECE = {"names": np.array(["0", "1"]), "capacity": np.arange(3.0), "capacity_code": np.zeros(3, np.uint8)}


def kept(folder: Path) -> tuple[Parts, Path]:
    parts = Parts(folder)
    parts.put("one/3", PIECE)
    return parts, next(folder.glob("*.npz"))


class TestDamage:
    def test_as_it_was_put(self, tmp_path: Path) -> None:
        parts, file = kept(tmp_path)
        found = parts.get("one/3")
        assert found is not None and list(found) == list(PIECE)
        for name, values in PIECE.items():
            np.testing.assert_array_equal(found[name], values)
        with np.load(file) as plain:  # an ordinary npz for whoever looks into it
            assert plain.files == list(PIECE)
        assert parts.get("one/4") is None

    def test_every_single_bit_counts(self, tmp_path: Path) -> None:
        parts, file = kept(tmp_path)
        raw = file.read_bytes()
        for place in range(len(raw)):
            for bit in range(8):
                damaged = bytearray(raw)
                damaged[place] ^= 1 << bit
                file.write_bytes(damaged)
                assert parts.get("one/3") is None, (place, bit)

    def test_cut_short_or_longer(self, tmp_path: Path) -> None:
        parts, file = kept(tmp_path)
        raw = file.read_bytes()
        for data in [raw[:cut] for cut in range(len(raw))] + [raw + b"\0", raw + raw]:
            file.write_bytes(data)
            assert parts.get("one/3") is None

    def test_other_files_under_its_name(self, tmp_path: Path) -> None:
        parts, file = kept(tmp_path)
        single, plain = io.BytesIO(), io.BytesIO()
        np.save(single, np.arange(3.0))
        np.savez(plain, **PIECE)
        for data in (b"", b"hello", single.getvalue(), plain.getvalue(), packed({"x": np.array([{}])})):
            file.write_bytes(data)
            assert parts.get("one/3") is None
        file.unlink()
        file.mkdir()
        assert parts.get("one/3") is None
        parts.put("one/3", PIECE)  # not kept, and no error
        assert read_whole(tmp_path / "nothing") is None

    def test_a_damaged_piece_is_computed_again(self, tmp_path: Path) -> None:
        parts, file = kept(tmp_path)
        calls = []

        def compute(name: str) -> dict[str, Any]:
            calls.append(name)
            return PIECE

        assert len(dict(PieceRunner(parts=parts).run(compute, {"one/3": ("x",)}))) == 1 and not calls
        file.write_bytes(file.read_bytes()[:-1])
        assert len(dict(PieceRunner(parts=parts).run(compute, {"one/3": ("x",)}))) == 1 and calls == ["x"]
        assert parts.get("one/3") is not None


def measure(source: object, *, n: int = 1) -> xr.Dataset:
    raise AssertionError


def result(*_: object) -> xr.Dataset:
    return xr.Dataset({"x": ("repeat", np.arange(2.0))})


class Nothing:
    """What the families here would read."""


def family(name: str, in_pieces: bool) -> Family:
    return Family(name, "As told", "run", (), {Nothing: ("repeat",)}, Loaded, measure, in_pieces=in_pieces)


@pytest.fixture(params=["pieces", "plain"])
def name(request: pytest.FixtureRequest) -> Iterator[str]:
    """A family with one metric."""
    about = {"long_name": "x", "formula": "x", "citation": "x", "needs": ("features",)}
    family(request.param, request.param == "pieces")

    @metric("in_pieces", family=request.param, **about)
    def one(nothing: Nothing) -> Result:
        return Result(1.0)

    yield request.param
    forget("in_pieces")


class TestLeftBehind:
    @pytest.fixture
    def own(self, name: str) -> Family:
        return family(name, in_pieces=name == "pieces")

    @pytest.fixture
    def places(self, tmp_path: Path, own: Family) -> dict[str, Path]:
        """Folders of pieces and how many days ago something was added to them."""
        found = {}
        for name, unit, n, days in [
            ("same, old", "run-1", 7, 8),
            ("same, young", "run-1", 8, 6),
            ("other unit, old", "run-2", 7, 29),
            ("other unit, very old", "run-2", 8, 31),
        ]:
            key = piece_key(own, Unit(unit, (), ""), {}, own.settings({"n": n}))
            place = tmp_path / FOLDER / "parts" / key
            Parts(place).put("one", PIECE)
            moment = time.time() - days * 86400
            os.utime(place, (moment, moment))
            found[name] = place
        return found

    @pytest.mark.parametrize("again", [False, True])
    def test_given_up_when_a_result_is_complete(
        self, tmp_path: Path, own: Family, places: dict[str, Path], again: bool
    ) -> None:
        about: tuple[Any, ...] = (own, Unit("run-1", (), ""), {}, own.settings({}), tmp_path, result)
        if again:  # also where the result was there before
            hidden = (tmp_path / FOLDER / "parts").rename(tmp_path / "hidden")
            cached(*about)
            hidden.rename(tmp_path / FOLDER / "parts")
        _, origin = cached(*about)
        assert origin == ("cached" if again else "new")
        left = {name for name, place in places.items() if place.exists()}
        assert left == ({"same, young", "other unit, old"} if own.in_pieces else set(places))
