"""CIFAR-100 from a fake archive in the official form, from the real data where present, and from hostile files."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import io
import os
import pickle
import struct
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from waterjar.errors import WaterjarError
from waterjar.lab.data import ImageData, channel_statistics, cifar100, load
from waterjar.lab.data.cifar100 import CLASS_NAMES, CLASSES_OF_SUPERCLASS, SUPERCLASS_NAMES, superclass_of_class

REAL = Path(__file__).resolve().parents[3] / "../shared/data/cifar100_12super.npz"
RNG = np.random.default_rng(0)
FINE = {"train": np.tile(np.arange(100), 2), "test": np.arange(100)[::-1]}
DATA = {split: RNG.integers(0, 256, (len(fine), 3072), dtype=np.uint8) for split, fine in FINE.items()}


class Python2Pickler(pickle._Pickler):
    """Writes what Python 2 wrote with protocol 2, as the official archive holds: text and bytes are both str."""

    dispatch = pickle._Pickler.dispatch.copy()

    def _save_str(self, value: str | bytes) -> None:
        raw = value.encode("latin1") if isinstance(value, str) else value
        self.write(pickle.BINSTRING + struct.pack("<i", len(raw)) + raw)
        self.memoize(value)

    dispatch[str] = _save_str
    dispatch[bytes] = _save_str


def python2_pickle(value: object) -> bytes:
    stream = io.BytesIO()
    Python2Pickler(stream, protocol=2).dump(value)
    return stream.getvalue().replace(b"numpy._core.multiarray", b"numpy.core.multiarray")


def members() -> dict[str, bytes]:
    owner = superclass_of_class()
    stored = {
        split: {
            "filenames": [f"{split}_{k}.png" for k in range(len(fine))],
            "batch_label": f"{split}ing batch 1 of 1",
            "fine_labels": fine.tolist(),
            "coarse_labels": owner[fine].tolist(),
            "data": DATA[split],
        }
        for split, fine in FINE.items()
    }
    meta = {"fine_label_names": list(CLASS_NAMES), "coarse_label_names": list(SUPERCLASS_NAMES)}
    return {name: python2_pickle(value) for name, value in {**stored, "meta": meta}.items()}


def archive(contents: dict[str, bytes], prefix: str = "cifar-100-python/") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as tar:
        for name, data in contents.items():
            info = tarfile.TarInfo(f"{prefix}{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return stream.getvalue()


MEMBERS = members()
ARCHIVE = archive(MEMBERS)


def md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our small archive is the official one."""
    monkeypatch.setattr(cifar100, "ARCHIVE_MD5", md5(ARCHIVE))
    monkeypatch.setattr(cifar100, "MEMBER_MD5", {name: md5(data) for name, data in MEMBERS.items()})


def check(data: ImageData) -> None:
    assert data.name == "cifar100" and data.train_images.shape == (200, 32, 32, 3)
    for split, images, labels, index in (
        ("train", data.train_images, data.train_labels, data.train_index),
        ("test", data.test_images, data.test_labels, data.test_index),
    ):
        assert images.flags.c_contiguous
        assert np.array_equal(labels, FINE[split]) and np.array_equal(index, np.arange(len(labels)))
        for k in (0, 41, 99):
            planes = DATA[split][k].reshape(3, 32, 32)  # red, green and blue planes, rows from the top
            assert all(np.array_equal(images[k, ..., channel], planes[channel]) for channel in range(3))


@pytest.mark.usefixtures("fake")
def test_archive_directory_and_unpacked_parent_give_the_same_data(tmp_path: Path) -> None:
    path = tmp_path / "cifar-100-python.tar.gz"
    path.write_bytes(ARCHIVE)
    folder = tmp_path / "cifar-100-python"
    folder.mkdir()
    for name, data in MEMBERS.items():
        (folder / name).write_bytes(data)
    loaded = [load("cifar100", path=where) for where in (path, folder, tmp_path)]
    check(loaded[0])
    assert len({data.fingerprint for data in loaded}) == 1


@pytest.mark.usefixtures("fake")
def test_an_npz_in_any_order_gives_the_same_data(tmp_path: Path) -> None:
    owner, arrays = superclass_of_class(), {}
    for split, fine in FINE.items():
        order = RNG.permutation(len(fine))
        arrays |= {
            f"{split}_x": DATA[split].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)[order],
            f"{split}_fine": fine[order].astype(np.uint8),
            f"{split}_coarse": owner[fine][order].astype(np.uint8),
            f"{split}_index": order.astype(np.int32),
        }
    np.savez(tmp_path / "all.npz", **arrays)
    from_npz = load("cifar100", path=tmp_path / "all.npz")
    check(from_npz)
    (tmp_path / "a.tar.gz").write_bytes(ARCHIVE)
    assert from_npz.fingerprint == load("cifar100", path=tmp_path / "a.tar.gz").fingerprint


