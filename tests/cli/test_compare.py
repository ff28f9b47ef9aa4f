"""waterjar compare of runs with many repeats: what it compares by and with where nobody says, and its figures."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import waterjar
from recording import einstellung
from view.figures.repeated_runs import Written, repeated_run
from waterjar.cli.main import app
from waterjar.diagnose.baseline import default_baseline
from waterjar.errors import WaterjarError
from waterjar.run.study import open_study


def run(*arguments: object) -> tuple[str, str]:
    result = CliRunner().invoke(app, ["compare", *(str(a) for a in arguments)])
    if result.exception is not None:
        raise result.exception
    return result.stdout, result.stderr


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


Declared = dict[str, Any]
ALGORITHMS: Declared = {
    "kind": "binary",
    "algorithms": ["sl", {"learner": "rl"}, {"learner": "sl", "options": ["replay", {"name": "redo"}]}],
    "analysis": {"families": ["continual", "plasticity", "geometry"], "settings": {"continual": {"integrator": "auc"}}},
}


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Written]]:
    """Three algorithms, four repeats each; no features, so that geometry refuses."""
    order = ["sl", "rl", "sl+replay+redo"]
    folder = waterjar.create_study(tmp_path_factory.mktemp("compare") / "study", ALGORITHMS, runs=order)
    made = {
        method: repeated_run(folder / method, method, [11, 12, 13, 14], number=i, features=False)
        for i, method in enumerate(("rl", "sl", "sl+replay+redo"))
    }
    return folder, made


class TestDefaults:
    def test_pairs_repeats_by_seed_with_the_first_declared(self, binary: tuple[Path, dict[str, Written]]) -> None:
        folder, made = binary
        found = rows(run(folder, "--csv")[0])
        own = {name: np.stack([one.accuracy[t, -1, t] for t in range(3)]).mean(0) for name, one in made.items()}
        lines = {line["group"]: line for line in found if line["metric"] == "learning_accuracy"}
        assert lines["sl"]["is_baseline"] == "True"
        tested = stats.ttest_rel(own["rl"], own["sl"])
        assert float(lines["rl"]["p_value"]) == pytest.approx(tested.pvalue)
        low, high = tested.confidence_interval(0.95)
        assert [float(lines["rl"][key]) for key in ("difference_low", "difference_high")] == pytest.approx([low, high])
        assert float(lines["rl"]["difference"]) == pytest.approx((own["rl"] - own["sl"]).mean())
        assert {line["n"] for line in lines.values()} == {"4"}

    def test_metrics_of_the_families_declared_with_their_settings(
        self, binary: tuple[Path, dict[str, Written]]
    ) -> None:
        folder, made = binary
        found = json.loads(run(folder, "--json")[0])
        assert found["baseline"] == "sl" and found["figures"] == {}
        assert "features" in found["passed_over"]["geometry"] and "rigidity" not in found["passed_over"]
        metrics = list(dict.fromkeys(line["metric"] for line in found["comparisons"]))
        assert metrics == [
            "average_accuracy", "learning_accuracy", "forgetting", "remembering", "forward_transfer", "learning_time",
            "weight_magnitude", "weight_change_task",
        ]  # fmt: skip
        P = 2 * made["rl"].accuracy - 1  # (train, epoch, eval, repeat); auc over epochs 0, 1, 2
        R = np.trapezoid(P, axis=1) / 2
        pairs = [(R[j, i] - R[i, i]) / (abs(R[j, i]) + abs(R[i, i])) for j in range(3) for i in range(j)]
        line = next(r for r in found["comparisons"] if r["metric"] == "remembering" and r["group"] == "rl")
        assert line["mean"] == pytest.approx(np.mean(pairs))
        final = json.loads(run(folder, "--json", "--metrics", "remembering", "--set", "integrator=final")[0])
        assert next(r for r in final["comparisons"] if r["group"] == "rl")["mean"] != pytest.approx(np.mean(pairs))

    def test_einstellung_has_its_own_first(self, tmp_path: Path) -> None:
        folder = waterjar.create_study(tmp_path / "s")
        for seed in (1, 2):
            einstellung(folder / f"scratch-{seed}", scenario="scratch_t2", seed=seed, masked=0.9)
            einstellung(folder / f"late-{seed}", learner="late", seed=seed, delay=1)
        found = json.loads(run(folder, "--json")[0])
        assert found["baseline"] == "scratch_t2"
        metrics = list(dict.fromkeys(line["metric"] for line in found["comparisons"]))
        assert metrics[:5] == ["ad_restricted", "pd", "sfr_rel", "patched_accuracy", "masked_accuracy"]
        assert "average_accuracy" in metrics

    def test_nothing_to_compare_by(self, tmp_path: Path) -> None:
        for name in ("a", "b"):
            with waterjar.Recorder(tmp_path / "s" / name, {"method": name}, seeds=[1]) as recorder:
                recorder.log(epoch=0, train={"learning_rate": 1.0})
        with pytest.raises(WaterjarError, match="nothing to compare by: .*continual: no run has recorded performance"):
            run(tmp_path / "s")


class TestBaseline:
    def test_the_first_declared(self, tmp_path: Path) -> None:
        names = ["sl-slow", "sl-fast", "rl"]
        folder = waterjar.create_study(tmp_path / "s", {"kind": "binary"}, runs=names)
        for rate, name in enumerate(sorted(names)):
            config = {"method": name.partition("-")[0], "lr": rate}
            with waterjar.Recorder(folder / name, config, seeds=[1]) as recorder:
                recorder.log(epoch=0, train={"loss": 1.0})
        study = open_study(folder)
        assert [entry.name for entry in study.entries] == names
        assert default_baseline(study) == ("sl, lr=2", ", the first cell declared; --baseline names another")
        rest = study.select(lambda entry: entry.name != "sl-slow")
        assert default_baseline(rest)[0] == "sl"

    def test_without_a_list_of_runs_the_first_sealed(self, tmp_path: Path) -> None:
        folder = waterjar.create_study(tmp_path / "s")
        for method in ("sl", "rl"):
            with waterjar.Recorder(folder / f"{method}-x", {"method": method}, seeds=[1]) as recorder:
                recorder.log(epoch=0, train={"loss": 1.0})
        assert default_baseline(open_study(folder)) == ("sl", ", the first cell sealed; --baseline names another")

    def test_a_plain_folder_has_the_first_recorded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for second, method in enumerate(("zeta", "alpha", "beta")):
            monkeypatch.setattr("waterjar.run.recorder.now", lambda at=second: f"2026-01-01T00:00:0{at}+00:00")
            with waterjar.Recorder(tmp_path / "s" / method, {"method": method}, seeds=[1]) as recorder:
                recorder.log(epoch=0, train={"loss": 1.0})
        assert default_baseline(open_study(tmp_path / "s")) == (
            "zeta",
            ", the first cell recorded; --baseline names another",
        )
        rest = open_study(tmp_path / "s").select("method != zeta")
        assert default_baseline(rest)[0] == "alpha"

    def test_runs_of_one_second_go_by_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("waterjar.run.recorder.now", lambda: "2026-01-01T00:00:00+00:00")
        for method in ("zeta", "alpha"):
            with waterjar.Recorder(tmp_path / "s" / method, {"method": method}, seeds=[1]) as recorder:
                recorder.log(epoch=0, train={"loss": 1.0})
        assert default_baseline(open_study(tmp_path / "s")) == (
            "alpha",
            ", the first cell by name; --baseline names another",
        )


class TestFigures:
    @pytest.fixture(autouse=True)
    def _matplotlib(self) -> None:
        pytest.importorskip("matplotlib")

    def test_into_the_study_and_said_where(self, binary: tuple[Path, dict[str, Written]]) -> None:
        folder, _ = binary
        text, _ = run(folder, "--metrics", "learning_accuracy,forgetting")
        place = folder / "figures" / "toys" / "comparison"
        files = ["traces_continual.png", "boxes_continual.png", "scatter_forgetting_learning_accuracy.png"]
        assert f"3 figures in {place}: {', '.join(files)}" in text
        assert "baseline: sl, the first cell declared; --baseline names another" in text
        assert sorted(file.name for file in place.iterdir()) == sorted(files)
        assert all(file.read_bytes().startswith(b"\x89PNG") for file in place.iterdir())

    def test_elsewhere_in_another_format(self, binary: tuple[Path, dict[str, Written]], tmp_path: Path) -> None:
        folder, _ = binary
        arguments = ("--metrics", "learning_accuracy", "--out", tmp_path / "out", "--format", "pdf", "--csv")
        text, errors = run(folder, *arguments)
        assert len(rows(text)) == 3 and "2 figures in" in errors
        assert (tmp_path / "out" / "boxes_continual.pdf").read_bytes().startswith(b"%PDF")

    def test_json_names_them(
        self, binary: tuple[Path, dict[str, Written]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            "waterjar.view.album._drawn", lambda page, _, target: target if page.figure != "metric_boxes" else "no room"
        )
        text, errors = run(binary[0], "--metrics", "learning_accuracy", "--out", tmp_path, "--json")
        assert json.loads(text)["figures"] == {
            "toys/traces_continual.png": str(tmp_path / "traces_continual.png"), "toys/boxes_continual.png": "no room"
        }  # fmt: skip
        assert "toys/boxes_continual.png: not drawn: no room" in errors

    def test_none(self, tmp_path: Path) -> None:
        for i, method in enumerate(("a", "b")):
            repeated_run(tmp_path / "s" / method, method, [1, 2], tasks=2, number=i, features=False)
        text, errors = run(tmp_path / "s", "--metrics", "learning_accuracy", "--no-figures", "--baseline", "b")
        assert "figures" not in text + errors and not (tmp_path / "s" / "figures").exists()
        assert "baseline: b\n" in text

    def test_what_does_not_go_together(self, tmp_path: Path) -> None:
        with pytest.raises(WaterjarError, match="--out and --no-figures"):
            run(tmp_path, "--out", tmp_path, "--no-figures")
        with pytest.raises(WaterjarError, match="expected a folder"):
            run(tmp_path, "--out", tmp_path / "x.png")
        with pytest.raises(WaterjarError, match="--format 'gif' is unknown"):
            run(tmp_path, "--format", "gif")


def test_without_matplotlib_the_table_is_there(
    binary: tuple[Path, dict[str, Written]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text, errors = run(binary[0], "--metrics", "learning_accuracy")
    assert "LA ↑" in text and "figures: not drawn: figures need matplotlib" in errors
