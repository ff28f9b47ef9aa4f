"""diagnose, compare, sensitivity: what a person sees, and what a program gets."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import waterjar
from recording import einstellung
from waterjar.cli.main import app
from waterjar.errors import WaterjarError


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A late learner that looks at the patch, beside a fresh network that does so less."""
    folder = waterjar.create_study(tmp_path_factory.mktemp("measured") / "study")
    for seed in (1, 2, 3):
        einstellung(folder / f"scratch-{seed}", scenario="scratch_t2", seed=seed, masked=0.9)
        einstellung(folder / f"late-{seed}", learner="late_[bold]", seed=seed, masked=0.1 + 0.02 * seed, delay=1)
    return folder


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = waterjar.create_study(tmp_path_factory.mktemp("sweep") / "study")
    for seed in (1, 2):
        for rate in (0.25, 0.5, 1.0):
            einstellung(folder / f"s-{seed}-{rate}", scenario="scratch_t2", rate=rate, seed=seed, masked=0.9)
            einstellung(folder / f"l-{seed}-{rate}", learner="er", rate=rate, seed=seed, masked=1 - rate)
    return folder


class TestDiagnose:
    def test_table_verdicts_and_numbers(self, study: Path) -> None:
        text = run("diagnose", study, "--only", "rigidity,cost")
        assert "AD" in text and "SFR_rel ↓" in text and "late_[bold]" in text and "seconds ↓" in text
        assert "late_[bold]: " in text  # the sentence that says what it means

    def test_csv_has_one_row_per_metric_cell_and_seed(self, study: Path) -> None:
        found = rows(run("diagnose", study, "--only", "ad,pd", "--csv"))
        late = {(r["metric"], r["seed"]): float(r["value"]) for r in found if r["scenario"] == "sequential"}
        assert {late["ad", seed] for seed in "123"} == {1.0}  # one epoch late, seed by seed
        assert all(late["pd", seed] == 0.0 for seed in "123")
        assert {r["metric"] for r in found} == {"ad", "pd"}

    def test_json(self, study: Path) -> None:
        found = json.loads(run("diagnose", study, "--only", "rigidity", "--json"))
        assert set(found["seals"].values()) == {"sealed"}
        assert "late_[bold]" in found["verdicts"]
        assert found["settings"]["rigidity"]["threshold"] == 0.6
        assert found["roots"]["late-1"] == waterjar.open_run(study / "late-1").root_hash

    def test_settings_reach_the_metric(self, study: Path) -> None:
        last = rows(run("diagnose", study, "--only", "ad", "--set", "threshold=0.95", "--csv"))
        assert {r["reason"] for r in last} == {"never_reached"}
        assert "3 of 3 never_reached" in run("diagnose", study, "--only", "ad", "--set", "rigidity.threshold=0.95")

    def test_a_single_run(self, study: Path) -> None:
        found = rows(run("diagnose", study / "late-1", "--only", "sfr", "--csv"))
        assert len(found) == 1
        assert float(found[0]["value"]) == pytest.approx(0.81 * (1 - 0.12))

    def test_where(self, study: Path) -> None:
        found = rows(run("diagnose", study, "--only", "sfr", "--where", "seed in (2, 3)", "--csv"))
        assert {r["seed"] for r in found} == {"2", "3"}

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--only", "adx"], "did you mean 'ad'"),
            (["--set", "treshold=1"], "did you mean 'threshold'"),
            (["--set", "threshold"], "expected key=value"),
            (["--set", "rigidty.threshold=1"], "did you mean 'rigidity'"),
            (["--set", "threshold=[1"], "is not YAML"),
            (["--only", "ad", "--set", "threshold=2024-13-45"], "expected an accuracy"),
            (["--set", "threshold=" + "9" * 5000], "is another number, or text, to other readers"),
            (["--set", "threshold=" + "[" * 2000], "nested deeper than 30 levels"),
            (["--set", "threshold=!!python/object:os.system x"], "the tag .* is not read"),
            (["--where", "seed=99"], "no run of"),
            (["--only", ","], "--only names nothing"),
            (["--csv", "--json"], "one format at a time"),
        ],
    )
    def test_bad_requests(self, study: Path, arguments: list[str], message: str) -> None:
        with pytest.raises(WaterjarError, match=message):
            run("diagnose", study, *arguments)

    def test_an_ambiguous_setting(self, study: Path) -> None:
        with pytest.raises(WaterjarError, match="rigidity have it; write continual.variable"):
            run("diagnose", study, "--set", "variable=accuracy")

    def test_empty_directory(self, tmp_path: Path) -> None:
        with pytest.raises(WaterjarError, match="no runs in"):
            run("diagnose", tmp_path)

    @pytest.mark.parametrize("form", [[], ["--csv"], ["--json"]])
    def test_where_nothing_can_be_measured_it_is_an_error(self, tmp_path: Path, form: list[str]) -> None:
        with waterjar.Recorder(tmp_path / "r", {"learner": "x"}) as recorder:
            recorder.log(epoch=0, train={"learning_rate": 1.0})
        with pytest.raises(
            WaterjarError, match=r"nothing could be measured of .*\n(.*\n)*continual: no run has recorded"
        ):
            run("diagnose", tmp_path / "r", *form)

    def test_tampered_and_open_runs_are_named(self, tmp_path: Path) -> None:
        folder = waterjar.create_study(tmp_path / "s")
        for seed in (1, 2):
            einstellung(folder / f"r-{seed}", scenario="scratch_t2", seed=seed)
        file = next((folder / "r-1/performance/macro_accuracy").rglob("c/*/*/*"))
        data = bytearray(file.read_bytes())
        data[2] ^= 1
        file.write_bytes(bytes(data))
        recorder = waterjar.Recorder(folder / "open", {"learner": "x"}, eval_sets=["a"])
        recorder.log(epoch=0, performance={"accuracy": [0.5]}, resources={"seconds": 1.0})
        try:
            text = run("diagnose", folder, "--only", "cost")
        finally:
            recorder.close()
        assert "1 of 3 runs: changed since it was sealed, see waterjar verify: r-1" in text
        assert "1 of 3 runs: not sealed yet: open" in text