def test_the_table_is_a_table() -> None:
    assert len(SUPERCLASS_NAMES) == 20 and len(set(CLASS_NAMES)) == 100
    assert all(len(names) == 5 for names in CLASSES_OF_SUPERCLASS.values())
    assert np.bincount(superclass_of_class()).tolist() == [5] * 20
    assert (CLASS_NAMES[0], CLASS_NAMES[47], CLASS_NAMES[99]) == ("apple", "maple_tree", "worm")


@pytest.mark.skipif(not REAL.exists(), reason="no CIFAR-100 beside the repository")
def test_the_table_is_that_of_the_real_data() -> None:
    data = load("cifar100", path=REAL)  # refuses labels that do not fit the table
    assert len(data.present_classes) == 60 and np.bincount(data.train_labels).max() == 500
    assert data.classes_of([8]).tolist() == [3, 42, 43, 88, 97]
    assert (np.diff(data.train_index) > 0).all() and data.train_index.max() < 50_000
    with np.load(REAL, allow_pickle=False) as file:
        names = [str(name) for name in file["fine_names"]]
        assert [name.removesuffix("_tree") for name in CLASS_NAMES] == [n.removesuffix("_tree") for n in names]
        assert [str(name) for name in file["coarse_names"]] == list(SUPERCLASS_NAMES)
        mean, std = channel_statistics(data.train_images)
        # Published for all 100 classes; this file holds 60 of them.
        np.testing.assert_allclose(mean, (0.5071, 0.4867, 0.4408), atol=0.02)
        np.testing.assert_allclose(std, (0.2675, 0.2565, 0.2761), atol=0.02)
        row = int(np.flatnonzero(file["train_index"] == data.train_index[12_345])[0])
        assert np.array_equal(file["train_x"][row], data.train_images[12_345])
        assert file["train_fine"][row] == data.train_labels[12_345]
    with pytest.raises(WaterjarError, match=r"superclass 12 \(medium_mammals\) has no images in this copy"):
        data.classes_of([12])


# Bad data.


