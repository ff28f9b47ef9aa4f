"""How the frozen studies came about: recorded and measured by the code before the redesign.

With that code on the path, and any .npz with CIFAR-100 as `waterjar.lab.data.cifar100` takes it (superclasses 0, 8, 9
and 10 at least):

    PYTHONPATH=<the old src>:tests python -m before.freeze CIFAR.npz [name ...]

That code did not read a study's `analysis`, so that nothing given means the defaults here. Made anew, the numbers of a
study are others than those kept here (its clocks, for one): this is a record, not a step of the tests. What the old
code makes of the kept runs on another machine, for WATERJAR_BEFORE of the tests:

    PYTHONPATH=<the old src>:tests python -m before.freeze --measure FOLDER
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tarfile
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
import yaml

from before.frozen import HERE, META, STUDIES, cases, unpack
from waterjar import Study, WaterjarError, open_study

SUPERCLASSES = (0, 8, 9, 10)
TRAIN, TEST = 300, 20  # images a class: enough to learn something in few epochs
LEFT_OUT = ("data", "checkpoints", "diagnostics", "index.json", "seals.json")  # in the study's .waterjar
THRESHOLDS = [0.2, 0.3, 0.4]


def small_cifar(source: Path, target: Path) -> None:
    """The first images of each class of a few superclasses."""
    kept = {}
    with np.load(source, allow_pickle=False) as arrays:
        for split, number in (("train", TRAIN), ("test", TEST)):
            fine, coarse = arrays[f"{split}_fine"], arrays[f"{split}_coarse"]
            classes = np.unique(fine[np.isin(coarse, SUPERCLASSES)])
            rows = np.sort(np.concatenate([np.flatnonzero(fine == one)[:number] for one in classes]))
            names = [f"{split}_{end}" for end in ("x", "fine", "coarse", "index") if f"{split}_{end}" in arrays]
            kept |= {name: arrays[name][rows] for name in names}
    np.savez(target, **kept)


def record(name: str, data: Path, out: Path) -> None:
    """Run the declared study in this process, without a word about this machine."""
    from waterjar.lab import study
    from waterjar.run import provenance

    provenance.host_class = lambda: {
        "system": platform.system(),
        "machine": platform.machine(),
        "processor": "",
        "cores": None,
        "memory_bytes": None,
        "accelerators": [],
    }
    content = yaml.safe_load((HERE / f"{name}.yaml").read_text())
    content["data"]["settings"]["path"] = str(data)
    with ThreadPoolExecutor(1) as executor:
        study.run(study.declare(content, name), out, executor=executor)


def pack(folder: Path, target: Path) -> None:
    """Runs, study.yaml, ledger and .waterjar/declared.json. One stream for all files: they have much in common."""
    found = [file.relative_to(folder) for file in folder.rglob("*") if file.is_file()]
    kept = [file for file in found if file.parts[0] != ".waterjar" or file.parts[1] not in LEFT_OUT]
    with tarfile.open(target, "w:xz", preset=9) as archive:
        for file in sorted(kept, key=lambda file: (file.parts[1:], file.parts[0])):
            about = tarfile.TarInfo(file.as_posix())
            about.size = (folder / file).stat().st_size
            with (folder / file).open("rb") as content:
                archive.addfile(about, content)


def frozen_results(name: str, study: Study) -> dict[str, np.ndarray]:
    """Every variable of every case. Numbers go by `<case>/<family>/<variable>`; `meta` is JSON in bytes, and has

    settings   case -> family -> those given
    defaults   family -> all of its settings
    refused    case -> family -> why
    variables  `<case>/<family>/<variable>` -> dims, attrs, whether it is a coordinate; of text also its values; of
               numbers that another variable has to the bit, its name under `same_as`
    table, compare, sensitivity   as CSV, with what they were asked for
    """
    from waterjar.diagnose.registry import families

    arrays: dict[str, np.ndarray] = {}
    first: dict[tuple[Any, ...], str] = {}
    given = cases(name)
    meta: dict[str, Any] = {"settings": given, "refused": {case: {} for case in given}, "variables": {}}
    meta["defaults"] = {family: families()[family].settings({}) for family in given["default"]}
    for case, of_families in given.items():
        for family, settings in of_families.items():
            try:
                result = families()[family].measure(study, **settings)
            except WaterjarError as error:
                meta["refused"][case][family] = str(error).replace(str(study.path), name)
                continue
            for variable, item in result.variables.items():
                key = f"{case}/{family}/{variable}"
                meta["variables"][key] = _about(item) | {"coordinate": variable in result.coords}
                if item.dtype.kind in "OU":
                    meta["variables"][key]["values"] = item.values.tolist()
                    continue
                bits = (item.dtype.str, item.shape, item.values.tobytes())
                if bits in first:
                    meta["variables"][key]["same_as"] = first[bits]
                else:
                    first[bits] = key
                    arrays[key] = item.values
    meta |= _tables(name, study)
    return arrays | {META: np.frombuffer(json.dumps(meta).encode(), np.uint8)}


def _about(item: xr.Variable) -> dict[str, Any]:
    attrs = {key: value.tolist() if hasattr(value, "tolist") else value for key, value in item.attrs.items()}
    return {"dims": list(item.dims), "attrs": attrs}


def _tables(name: str, study: Study) -> dict[str, Any]:
    """What the user sees: the tidy table, cells against the baseline, and AD over thresholds."""
    from waterjar.diagnose.compare import compare_cells
    from waterjar.diagnose.sensitivity import sensitivity
    from waterjar.diagnose.study import diagnose
    from waterjar.view.figures._series import that_matter

    diagnosis = diagnose(study)
    names = that_matter(diagnosis)
    baseline = next(iter(study.cell_names.values())) if name.startswith("binary") else "scratch_t2"
    compared = compare_cells(diagnosis, names, baseline=baseline)
    found = {
        "table": diagnosis.table().to_csv(index=False),
        "passed_over": {family: why.replace(str(study.path), name) for family, why in diagnosis.passed_over.items()},
        "compare": {"metrics": names, "baseline": baseline, "csv": compared.to_csv(index=False)},
    }
    if not name.startswith("binary"):
        means, _ = sensitivity(study, "ad_restricted", "threshold", values=THRESHOLDS)
        found["sensitivity"] = {"metric": "ad_restricted", "values": THRESHOLDS, "csv": means.to_csv(index=False)}
    return found


def main() -> None:
    """Record, pack and measure the studies that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cifar", type=Path, nargs="?")
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--measure", type=Path, help="keep the recorded runs, and measure them into this folder")
    told = parser.parse_args()
    if (told.cifar is None) == (told.measure is None):
        parser.error("expected a file with CIFAR-100, or --measure and a folder")
    target = HERE if told.measure is None else told.measure.resolve()
    cifar = None if told.cifar is None else told.cifar.resolve()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        os.chdir(folder)  # outside of any repository, whose commit the runs would name
        for name in told.names or STUDIES:
            if cifar is not None:
                small_cifar(cifar, folder / "cifar100.npz")
                record(name, folder / "cifar100.npz", folder / f"{name}-recorded")
                pack(folder / f"{name}-recorded", HERE / f"{name}.tar.xz")
            study = open_study(unpack(name, folder))
            np.savez_compressed(target / f"{name}.npz", **frozen_results(name, study))


if __name__ == "__main__":
    main()