class TestCompare:
    def test_table(self, study: Path) -> None:
        text = run("compare", study, "--baseline", "scratch_t2", "--metrics", "ad,pd,sfr_rel")
        for part in (
            "baseline",
            "p corrected",
            "effect g",
            "paired_t, holm over 2 tests",  # without spread, the delay of exactly 1 has no t
            "0.250",
            "seconds",
            "200 MB",
        ):
            assert part in text

    def test_numbers(self, study: Path) -> None:
        found = rows(run("compare", study, "--metrics", "sfr_rel", "--csv"))
        base, late = found
        assert base["is_baseline"] == "True" and late["group"] == "late_[bold]"
        # per seed: (0.8 + 0.01 s) (1 - 0.1 - 0.02 s) - (0.8 + 0.01 s) 0.1
        expected = [(0.8 + 0.01 * s) * (0.8 - 0.02 * s) for s in (1, 2, 3)]
        assert float(late["difference"]) == pytest.approx(sum(expected) / 3)
        assert float(late["mean"]) == pytest.approx(sum(expected) / 3)
        assert float(late["seconds"]) == 9.0
        assert late["significant"] == "True"

    def test_differences_are_not_tested_as_if_they_were_unpaired(self, study: Path) -> None:
        with pytest.raises(WaterjarError, match="sfr_rel: differences to the baseline"):
            run("compare", study, "--metrics", "sfr_rel,patched_accuracy", "--unpaired")

    def test_improvement_goes_by_the_direction(self, study: Path) -> None:
        found = {r["metric"]: r for r in rows(run("compare", study, "--metrics", "sfr_rel,masked_accuracy", "--csv"))
                 if r["is_baseline"] == "False"}  # fmt: skip
        assert float(found["sfr_rel"]["probability_larger"]) == 1.0
        assert float(found["sfr_rel"]["improvement"]) == 0.0  # lower is better
        assert float(found["masked_accuracy"]["improvement"]) == 0.0  # and it is lower where higher is better

    def test_censored_seeds_are_called_so(self, study: Path) -> None:
        text = run("compare", study, "--metrics", "ad", "--set", "threshold=0.95")
        assert "3 never_reached" in text and "Seeds that never reach the threshold have no AD" in text
        assert "ad_restricted counts them" not in text  # nobody got there: it has no value either
        some = run("compare", study, "--metrics", "ad", "--set", "threshold=0.825")  # one baseline does
        assert "3 never_reached" in some and "have no AD; ad_restricted counts them, up to the shorter" in some
        found = rows(run("compare", study, "--metrics", "ad", "--set", "threshold=0.95", "--csv"))
        assert {r["missing"] for r in found} == {"3 never_reached"}

    def test_tables_carry_root_hashes(self, study: Path) -> None:
        root = waterjar.open_run(study / "late-2").root_hash
        assert root in run("compare", study, "--metrics", "sfr_rel", "--latex")
        assert root[:12] in rows(run("compare", study, "--metrics", "sfr_rel", "--csv"))[1]["roots"]
        assert root in {r["root"] for r in rows(run("diagnose", study, "--only", "sfr", "--csv"))}

    def test_latex_and_json(self, study: Path) -> None:
        text = run("compare", study, "--metrics", "sfr_rel", "--latex")
        assert text.startswith("\\begin{tabular}") and "late\\_[bold]" in text and "sfr_rel" not in text
        found = json.loads(run("compare", study, "--metrics", "sfr_rel", "--json"))
        assert [row["group"] for row in found["comparisons"]] == ["scratch_t2", "late_[bold]"]

    def test_by_name_and_unpaired(self, study: Path) -> None:
        found = rows(
            run("compare", study, "--metrics", "patched_accuracy", "--baseline", "late_[bold]", "--unpaired", "--csv")
        )
        assert {r["test"] for r in found if r["is_baseline"] == "False"} == {"welch"}

    def test_without_costs(self, tmp_path: Path) -> None:
        folder = waterjar.create_study(tmp_path / "s")
        for learner in ("a", "b"):
            for seed in (1, 2):
                config = {"learner": learner, "seed": seed}
                with waterjar.Recorder(
                    folder / f"{learner}{seed}", config, eval_sets={"x": 0, "y": 1}, tasks=2, classes=["p", "q"]
                ) as recorder:
                    for task in (0, 1):
                        for epoch in (0, 1):
                            value = 0.5 + 0.1 * epoch + 0.01 * seed + 0.1 * (learner == "b")
                            recorder.log(train_task=task, epoch=epoch, performance={"accuracy": [value, value]})
        found = rows(run("compare", folder, "--metrics", "average_accuracy", "--baseline", "a", "--csv"))
        assert float(found[1]["difference"]) == pytest.approx(0.1)
        assert "seconds" not in found[0]

    def test_bad_requests(self, study: Path) -> None:
        with pytest.raises(WaterjarError, match="did you mean 'scratch_t2'"):
            run("compare", study, "--metrics", "sfr", "--baseline", "scratch")
        with pytest.raises(WaterjarError, match="metric 'sfx' is unknown"):
            run("compare", study, "--metrics", "sfx")

    def test_no_baseline_fits(self, tmp_path: Path) -> None:
        folder = waterjar.create_study(tmp_path / "s")
        einstellung(folder / "a", learner="sgd", rate=0.5)
        einstellung(folder / "b", learner="er", rate=1.0)
        einstellung(folder / "s", scenario="scratch_t2", rate=0.5)
        found = rows(run("compare", folder, "--metrics", "sfr", "--csv"))
        lonely = next(r for r in found if r["group"] == "er")
        assert "differs in shortcut.rate" in lonely["reason"] and lonely["difference"] == ""