def test_missing_data_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATERJAR_DATA", str(tmp_path / "home"))
    with pytest.raises(WaterjarError) as error:
        load("cifar100")
    text = str(error.value)
    assert f"CIFAR-100 is not at {tmp_path}/home/cifar-100-python.tar.gz" in text
    assert "`download: true`" in text and f"curl --create-dirs -o '{tmp_path}/home/cifar" in text
    monkeypatch.delenv("WATERJAR_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(WaterjarError, match=f"{tmp_path}/waterjar/cifar-100"):
        load("cifar100")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(WaterjarError, match=f"{tmp_path}/.cache/waterjar/cifar-100"):
        load("cifar100")
    with pytest.raises(WaterjarError, match=r"cannot be .*\.npz"):
        load("cifar100", path=tmp_path / "x.npz", download=True)


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize("keep", [0, 10, 1000, len(ARCHIVE) // 2, len(ARCHIVE) * 9 // 10])
def test_a_truncated_archive_is_one_error(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "a.tar.gz"
    path.write_bytes(ARCHIVE[:keep])
    with pytest.raises(WaterjarError, match=r"not a readable archive|lacks|md5"):
        load("cifar100", path=path)


@pytest.mark.usefixtures("fake")
def test_other_archives_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    for contents, match in (
        (b"not an archive at all", "not a readable archive"),
        (archive({"train": MEMBERS["train"]}), "lacks test, meta"),
        (archive({**MEMBERS, "test": MEMBERS["test"] + b"."}), "'test' does not have the published md5"),
    ):
        path.write_bytes(contents)
        with pytest.raises(WaterjarError, match=match):
            load("cifar100", path=path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(WaterjarError, match="lacks train, test, meta"):
        load("cifar100", path=tmp_path / "empty")


def test_members_that_lead_out_of_the_archive_are_neither_read_nor_written(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "a.tar.gz").write_bytes(archive(dict.fromkeys(MEMBERS, b"x"), prefix="../"))
    with pytest.raises(WaterjarError, match="lacks train, test, meta"):
        load("cifar100", path=inside / "a.tar.gz")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.tar.gz", "inside"]


@pytest.mark.parametrize("link", ["symlink", "hardlink"])
def test_links_in_the_archive_are_not_followed(tmp_path: Path, link: str) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(MEMBERS["train"])
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as tar:
        info = tarfile.TarInfo("cifar-100-python/train")
        info.type = tarfile.SYMTYPE if link == "symlink" else tarfile.LNKTYPE
        info.linkname = str(secret)
        tar.addfile(info)
    with pytest.raises(WaterjarError, match="lacks train, test, meta"):
        load("cifar100", path=tmp_path / "a.tar.gz")


@pytest.mark.parametrize(
    ("split", "key", "value", "match"),
    [
        ("train", "data", DATA["train"].astype(np.float32), "images are float32"),
        ("train", "data", DATA["train"][:, :-1], r"not \(n, 3072\)"),
        ("train", "fine_labels", [0] * 199, "200 train images, but labels"),
        ("train", "fine_labels", [100] + [0] * 199, "train labels outside 0 to 99"),
        ("test", "coarse_labels", [0] * 100, "the superclasses of the test images are not those of CIFAR-100"),
        ("meta", "fine_label_names", ["apple"], "does not name the 100 classes"),
        ("train", "data", None, "lacks data"),
    ],
)
def test_wrong_contents_with_right_checksums_are_still_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split: str, key: str, value: object, match: str
) -> None:
    stored = cifar100.read_plain_pickle(MEMBERS[split], split)
    changed = {name: item for name, item in {**stored, key: value}.items() if item is not None}
    contents = {**MEMBERS, split: python2_pickle(changed)}
    monkeypatch.setattr(cifar100, "MEMBER_MD5", {name: md5(data) for name, data in contents.items()})
    (tmp_path / "a.tar.gz").write_bytes(archive(contents))
    with pytest.raises(WaterjarError, match=match):
        load("cifar100", path=tmp_path / "a.tar.gz")


# Download, from a server on this machine.


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory that a loopback server serves, with cifar100.URL pointing into it."""
    served = tmp_path / "served"
    served.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=served)) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        host, port = running.server_address[:2]
        monkeypatch.setattr(cifar100, "URL", f"http://{host}:{port}/cifar-100-python.tar.gz")
        yield served
        running.shutdown()
        thread.join()


@pytest.mark.usefixtures("fake")
def test_download_fetches_once_and_shows_how_far(
    server: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (server / "cifar-100-python.tar.gz").write_bytes(ARCHIVE)
    target = tmp_path / "new" / "cifar-100-python.tar.gz"
    check(load("cifar100", path=target, download=True))
    assert "cifar-100-python.tar.gz" in capsys.readouterr().err
    (server / "cifar-100-python.tar.gz").unlink()
    check(load("cifar100", path=target, download=True))
    assert [path.name for path in target.parent.iterdir()] == ["cifar-100-python.tar.gz"]


@pytest.mark.usefixtures("fake")
def test_a_download_with_another_checksum_is_not_kept(server: Path, tmp_path: Path) -> None:
    (server / "cifar-100-python.tar.gz").write_bytes(ARCHIVE[:-1])
    with pytest.raises(WaterjarError, match=r"arrived with md5 .* Nothing was kept"):
        load("cifar100", path=tmp_path / "x" / "a.tar.gz", download=True)
    assert list((tmp_path / "x").iterdir()) == []


@pytest.mark.usefixtures("server")
def test_a_server_without_the_file_or_no_server_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WaterjarError, match=r"could not be fetched: HTTP Error 404"):
        load("cifar100", path=tmp_path / "x" / "a.tar.gz", download=True)
    monkeypatch.setattr(cifar100, "URL", "http://127.0.0.1:9/a.tar.gz")
    with pytest.raises(WaterjarError, match="could not be fetched"):
        load("cifar100", path=tmp_path / "x" / "a.tar.gz", download=True)
    assert list((tmp_path / "x").iterdir()) == []


def test_a_member_that_unpacks_to_more_than_the_data_is_not_read(tmp_path: Path) -> None:
    """A gigabyte of zeros, by the size of a member, or by that of a header that tarfile reads into memory."""
    for kind, name in ((tarfile.REGTYPE, "cifar-100-python/train"), (tarfile.XHDTYPE, "x"), (tarfile.REGTYPE, "other")):
        info = tarfile.TarInfo(name)
        info.size, info.type = 10**9, kind
        file = tmp_path / "a.tar.gz"
        with gzip.open(file, "wb", compresslevel=1) as packed:
            packed.write(info.tobuf())
            for _ in range(300):
                packed.write(bytes(2**20))
        with pytest.raises(WaterjarError, match="unpacks to more than 268435456 bytes"):
            load("cifar100", path=file)


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tar.gz")
    with pytest.raises(WaterjarError, match="is neither a file nor a directory"):
        load("cifar100", path=tmp_path / "pipe.tar.gz")
    os.mkfifo(tmp_path / "pipe.npz")
    with pytest.raises(WaterjarError, match="there is no file"):
        load("npz", path=tmp_path / "pipe.npz")
