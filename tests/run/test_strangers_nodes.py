"""A run may come from a stranger: a node that is not of the schema is refused before anything opens it."""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numcodecs
import pytest
import zarr
from packaging.requirements import Requirement
from typer.testing import CliRunner

import waterjar
from recording import root_of, write_root
from waterjar import WaterjarError
from waterjar.cli.main import app
from waterjar.run.nodes import Fault, check_nodes

Json = dict[str, Any]


class Marker:
    """What the pickle of a stranger would do: leave a file behind."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.file,)


def with_pickle(path: Path, marker: Path) -> None:
    """Put an array of the second Zarr format into a run, whose filters are vlen-utf8 and pickle, in root and files."""
    node = {
        "zarr_format": 2,
        "shape": [5],
        "chunks": [5],
        "dtype": "|O",
        "order": "C",
        "compressor": None,
        "fill_value": None,
        "filters": [{"id": "vlen-utf8"}, {"id": "pickle", "protocol": 5}],
        "attributes": {"_ARRAY_DIMENSIONS": ["step"]},
    }
    folder = path / "performance" / "note"
    folder.mkdir()
    (folder / ".zarray").write_text(json.dumps(node))
    (folder / ".zattrs").write_text(json.dumps(node["attributes"]))
    (folder / "0").write_bytes(pickle.dumps(Marker(marker)))
    root = root_of(path)
    root["consolidated_metadata"]["metadata"]["performance/note"] = {**node, "node_type": "array"}
    write_root(path, root)


USES: dict[str, Callable[[Path], object]] = {
    "open": waterjar.open_run,
    "load": lambda path: waterjar.open_run(path).load("performance"),
    "tree": lambda path: waterjar.open_run(path).tree.load(),
    "group": lambda path: waterjar.open_run(path)["performance"].load(),
    "study": lambda path: waterjar.open_study(path.parent).load(),
}


@pytest.mark.parametrize("use", USES)
def test_a_pickle_in_a_node_of_the_old_format_is_refused(run_path: Path, tmp_path: Path, use: str) -> None:
    with_pickle(run_path, tmp_path / "marker")
    with pytest.raises(WaterjarError, match=r"damaged: node 'performance/note' has zarr_format 2; only 3 is read"):
        USES[use](run_path)
    assert not (tmp_path / "marker").exists()
    assert waterjar.verify(run_path).state == "tampered"


@pytest.mark.parametrize("command", ["show", "diagnose", "report", "export", "compare", "verify"])
def test_no_command_runs_it(run_path: Path, tmp_path: Path, command: str) -> None:
    with_pickle(run_path, tmp_path / "marker")
    out = ["--out", str(tmp_path / "out")] if command in ("report", "export") else []
    done = CliRunner().invoke(app, [command, str(run_path), *out])
    assert not (tmp_path / "marker").exists()
    assert isinstance(done.exception, WaterjarError | SystemExit | None)


def test_the_pickle_is_a_live_one(tmp_path: Path) -> None:
    pickle.loads(pickle.dumps(Marker(tmp_path / "marker")))  # noqa: S301 - our own
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize("where", ["performance/.zarray", ".zgroup", "performance/accuracy/.zattrs"])
def test_files_of_the_old_format_are_problems(run_path: Path, tmp_path: Path, where: str) -> None:
    (run_path / where).write_text("{}")
    assert [(p.kind, p.file) for p in waterjar.verify(run_path).problems] == [("added", where)]
    with waterjar.Recorder(tmp_path / "open", {}) as recorder:
        recorder.log(epoch=0, train={"loss": 1})
        (tmp_path / "open" / "train" / ".zarray").write_text("{}")
        assert waterjar.verify(tmp_path / "open").state == "tampered"


def test_a_node_beside_the_consolidated_ones_is_not_read(run_path: Path) -> None:
    """Only what the root says exists: files of nodes are for other readers, and `verify` compares them."""
    before = waterjar.open_run(run_path)["performance"].load()
    node = run_path / "performance" / "accuracy" / "zarr.json"
    with warnings.catch_warnings(action="ignore"):
        zarr.create_array(run_path / "performance" / "stray", shape=(5,), dtype="f8", dimension_names=["step"])
    node.write_text(node.read_text().replace("float64", "int64"))
    after = waterjar.open_run(run_path)["performance"].load()
    assert after.identical(before)
    assert waterjar.verify(run_path).state == "tampered"


def test_nodes_of_an_open_run_are_compared_with_its_root(tmp_path: Path) -> None:
    with waterjar.Recorder(tmp_path / "run", {}) as recorder:
        recorder.log(epoch=0, train={"loss": 1})
        node = tmp_path / "run" / "train" / "loss" / "zarr.json"
        text = node.read_text()
        node.write_text(text.replace("float64", "int64"))
        assert [str(p) for p in waterjar.verify(tmp_path / "run").problems] == [
            "changed: metadata of train/loss (train/loss/zarr.json)"
        ]
        node.write_text(text)
        assert waterjar.verify(tmp_path / "run").state == "open"


def nodes(path: Path) -> Json:
    found: Json = root_of(path)["consolidated_metadata"]["metadata"]
    return found


WRONG: dict[str, Any] = {
    "zarr_format": [2, "3", None, True],
    "node_type": ["link", None],
    "attributes": [None, []],
    "shape": [None, [-1, 2, 1], [5, 2], [5.0, 2, 1], [True, 2, 1], "5", [2**60, 2, 1], [5, 2, 7]],
    "dimension_names": [None, ["step"], ["step", "step", "repeat"], [1, 2, 3], ["step", "", "repeat"],
                        ["step", "eval_set", "rep"], ["step", "repeat", "eval_set"]],
    "chunk_grid": [None, {}, {"name": "regular"}, {"name": "regular", "configuration": {"chunk_shape": [0, 2, 1]}},
                   {"name": "rectangular", "configuration": {"chunk_shape": [5, 2, 1]}},
                   {"name": "regular", "configuration": {"chunk_shape": [5, 2]}}],
    "chunk_key_encoding": [None, {"name": "v2"}, {"name": "default", "configuration": {"separator": "."}}],
    "data_type": [None, "object", "complex128", {"name": "numpy.datetime64"}, "string", "V8", "float128"],
    "codecs": [None, [], [{"name": "numcodecs.pickle"}], [{"name": "bytes"}, {"name": "numcodecs.zlib"}],
               ["bytes"], [{"name": "bytes", "configuration": {"endian": "middle"}}], [{"name": "sharding_indexed"}],
               [{"name": "bytes"}, {"name": "vlen-utf8"}], [{"name": "bytes", "configuration": None}],
               [{"name": "bytes"}, {"name": "zstd", "configuration": {"level": "x"}}],
               [{"name": "bytes"}, {"name": "blosc", "configuration": {"cname": "pickle"}}],
               [{"name": "crc32c"}, {"name": "bytes"}]],
    "fill_value": [None, "x", [], {}],
    "storage_transformers": [[{"name": "any"}]],
}  # fmt: skip


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in WRONG.items() for value in values])
def test_every_part_of_a_node_is_checked(recorded: Path, key: str, value: Any) -> None:
    tree = nodes(recorded)
    check_nodes(tree, 1)
    tree["performance/accuracy"][key] = value
    with pytest.raises(Fault, match="performance/accuracy"):
        check_nodes(tree, 1)


@pytest.mark.parametrize("key", ["../../etc/x", "/etc/x", "a/../../b", "performance//x", "", "nowhere/x", "a\0b"])
def test_nodes_stay_inside_the_run(recorded: Path, key: str) -> None:
    tree = nodes(recorded)
    with pytest.raises(Fault, match="has no place inside the run|is in no group"):
        check_nodes({**tree, key: tree["performance/accuracy"]}, 1)


def test_labels_of_rows_are_checked(recorded: Path) -> None:
    for key in ("performance/step", "performance/epoch"):
        tree = nodes(recorded)
        tree[key] = {**tree["performance/train_task"], "dimension_names": ["step"]}
        with pytest.raises(Fault, match="it labels rows"):
            check_nodes(tree, 1)


def test_coordinates_are_listed(recorded: Path) -> None:
    tree = nodes(recorded)
    tree["performance"]["attributes"]["coordinates"] = ""
    with pytest.raises(Fault, match="is not among the coordinates of its group"):
        check_nodes(tree, 1)


def test_labels_of_dimensions_are_checked(recorded: Path) -> None:
    tree = nodes(recorded)
    tree["performance/eval_set"]["dimension_names"] = ["x"]
    with pytest.raises(Fault, match="it labels eval_set"):
        check_nodes(tree, 1)


def test_numcodecs_is_required_from_the_version_on_that_does_not_unpickle() -> None:
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    needed = next(r for r in map(Requirement, project["dependencies"]) if r.name == "numcodecs")
    assert not needed.specifier.contains("0.16.5") and needed.specifier.contains("0.16.6")
    assert needed.specifier.contains(numcodecs.__version__)