def test_control_characters_are_shown_not_sent(tmp_path: Path) -> None:
    folder = waterjar.create_study(tmp_path / "s")
    einstellung(folder / "a", scenario="scratch_t2")
    einstellung(folder / "b", learner="er\x1b[31m\n[red]")
    diagnosed, compared = ["diagnose", folder, "--only", "sfr"], ["compare", folder, "--metrics", "sfr"]
    for arguments in (diagnosed, [*diagnosed, "--csv"], compared, [*compared, "--latex"]):
        assert "\x1b[31m" not in run(*arguments)
        assert "x1b" in run(*arguments)


class TestSensitivity:
    @pytest.mark.parametrize("over", ["patch.rate", "shortcut.rate", "rate"])
    def test_over_a_setting_of_the_runs(self, sweep: Path, over: str) -> None:
        found = rows(run("sensitivity", sweep, "--metric", "sfr_rel", "--over", over, "--csv"))
        er = [r for r in found if r["group"] == "er"]
        assert [float(r["value"]) for r in er] == [0.25, 0.5, 1.0]
        for r in er:  # mean over seeds of (0.8 + 0.01 s)(rate - 0.1)
            assert float(r["mean"]) == pytest.approx(0.815 * (float(r["value"]) - 0.1))

    def test_trend(self, sweep: Path) -> None:
        text = run("sensitivity", sweep, "--metric", "sfr_rel", "--over", "patch.rate")
        assert "er: Spearman" in text
        found = json.loads(run("sensitivity", sweep, "--metric", "sfr", "--over", "patch.rate", "--json"))
        trends = {row["group"]: row["r"] for row in found["trends"]}
        assert trends["er"] > 0.95

    def test_over_a_setting_of_the_diagnosis(self, study: Path) -> None:
        found = rows(run("sensitivity", study, "--metric", "ad", "--over", "tau", "--values", "0.3,0.5,0.99", "--csv"))
        late = {r["value"]: r for r in found if r["group"] == "late_[bold]"}
        assert float(late["0.3"]["mean"]) == 1.0
        assert late["0.99"]["mean"] == "" and late["0.99"]["reason"] == "3 of 3 never_reached"

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--over", "threshold"], "give the values to try"),
            (["--over", "shortcut.ratte"], "did you mean 'shortcut.rate'"),
            (["--over", "rate"], "all runs have shortcut.rate = 0.5"),
            (["--over", "rate", "--values", "1"], "is one of the runs"),
            (["--over", "seed"], "is what results are averaged over"),
            (["--over", "threshold", "--values", "[,"], "is not YAML"),
        ],
    )
    def test_bad_requests(self, study: Path, arguments: list[str], message: str) -> None:
        with pytest.raises(WaterjarError, match=message):
            run("sensitivity", study, "--metric", "ad", *arguments)

    def test_an_ambiguous_end_must_be_written_in_full(self, tmp_path: Path) -> None:
        folder = waterjar.create_study(tmp_path / "s")
        for i in (1, 2):
            config = {"learner": "a", "x": {"size": i}, "y": {"size": i}}
            with waterjar.Recorder(folder / f"r{i}", config, eval_sets=["e"]) as recorder:
                recorder.log(epoch=0, performance={"accuracy": [0.5]}, resources={"seconds": 1.0})
        with pytest.raises(WaterjarError, match="'size' may be x.size or y.size"):
            run("sensitivity", folder, "--metric", "seconds", "--over", "size")
