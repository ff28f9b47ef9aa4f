"""How many functions one accuracy passes on its way from the trainer to the report, and how much code there is.

The accuracy is the macro accuracy on `t2_shortcut_masked` at the checkpoint of one seed of a tiny study, the number
that becomes `masked_accuracy` and a part of SFR. The study is trained once to learn the number, and to see that nothing
else that was recorded is the same (but the plain accuracy, in the last bit another one: classes are balanced). Then it
is trained again, measured and written as `waterjar report` does it, under a trace of all calls in the package.

Two counts. A function is *on the way* when the number itself comes to it and goes on from it: down into the run's file
or the page (the ends of the way, ENDS), or up to a caller from which it goes on. A function *uses* the number when it
is handed it or returns it, whatever becomes of it there: a mean, a p value, a checksum.

It is looked for in numbers, arrays, bytes, texts, containers and objects of diagnose and view; other objects, such as a
recorder, are not looked into. Numbers are compared bit by bit, as float64 or as float32; a text has it if it prints it,
rightly rounded, with 6 decimals or more, in view and cli with 3 or more. Comprehensions and lambdas belong to the
function around them; the `__init__` of a dataclass is nobody's code.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import inspect
import io
import os
import re
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
import yaml

MOST, DEPTH = 20_000, 8  # items of a container that are looked at; containers within each other
ENDS = {
    ("run/store.py", "LocalStore.put"),
    ("run/store.py", "LocalStore.patch"),
    ("view/report/formats.py", "write"),
}
"""The functions that write the run's file and the page; what they keep beside the runs, in .waterjar, is no end."""
COMPREHENSIONS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>")
IMAGES = {"alphabets": 4, "characters": 3, "train_per_class": 48, "test_per_class": 151, "tremor": 0.3, "strays": 0}
STUDY = """
{kind: einstellung, seeds: [1, 2], backbones: [mlp], scenarios: [scratch_t2, sequential], resources: {device: cpu},
strategies: [{learner: sgd, settings: {lr: 0.05}}], baseline: {lr: 0.05}, recording: {class_accuracy: false},
tasks: {t1_superclasses: [0, 1], t2_superclasses: [2, 3], shortcut_superclasses: [3], validation: 0.25},
training: {epochs_t1: 3, epochs_t2: 3, batch_size: 8}}
"""


def train(out: Path, draw: int) -> None:
    """Train the study in this process; `draw` is the seed of its images."""
    from waterjar.lab import study  # noqa: PLC0415 - --src comes first

    data = {"name": "glyphs", "settings": {**IMAGES, "seed": draw}}
    study.run(study.declare({**yaml.safe_load(STUDY), "data": data}), out, executor=AtOnce())


class AtOnce:
    """An executor that has done the call when `submit` returns."""

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args))
        return future


def unmistakable(folder: Path) -> float | None:
    """The accuracy of the first seed that nothing else equals, neither in float64 nor with three decimals."""
    import waterjar  # noqa: PLC0415

    runs = list(waterjar.open_study(folder))
    arrays = [array.values for run in runs for group in ("performance", "train") for array in run[group].values()]
    recorded = np.concatenate([array.ravel() for array in arrays if array.dtype.kind == "f"])
    for run in (run for run in runs if run.config["scenario"] == "sequential"):
        data = run["performance"]
        rows = np.flatnonzero((data["train_task"].values == "t2") & (data["effective_epoch"].values > 0))
        best = rows[data["accuracy"].sel(eval_set="t2_validation").values.ravel()[rows].argmax()]
        value = float(data["macro_accuracy"].sel(eval_set="t2_shortcut_masked").values.ravel()[best])
        alone = (recorded == value).sum() == 1 and (np.round(recorded, 3) == round(value, 3)).sum() == 2
        # At the first epoch the trailing mean of the curves is the number, too; and with three decimals a small number
        # has few digits, so that others which are worked out from the run look like it.
        if alone and best > rows[0] and value >= 0.1:
            return value
    return None


