"""tests/parts_from_outside, a package with one part for every shelf, used as our own are; and what goes wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import outside
import waterjar
from waterjar.cli.main import app
from waterjar.errors import WaterjarError

pytest.importorskip("torch")
from lab.study.in_this_process import InThisProcess
from waterjar.diagnose import registry
from waterjar.diagnose.catalogue import catalogue
from waterjar.lab import study as studies
from waterjar.run.shelf import SHELVES
from waterjar.testing import check_metric

EINSTELLUNG = """
kind: einstellung
data: {name: stripes, settings: {per_class: 8}}
seeds: [1, 2]
backbones: [{name: narrow, settings: {units: 5}}]
strategies: [halving, sgd]
scenarios: [scratch_t2, sequential]
tasks: {t1_superclasses: [0, 1], t2_superclasses: [2, 3], shortcut_superclasses: [3], validation: 0.25}
shortcut: {kind: edge, settings: {height: 2}}
training: {epochs_t1: 1, epochs_t2: 2, batch_size: 8}
analysis: {families: [cost], figures: [last_accuracy], lead: cost}
"""
BINARY = """
kind: binary
data: {name: stripes, settings: {per_class: 8}}
tasks: {number: 2}
repeats: 2
algorithms: [sl, {learner: sl, options: [{name: decay, settings: {strength: 0.5}}]}]
network: {name: narrow}
training: {epochs: 2, batch_size: 8}
experts: false
recording: {features: [], weights: true}
analysis: {families: [continual]}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The package, installed for this process and those that it starts."""
    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), *sys.path]))
        outside.install(folder)
        outside.forget(folder)
        yield folder
        outside.forget(folder)


@pytest.fixture(autouse=True)
def _as_installed(site: Path) -> Iterator[None]:
    """Whatever a test installs beside it is gone after it."""
    before = set(site.iterdir())
    yield
    for added in set(site.iterdir()) - before:
        if added.suffix == ".dist-info":
            for file in added.iterdir():
                file.unlink()
            added.rmdir()
    outside.install(site)
    outside.forget(site)


def trained(text: str, folder: Path) -> Path:
    file = folder / "study.yaml"
    file.write_text(text)
    studies.run(studies.read(file), folder / "study", executor=InThisProcess(), poll_seconds=0)
    return folder / "study"


@pytest.fixture(scope="module")
def einstellung(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(EINSTELLUNG, tmp_path_factory.mktemp("einstellung"))


def command(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def sessions(run: waterjar.Run) -> list[dict[str, Any]]:
    return run.attributes["provenance"]["sessions"]


class TestTraining:
    def test_data_shortcut_network_and_learner_are_used_and_recorded(self, einstellung: Path) -> None:
        runs = {run.path.name.rpartition("-")[0]: run for run in waterjar.open_study(einstellung)}
        assert sorted(runs) == sorted(
            f"{name}-narrow-{seed}"
            for name in ("scratch_t2-sgd", "sequential-halving", "sequential-sgd")
            for seed in (1, 2)
        )
        one = runs["sequential-halving-narrow-1"]
        assert one.status == "sealed"
        shared = {"data.stripes", "shortcuts.edge", "networks.narrow"}
        (session,) = sessions(one)
        assert session["parts"] == dict.fromkeys([*shared, "learners.halving"], "strange-parts 1.0")
        assert session["versions"]["strange-parts"] == "1.0"
        (session,) = sessions(runs["sequential-sgd-narrow-1"])
        assert session["parts"] == dict.fromkeys(shared, "strange-parts 1.0")
        # halved once for T1, and once more for T2
        rates = one["train"]["learning_rate"].values.ravel()
        assert rates[np.isfinite(rates)].tolist() == [0.05, 0.025, 0.025]

    def test_an_option_of_a_binary_study(self, tmp_path: Path) -> None:
        runs = {run.config["method"]: run for run in waterjar.open_study(trained(BINARY, tmp_path))}
        assert sorted(runs) == ["sl", "sl+decay"]
        assert set(sessions(runs["sl+decay"])[0]["parts"]) == {"data.stripes", "networks.narrow", "options.decay"}
        last = {name: run["weights"]["weights"].values[-1] for name, run in runs.items()}
        assert (np.linalg.norm(last["sl+decay"], axis=-1) < np.linalg.norm(last["sl"], axis=-1)).all()

    def test_a_kind_of_its_own(self, tmp_path: Path) -> None:
        command("new", tmp_path / "coin.yaml", "--kind", "coin")
        assert (tmp_path / "coin.yaml").read_text().startswith("kind: coin\n")
        study = trained((tmp_path / "coin.yaml").read_text(), tmp_path)
        runs = list(waterjar.open_study(study))
        assert [run.config["kind"] for run in runs] == ["coin", "coin"] and runs[0].seeds == [0]
        parts = {"kinds.coin": "strange-parts 1.0", "data.stripes": "strange-parts 1.0"}
        assert sessions(runs[0])[0]["parts"] == parts
        with pytest.raises(WaterjarError, match="kind: name 'coim' is unknown: did you mean 'coin'"):
            studies.declare({"kind": "coim"})
        with pytest.raises(WaterjarError, match="--kind 'con' is unknown: did you mean 'coin'"):
            command("new", tmp_path / "x.yaml", "--kind", "con")

    def test_settings_are_checked_as_ours_are(self) -> None:
        wrong = {
            "kind": "einstellung",
            "data": {"name": "stripes", "settings": {"per_clas": 3}},
            "backbones": [{"name": "narow"}, {"name": "broken"}],
            "strategies": [{"learner": "halving", "settings": {"lr": -1}}],
        }
        with pytest.raises(WaterjarError) as error:
            studies.declare(wrong)
        lines = str(error.value).split("\n")
        assert any("data.settings.per_clas' is unknown: did you mean 'data.settings.per_class'" in one for one in lines)
        assert any("network 'narow' is unknown: did you mean 'narrow'" in one for one in lines)
        assert any("strategies[0].settings.lr' is -1: expected more than 0" in one for one in lines)
        broken = [one for one in lines if "network 'broken'" in one]
        assert (
            len(broken) == 1 and "waterjar.networks: broken = strange_parts.broken, of strange-parts 1.0" in broken[0]
        )
        assert "No module named 'a_package_that_is_not_there'" in broken[0]

    @pytest.mark.slow
    def test_workers_of_a_study_have_them_too(self, tmp_path: Path) -> None:
        (tmp_path / "study.yaml").write_text(EINSTELLUNG)
        call = [sys.executable, "-m", "waterjar", "run", "study.yaml", "--workers", "2"]
        done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "study" / "figures" / "last_accuracy.png").is_file()
        assert "flops_per_image" in done.stdout
        assert all("networks.narrow" in sessions(run)[0]["parts"] for run in waterjar.open_study(tmp_path / "study"))


class TestMetric:
    def test_keeps_the_contract(self) -> None:
        assert check_metric("flops_per_image") == (
            "direction 'lower' was not looked at: give better= and worse=, two inputs of it",
        )

    def test_measured_compared_and_reported(self, einstellung: Path, tmp_path: Path) -> None:
        told = json.loads(command("diagnose", einstellung, "--only", "flops_per_image", "--json"))
        found = {(line["cell_id"], line["seed"]): line["value"] for line in told["values"]}
        for run in waterjar.open_study(einstellung):
            used = run["resources"]
            expected = float(used["flops"].sum()) / float(used["images"].sum())
            assert found[run.cell_id, run.seeds[0]] == pytest.approx(expected, rel=1e-12)
        text = command("compare", einstellung, "--metrics", "flops_per_image", "--no-figures", "--csv")
        assert "flops_per_image" in text and "halving" in text
        command("report", einstellung, "--out", tmp_path / "report.html")
        page = (tmp_path / "report.html").read_text()
        assert "floating-point operations per training image" in page
        assert "strange-parts (strange-parts 1.0)" in page  # its source, and the package
        assert "parts: networks.narrow" in page or "parts: networks: narrow" in page

    def test_in_the_catalogue(self) -> None:
        (line,) = [one for one in catalogue().split("\n") if "`flops_per_image`" in one]
        assert line.endswith("| strange-parts | 1 of strange-parts 1.0 |")

    def test_another_version_of_the_package_is_measured_again_and_told(self, site: Path, einstellung: Path) -> None:
        def origin() -> set[str]:
            from waterjar.diagnose.study import diagnose

            return set(diagnose(waterjar.open_study(einstellung), families=["cost"]).origin["cost"].values())

        origin()
        assert origin() == {"cached"}
        outside.install(site, "1.1")
        outside.forget(site)
        assert origin() == {"a metric is new, or has another version: flops_per_image"}
        assert origin() == {"cached"}
        notes = studies.notes(studies.read(einstellung.parent / "study.yaml"), waterjar.open_study(einstellung))
        assert any(
            "trained with learners.halving of strange-parts 1.0, and strange-parts 1.1 is" in one for one in notes
        )

    @pytest.mark.parametrize(
        ("name", "text", "why"),
        [
            ("seconds", "", "passed over: the metric 'seconds' of waterjar stays"),
            ("odd", "", "expected it to declare the metric 'odd', and it declares none"),
            ("odd", "{metric}def odd(r: Run) -> Result: ...", "which cost cannot build: it has ResourceUse"),
            ("odd", "{metric}def odd(r: ResourceUse) -> Result: ...\nraise ValueError('late')", "ValueError: late"),
            ("odd", "{parts}def odd(r: ResourceUse) -> Result: ...", "made_of 'nothing_known' is unknown"),
            ("odd", "{family}def odd(r: ResourceUse) -> Result: ...", "family 'costs' is unknown: did you mean 'cost'"),
        ],
    )
    def test_one_that_is_wrong_is_named_and_leaves_nothing_behind(
        self, site: Path, caplog: pytest.LogCaptureFixture, name: str, text: str, why: str
    ) -> None:
        about = "long_name='x', formula='x', citation='x', needs=('resources',)"
        head = (
            "from waterjar.diagnose.cost import ResourceUse\nfrom waterjar.diagnose.registry import metric\n"
            "from waterjar.diagnose.result import Result\nfrom waterjar.run.reader import Run\n"
        )
        kinds = {"metric": "'cost'", "parts": "'cost', made_of=('nothing_known',)", "family": "'costs'"}
        marks = {key: f"@metric('odd', family={family}, {about})\n" for key, family in kinds.items()}
        (site / "odd_metric.py").write_text(head + text.format(**marks))
        before = set(registry.metrics())
        outside.bring(site, "odd-metrics", {"waterjar.metrics": {name: "odd_metric"}})
        outside.forget(site)
        caplog.clear()
        assert set(registry.metrics()) == before
        (message,) = caplog.messages
        assert f"waterjar.metrics: {name} = odd_metric, of odd-metrics 1.0" in message and why in message
        if name == "odd":
            with pytest.raises(WaterjarError) as error:
                registry.find_metric("odd")
            assert str(error.value) == message
        else:
            assert registry.find_metric("seconds").origin == ""


class TestFigure:
    def test_listed_drawn_and_refused(self, site: Path, einstellung: Path, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        listed = {line["name"]: line for line in json.loads(command("plot", "--list", "--json"))}
        assert listed["last_accuracy"]["title"] == "Last accuracy" and "task_matrix" in listed
        command("plot", einstellung, "--figure", "last_accuracy", "--out", tmp_path / "x.png")
        assert (tmp_path / "x.png").stat().st_size > 5000
        with pytest.raises(WaterjarError, match="--figure 'last_acuracy' is unknown: did you mean 'last_accuracy'"):
            command("plot", einstellung, "--figure", "last_acuracy", "--out", tmp_path / "x.png")

    def test_a_broken_one_costs_no_other(self, site: Path, einstellung: Path, tmp_path: Path) -> None:
        pytest.importorskip("matplotlib")
        outside.bring(site, "odd-figures", {"waterjar.figures": {"sketch": "strange_parts.rows"}})
        outside.forget(site)
        told = json.loads(
            command("plot", einstellung, "--figure", "all", "--out", tmp_path, "--format", "png", "--json")
        )
        assert "last_accuracy.png" in told["drawn"] and "learning_curves.png" in told["drawn"]
        assert "of odd-figures 1.0) cannot be used: it has no CAPTION" in told["passed_over"]["sketch"]
        result = CliRunner().invoke(app, ["plot", "--list"])
        assert "last_accuracy" in result.stdout and "odd-figures 1.0" in result.stderr
        with pytest.raises(WaterjarError, match="cannot be used: it has no CAPTION"):
            command("plot", einstellung, "--figure", "sketch", "--out", tmp_path / "x.png")


class TestFormat:
    def test_out_and_in_again(self, einstellung: Path, tmp_path: Path) -> None:
        told = command("export", einstellung, "--format", "rows", "--out", tmp_path / "x.json", "--set", "indent=1")
        assert told == f"wrote {tmp_path / 'x.json'}\n  not in it: every step but the last\n"
        written = json.loads((tmp_path / "x.json").read_text())
        assert set(written) == {"scratch_t2", "halving", "sgd"} and set(written["sgd"]) == {"1", "2"}
        assert '\n "' in (tmp_path / "x.json").read_text()
        command("import", tmp_path / "x.json", "--format", "rows", "--out", tmp_path / "back")
        back = waterjar.open_run(tmp_path / "back" / "halving-2")
        assert back.status == "sealed"
        last = dict(
            zip(back["performance"]["eval_set"].values, back["performance"]["accuracy"].values.ravel(), strict=True)
        )
        assert last == written["halving"]["2"]

    def test_listed_and_refused(self, einstellung: Path, tmp_path: Path) -> None:
        listed = {line["name"]: line for line in json.loads(command("export", "--list", "--json"))}
        assert sorted(listed) == ["csv", "npy", "rows", "seed"] and listed["rows"]["import"]
        assert "rows" in command("import", "--list")
        with pytest.raises(WaterjarError, match="--format 'row' is unknown: did you mean 'rows'"):
            command("export", einstellung, "--format", "row", "--out", tmp_path / "x")
        with pytest.raises(WaterjarError, match="setting 'indnt' is unknown: did you mean 'indent'"):
            command("export", einstellung, "--format", "rows", "--set", "indnt=1", "--out", tmp_path / "x")
        with pytest.raises(WaterjarError, match="format 'csv' has no settings, and indent is given"):
            command("export", einstellung, "--format", "csv", "--set", "indent=1", "--out", tmp_path / "x")
        with pytest.raises(WaterjarError, match="--layer says nothing to --format rows"):
            command("export", einstellung, "--format", "rows", "--layer", "x", "--out", tmp_path / "x")

    def test_one_way_only(self, site: Path, einstellung: Path, tmp_path: Path) -> None:
        (site / "one_way.py").write_text("TITLE = 'in'\n\ndef import_runs(path, out):\n    return []\n")
        outside.bring(site, "odd-formats", {"waterjar.formats": {"one_way": "one_way"}})
        outside.forget(site)
        with pytest.raises(WaterjarError, match="format 'one_way' cannot be written: expected csv, npy, rows, seed"):
            command("export", einstellung, "--format", "one_way", "--out", tmp_path / "x")


@pytest.mark.slow
def test_what_pip_installs_is_found_alike(tmp_path: Path) -> None:
    """The other tests write the metadata themselves; this is what pip makes of the same pyproject.toml."""
    pytest.importorskip("setuptools")
    shutil.copytree(outside.PACKAGE, tmp_path / "source", ignore=shutil.ignore_patterns("__pycache__"))
    call = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    call += ["--disable-pip-version-check", "--target", str(tmp_path / "target"), str(tmp_path / "source")]
    subprocess.run(call, check=True, capture_output=True)
    script = "from waterjar.run.shelf import found_parts; print(*map(str, found_parts()), sep='\\n')"
    told = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *sys.path])},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for folder in (tmp_path / "target", outside.install(tmp_path / "site"))
    ]
    assert told[0] == told[1] and told[0].count("package='strange-parts', version='1.0'") == 10


def test_the_page_about_it_is_true(site: Path) -> None:
    """The package of docs/parts.md, as it stands there."""
    page = (Path(__file__).parents[1] / "docs" / "parts.md").read_text()
    ((module,), (project,)) = (re.findall(rf"```{kind}\n(.*?)```", page, re.S) for kind in ("python", "toml"))
    (site / "my_parts").mkdir(exist_ok=True)
    (site / "my_parts" / "largest_activation.py").write_text(module)
    outside.describe(site, tomllib.loads(project)["project"])
    outside.forget(site)
    parts = {part["name"]: part for part in json.loads(command("doctor", "--json"))["parts"]}
    assert parts["largest_activation"]["state"] == "usable" and parts["largest_activation"]["package"] == "my-parts 0.1"
    assert registry.find_metric("largest_activation").origin == "my-parts 0.1"
    assert check_metric("largest_activation") == ()
    rows = {line.split("`")[1]: line for line in page.split("\n") if line.startswith("| `")}
    assert set(rows) == set(SHELVES)
    for name, shelf in SHELVES.items():
        told = [one for wanted in shelf.has for one in wanted.split("|")] if name != "kinds" else []
        assert all(one in rows[name] or one == "{name}" for one in told), name


class TestDoctor:
    def test_names_every_part_and_what_is_wrong(self, site: Path) -> None:
        outside.bring(
            site,
            "odd-parts",
            {
                "waterjar.networks": {"mlp": "strange_parts.narrow"},
                "waterjar.data": {"stripes": "strange_parts.stripes"},
                "waterjar.networkz": {"wide": "strange_parts.narrow"},
            },
        )
        outside.forget(site)
        told = json.loads(command("doctor", "--json"))
        states = {(part["shelf"], part["name"], part["package"]): part["state"] for part in told["parts"]}
        usable = {key[:2] for key, state in states.items() if state == "usable"}
        assert usable == {
            ("shortcuts", "edge"), ("networks", "narrow"), ("learners", "halving"), ("options", "decay"),
            ("kinds", "coin"), ("metrics", "flops_per_image"), ("figures", "last_accuracy"), ("formats", "rows"),
        }  # fmt: skip
        broken = states["networks", "broken", "strange-parts 1.0"]
        assert broken == "ModuleNotFoundError: No module named 'a_package_that_is_not_there'"
        assert states["networks", "mlp", "odd-parts 1.0"].startswith("passed over: the network 'mlp' is waterjar's own")
        for package in ("odd-parts 1.0", "strange-parts 1.0"):
            assert "odd-parts 1.0 and strange-parts 1.0 both have" in states["data", "stripes", package]
        assert "did you mean 'networks'" in states["networkz", "wide", "odd-parts 1.0"]
        text = command("doctor")
        assert "parts from outside" in text and "a_package_that_is_not_there" in text.replace("\n", "")