def is_in(data: object, value: float, decimals: int) -> bool:
    """Whether a number, a text, bytes or an array is it or has it."""
    if isinstance(data, float | np.floating):
        return bool(data == type(data)(value))
    if isinstance(data, str):
        start = f"{value:.9f}"[:4]  # what every print of it begins with
        found = re.findall(rf"(?<![\d.]){re.escape(start)}\d+", data) if start in data else ()
        long = (token for token in found if len(token) - 2 >= decimals)
        return any(token in (repr(value), f"{value:.{len(token) - 2}f}") for token in long)
    if isinstance(data, bytes | bytearray | memoryview):
        return struct.pack("<d", value) in bytes(data)
    if isinstance(data, xr.DataArray):
        data = data.variable
    if isinstance(data, pd.Series) or (isinstance(data, xr.Variable) and data._in_memory):  # no lazy one is loaded
        data = np.asarray(data)
    if not isinstance(data, np.ndarray):
        return False
    if data.dtype == object:
        return any(is_in(item, value, decimals) for item in data.ravel()[:MOST].tolist())
    return data.dtype in (np.float64, np.float32) and bool((data == data.dtype.type(value)).any())


def parts(data: object) -> list[Any]:
    """What a container of data holds; nothing of what is none."""
    if isinstance(data, xr.Dataset):
        return list(data.variables.values())
    if isinstance(data, pd.DataFrame):
        return [data.iloc[:, i] for i in range(data.shape[1])]
    if isinstance(data, Mapping | list | tuple | set | frozenset):
        return list(data.values() if isinstance(data, Mapping) else data)[:MOST]
    if dataclasses.is_dataclass(data) and type(data).__module__.startswith("waterjar"):
        return [getattr(data, field.name, None) for field in dataclasses.fields(data)]
    if type(data).__module__.startswith(("waterjar.diagnose", "waterjar.view")):
        return list(getattr(data, "__dict__", {}).values())
    return []


def takes(argument: object, value: float, decimals: int) -> bool:
    """Whether an argument is it, has it in an array, or is a row of numbers with it."""
    row = (part for part in parts(argument) if isinstance(part, float | np.floating | str))
    return any(is_in(part, value, decimals) for part in (argument, *row))


def is_within(data: object, value: float, decimals: int, depth: int = DEPTH) -> bool:
    """Whether any container has it somewhere."""
    if is_in(data, value, decimals):
        return True
    return depth > 0 and any(is_within(part, value, decimals, depth - 1) for part in parts(data))


def given(frame: FrameType) -> list[Any]:
    """The arguments of a call."""
    names, args, kwargs, local = inspect.getargvalues(frame)
    more = [*(local[args] if args else ()), *(local[kwargs].values() if kwargs else ())]
    return [*(local[name] for name in names if name in local), *more]


@dataclasses.dataclass
class Call:
    """One call in the package that had to do with the number, or called one that had."""

    name: tuple[str, str]
    """File and function."""
    when: int
    arguments: list[Any]
    takes: bool
    """Whether it is handed the number, and not a large object that has it somewhere."""
    is_end: bool
    comes_in: bool = False
    goes_out: bool = False
    in_bytes: bool = False
    """Whether what it returns is for a file, and for nobody else."""
    calls: list[Call] = dataclasses.field(default_factory=list)


class Trace(threading.local):
    """For sys.setprofile: the calls of a package in which the number is seen."""

    def __init__(self, value: float, package: Path, seen: list[Call]) -> None:
        self.value, self.package, self.seen = value, str(package) + os.sep, seen
        self.names: dict[CodeType, tuple[str, str] | None] = {}
        self.stack: list[Call] = []

    def name_of(self, code: CodeType) -> tuple[str, str] | None:
        """(file, function); None for what is not ours, and for comprehensions, which are part of a call under way."""
        file = code.co_filename
        if not file.startswith(self.package) or not file.endswith(".py") or code.co_name in COMPREHENSIONS:
            return None
        return file.removeprefix(self.package), re.sub(r"(\.<locals>)?\.?<lambda>.*", "", code.co_qualname)

    def __call__(self, frame: FrameType, event: str, result: object) -> None:
        if event not in ("call", "return"):
            return
        if frame.f_code not in self.names:
            self.names[frame.f_code] = self.name_of(frame.f_code)
        name = self.names[frame.f_code]
        if name is None:
            return
        sought = (self.value, 3 if name[0].startswith(("view", "cli")) else 6)
        if event == "call":
            arguments = given(frame)
            went_in = any(takes(argument, *sought) for argument in arguments)
            beside = any(isinstance(argument, str) and argument.startswith(".waterjar") for argument in arguments)
            is_end = name in ENDS and not beside
            self.stack.append(Call(name, time.perf_counter_ns(), arguments, went_in, is_end))
        elif self.stack:
            call = self.stack.pop()
            call.comes_in = call.takes or any(is_within(argument, *sought) for argument in call.arguments)
            made = call.arguments[0] if frame.f_code.co_name == "__init__" and call.arguments else result
            call.goes_out, call.in_bytes = is_within(made, *sought), isinstance(made, bytes)
            call.arguments = []
            if call.comes_in or call.goes_out or call.calls:
                (self.stack[-1].calls if self.stack else self.seen).append(call)


def on_the_way(call: Call, wanted: bool, found: dict[tuple[str, str], int]) -> bool:
    """Whether the number goes on from a call to an end; those that it does are found. Is what it returns `wanted`?"""
    wanted = wanted and call.goes_out
    down = False
    goes_on = wanted or call.is_end  # what an end calls, it writes
    for inner in reversed(call.calls):  # what one returns is wanted if another, later, hands it on
        if on_the_way(inner, down if inner.in_bytes else goes_on, found) and inner.comes_in:
            down = goes_on = True
    got = call.comes_in or any(inner.goes_out for inner in call.calls)
    if (call.is_end and call.comes_in) or wanted or (got and down):
        found[call.name] = min(call.when, found.get(call.name, call.when))
    return call.comes_in and (down or call.is_end)


def using(call: Call, found: dict[tuple[str, str], int]) -> bool:
    """Whether a call is handed the number or hands it on; all that do, or return it, are found."""
    handed = [using(inner, found) and inner.comes_in for inner in call.calls]
    took = call.takes or any(handed)
    if took or call.goes_out:
        found[call.name] = min(call.when, found.get(call.name, call.when))
    return took


def passage(package: Path) -> tuple[float, list[tuple[str, str]], list[tuple[str, str]]]:
    """The number, the functions on its way, and all that use it."""
    from waterjar.cli.main import app  # noqa: PLC0415

    seen: list[Call] = []
    with tempfile.TemporaryDirectory() as folder:
        for draw in range(64):
            train(Path(folder, str(draw)), draw)
            if (value := unmistakable(Path(folder, str(draw)))) is not None:
                break
        else:
            raise SystemExit("no accuracy is unlike all others: change IMAGES")
        again, trace = Path(folder, "again"), Trace(value, package, seen)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            threading.setprofile(trace)
            sys.setprofile(trace)
            try:
                train(again, draw)
                app(["report", str(again)], standalone_mode=False)
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
        if unmistakable(again) != value or not (again / "report.html").exists():
            raise SystemExit("the second training was not the first one again, or there is no report")
    way: dict[tuple[str, str], int] = {}
    users: dict[tuple[str, str], int] = {}
    for call in seen:
        on_the_way(call, False, way)
        using(call, users)
    if len(way.keys() & ENDS) < 2:
        raise SystemExit("the way does not lead to the run's file and to the page: ENDS names functions that are gone")
    return value, sorted(way, key=way.__getitem__), sorted(users, key=users.__getitem__)


def lines(package: Path) -> dict[str, int]:
    """Folder -> lines of Python; of diagnose, lab and view also their folders."""
    found: Counter[str] = Counter()
    for file in package.rglob("*.py"):
        count = len(file.read_text(encoding="utf-8").splitlines())
        first, *rest = file.relative_to(package).parts
        found[first if rest else "(top)"] += count
        if rest and first in ("diagnose", "lab", "view"):
            found[f"{first}/{rest[0] if len(rest) > 1 else '(files)'}"] += count
    return dict(sorted(found.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--src", type=Path, help="folder that holds the package; by default the installed one")
    parser.add_argument("--list", action="store_true", help="name the functions, in their order")
    asked = parser.parse_args()
    if asked.src is not None:
        sys.path.insert(0, str(asked.src.resolve()))
    import waterjar  # noqa: PLC0415

    package = Path(waterjar.__file__).parent
    value, way, users = passage(package)
    print(f"the accuracy {value!r}")
    for what, functions in (("on its way", way), ("that use it", users)):
        folders = Counter(file.partition("/")[0] for file, _ in functions)
        print(f"functions {what}: {len(functions)}")
        print("  " + ", ".join(f"{folder} {count}" for folder, count in folders.items()))
        if asked.list:
            print("\n".join(f"  {i:3} {file} {name}" for i, (file, name) in enumerate(functions, 1)))
    counted = lines(package)
    print(f"lines of Python: {sum(count for folder, count in counted.items() if '/' not in folder)}")
    for folder, count in counted.items():
        print(f"  {'  ' * ('/' in folder)}{folder:22} {count:6}")


if __name__ == "__main__":
    main()
