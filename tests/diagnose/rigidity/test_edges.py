"""Edges of the index: unequal budgets, the floor, nobody learned, runs that ended, causes that are true."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from typer.testing import CliRunner

import waterjar
from diagnose.rigidity.einstellung_runs import SETS, config, in_memory, measured_in_memory, write_run
from diagnose.rigidity.test_judgement import judged, side_of
from diagnose.rigidity.test_measure import BASELINE, BY_EPOCH, cell, learner, why
from waterjar import WaterjarError
from waterjar.cli.main import app
from waterjar.diagnose import rigidity
from waterjar.diagnose.compare import compare_cells
from waterjar.diagnose.rigidity.floor import reliance_share
from waterjar.diagnose.rigidity.guessing import above_guessing, luck_limits, shown_above, shown_within
from waterjar.diagnose.study import diagnose
from waterjar.run.schema import MEANINGS, REASONS
from waterjar.testing import check_metric
from waterjar.view import figures
from waterjar.view.report import compose, model_of, write

RULE = {"where": {"scenario": "scratch_t2"}, "tell": ["training.epochs_t2"]}


def measured(folder: Path, **settings: Any) -> xr.Dataset:
    return rigidity.measure(waterjar.open_study(folder), **{**BY_EPOCH, **settings})


class TestBudgets:
    """A learner of 9 epochs that ends at .90 beside a baseline of 2 epochs that ends at .50."""

    def uneven(self) -> dict[str, Any]:
        own = in_memory(_curves([0.1] * 9 + [0.9], 0.05), [1], range(10))
        other = in_memory(_curves([0.1, 0.3, 0.5], 0.05), [1], range(3))
        found = measured_in_memory(own, other, ("mine", "base"), window=1, threshold=0.45)
        return {str(name): v.values[()] for name, v in found.items()}

    def test_only_the_restricted_delay_is_cut(self) -> None:
        found = self.uneven()
        assert found["patched_accuracy"] == pytest.approx([0.9])  # it was .10, of epoch 2
        assert found["pd"] == pytest.approx([0.5 - 0.9]) and found["sfr"] == pytest.approx([0.85])
        assert found["sfr_rel"] == pytest.approx([0.85 - 0.45])
        assert found["checkpoint_epoch"].tolist() == [9]
        assert found["ad"].tolist() == [9 - 2] and found["ad_restricted"].tolist() == [0]  # min(9, 2) - min(2, 2)

    def test_both_lengths_are_said_as_recorded(self) -> None:
        found = self.uneven()
        assert (float(found["learner_budget"]), float(found["baseline_budget"])) == (9, 2)
        assert "recorded are 9 epochs of it and 2 of the baseline" in str(found["baseline_note"])
        assert "It was trained for 9 epochs, base for 2" in str(found["sentence"])

    def test_the_config_may_say_what_it_likes(self, tmp_path: Path) -> None:
        waterjar.create_study(tmp_path, {"analysis": {"baseline": RULE}})
        short = {name: values[:4] for name, values in BASELINE.items()}
        for seed in (1, 2):
            write_run(tmp_path, "scratch_t2", "sgd", seed, short)  # declared as 4 epochs, and recorded as 3
            write_run(tmp_path, "sequential", "derpp", seed, learner(seed))
        part = cell(measured(tmp_path), "derpp")
        assert "recorded are 4 epochs of it and 3 of the baseline" in str(part["budget_note"].values)
        table = compare_cells(diagnose(waterjar.open_study(tmp_path), only=["rigidity"]), ["pd"], baseline="scratch_t2")
        (told,) = table[table.group == "derpp"]["baseline_note"]
        assert "recorded are 4 epochs" in told

    def test_tables_and_figure_say_them(self, tmp_path: Path) -> None:
        waterjar.create_study(tmp_path / "study", {"analysis": {"baseline": RULE}})
        short = {name: values[:4] for name, values in BASELINE.items()}
        for seed in (1, 2):
            declared = {"epochs_t1": 2, "epochs_t2": 3, "batch_size": 8}
            write_run(tmp_path / "study", "scratch_t2", "sgd", seed, short, training=declared)
            write_run(tmp_path / "study", "sequential", "derpp", seed, learner(seed))
        told = CliRunner().invoke(app, ["diagnose", str(tmp_path / "study"), "--only", "rigidity"])
        (row,) = [line.split(maxsplit=2)[2] for line in told.stdout.splitlines() if "epochs trained" in line]
        assert sorted(re.split(r"  +", row.strip())) == ["3", "4, baseline 3"]
        csv = CliRunner().invoke(app, ["diagnose", str(tmp_path / "study"), "--only", "rigidity", "--csv"])
        assert "derpp: recorded are 4 epochs of it and 3 of the baseline" in csv.stderr
        compared = CliRunner().invoke(app, ["compare", str(tmp_path / "study"), "--baseline", "scratch_t2"])
        assert " ".join(compared.output.split()).count("recorded are 4 epochs of it") == 1
        study = waterjar.open_study(tmp_path / "study")
        panel, *below = figures.draw("eri_dynamics", study).axes
        assert "trained 4 epochs, baseline 3" in panel.texts[0].get_text().splitlines()
        titles = {one.get_ylabel().split()[0]: one.get_title(loc="left") or one.get_title() for one in below}
        assert titles == {"AD": "at equal epochs, to epoch 3", "PD": "at equal epochs, to epoch 3", "SFR": ""}
        report = compose(model_of(study))
        captions = [str(getattr(block, "caption", "")) for section in report.sections for block in section.blocks]
        assert any("AD and PD are drawn at equal epochs, as far as the shorter" in caption for caption in captions)
        assert "| epochs trained | " in write(report, tmp_path / "report.md", "markdown").read_text()

    def test_equal_ones_are_not_worth_a_word(self, tmp_path: Path) -> None:
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE)
        write_run(tmp_path, "sequential", "derpp", 1, learner(1))
        part = cell(measured(tmp_path), "derpp")
        assert str(part["budget_note"].values) == "" and "trained for" not in str(part["sentence"].values)
        told = CliRunner().invoke(app, ["diagnose", str(tmp_path), "--only", "rigidity"])
        assert "AD" in told.stdout and "epochs trained" not in told.stdout


def _curves(normal: list[float], masked: float) -> dict[str, np.ndarray]:
    length = len(normal)
    return {
        "t2_shortcut_normal": np.array(normal)[:, None],
        "t2_shortcut_masked": np.full((length, 1), masked),
        "t2_validation": np.linspace(0, 1, length)[:, None],
    }


class TestOrder:
    def record(self, path: Path, phases: list[tuple[str, int]]) -> waterjar.Study:
        options: dict[str, Any] = {"eval_sets": SETS, "tasks": ["t1", "t2"], "provenance": False}
        with waterjar.Recorder(path / "run", config("sequential", "sgd"), seeds=[1], **options) as recorder:
            for task, epoch in phases:
                recorder.log(train_task=task, epoch=epoch, performance={"macro_accuracy": dict.fromkeys(SETS, 0.5)})
        return waterjar.open_study(path)

    def test_a_task_behind_the_last_one(self, tmp_path: Path) -> None:
        with pytest.raises(
            WaterjarError, match=r"'t1' is trained at step 2, after 't2'.*'t2_shortcut_normal' is not of"
        ):
            rigidity.measure(self.record(tmp_path, [("t2", 0), ("t2", 1), ("t1", 1)]))

    def test_a_last_task_that_is_visited_again(self, tmp_path: Path) -> None:
        expected = r"'t2' is trained again from step 3 on; it was trained from step 1 on before.*for the first time"
        with pytest.raises(WaterjarError, match=expected):
            rigidity.measure(self.record(tmp_path, [("t1", 1), ("t2", 1), ("t1", 2), ("t2", 2)]))

    def test_the_first_task_again_is_behind_the_last_one(self, tmp_path: Path) -> None:
        with pytest.raises(WaterjarError, match=r"'t1' is trained at step 2, after 't2'"):
            rigidity.measure(self.record(tmp_path, [("t1", 1), ("t2", 1), ("t1", 2)]))

    def test_earlier_tasks_may_be_trained_again(self, tmp_path: Path) -> None:
        """t1 in two visits, joint training between them, is the same as t1 in one: t2 alone counts."""
        options: dict[str, Any] = {"eval_sets": SETS, "tasks": ["t1", "t2"], "provenance": False}
        found = []
        for name, first in (("once", ["t1", "t1"]), ("again", ["t1", "joint", "t1"])):
            for scenario in ("sequential", "scratch_t2"):
                path = tmp_path / name / scenario
                with waterjar.Recorder(path, config(scenario, "sgd"), seeds=[1], **options) as recorder:
                    for i, task in enumerate(first if scenario == "sequential" else []):
                        row = dict.fromkeys(SETS, 0.1)
                        at = {"total_epoch": i + 1, "effective_epoch": 0}
                        recorder.log(train_task=task, epoch=i + 1, performance={"macro_accuracy": row}, **at)
                    for epoch in range(5):
                        row = dict.fromkeys(SETS, 0.2 * epoch)
                        at = {"total_epoch": len(first) + epoch, "effective_epoch": epoch}
                        recorder.log(train_task="t2", epoch=epoch, performance={"macro_accuracy": row}, **at)
            found.append(cell(measured(tmp_path / name, threshold=0.3, window=1), "sgd"))
        for metric in ("ad", "pd", "sfr_rel"):
            np.testing.assert_array_equal(found[0][metric].values, found[1][metric].values)
            assert np.isfinite(found[0][metric].values).all()


class TestAnotherOrderThanDeclared:
    """The same runs, their tasks declared in the order of training and in another one."""

    def record(self, path: Path, tasks: list[str], patched: str = "t2") -> waterjar.Study:
        waterjar.create_study(path)
        sets = {name: tasks.index("t1" if name == "t1_all" else "t2") for name in SETS}
        for seed in (1, 2, 3):
            for scenario, first in (("sequential", ["t1"]), ("scratch_t2", [])):
                name, late = config(scenario, "sgd"), scenario == "sequential"
                about: dict[str, Any] = {"eval_sets": sets, "tasks": tasks, "provenance": False}
                with waterjar.Recorder(path / f"{scenario}-{seed}", name, seeds=[seed], **about) as recorder:
                    for task, epoch in [(task, epoch) for task in [*first, "t2"] for epoch in range(5)]:
                        risen = max(epoch - late, 0) * (0.2 + 0.01 * seed) * (task == "t2")
                        row = {label: risen * (0.5 if "masked" in label else 1.0) for label in sets}
                        shown = {"patched_images": 50.0 * (task == patched and epoch > 0)}
                        recorder.log(train_task=task, epoch=epoch, performance={"macro_accuracy": row}, train=shown)
        return waterjar.open_study(path)

    @pytest.mark.parametrize("tasks", [["t1", "t2"], ["t2", "t1"], ["t1", "t2", "t3"]])
    def test_the_shortcut_has_to_be_in_the_task_that_was_trained_last(self, tmp_path: Path, tasks: list[str]) -> None:
        found = rigidity.measure(self.record(tmp_path / "there", tasks))
        assert cell(found, "sgd")["patched_images"].values.tolist() == [200, 200, 200]
        with pytest.raises(WaterjarError, match="no training image of the last task carried the shortcut"):
            rigidity.measure(self.record(tmp_path / "elsewhere", tasks, patched="t1").select("scenario == sequential"))

    @pytest.mark.parametrize(
        ("tasks", "note"),
        [
            (["t2", "t1"], "trained in the order t1, t2, declared as t2, t1: the recorded order counts"),
            (["t1", "t2", "t3"], "t3, declared as the last task, was not trained: t2 counts as the last one"),
        ],
    )
    def test_the_recorded_one_counts_and_is_said(self, tmp_path: Path, tasks: list[str], note: str) -> None:
        study = self.record(tmp_path / "other", tasks)
        found, right = (
            rigidity.measure(one, window=1) for one in (study, self.record(tmp_path / "right", ["t1", "t2"]))
        )
        for metric in rigidity.FAMILY.metrics.values():
            if metric.name in right:
                np.testing.assert_array_equal(found[metric.name].values, right[metric.name].values, metric.name)
        per_task = [{"t1": 0.9, "t2": 0.1, "t3": 0.9}[task] for task in tasks]
        share = [cell(rigidity.measure(study, chance=one), "sgd")["reliance_share"].values for one in (per_task, 0.1)]
        assert share[0].tolist() == share[1].tolist() and np.isfinite(share[0]).all()
        part = cell(found, "sgd")
        assert part["ad"].values.tolist() == [1, 1, 1] and str(part["order_note"].values) == note
        assert not right["order_note"].values.any()
        assert ("sgd", note) in diagnose(study, only=["rigidity"]).notes()

    def test_effective_epochs_that_are_given_are_taken(self, tmp_path: Path) -> None:
        sets = dict.fromkeys(SETS, 0) | {"t1_all": 1}
        about: dict[str, Any] = {"eval_sets": sets, "tasks": ["t2", "t1"], "provenance": False}
        with waterjar.Recorder(tmp_path / "run", config("sequential", "sgd"), **about) as recorder:
            for task, epoch, effective in (("t1", 0, 0), ("t1", 1, 0), ("t2", 1, 0.5), ("t2", 2, 1.0)):
                row = dict.fromkeys(SETS, effective)
                recorder.log(
                    train_task=task, epoch=epoch, effective_epoch=effective, performance={"macro_accuracy": row}
                )
        found = rigidity.measure(waterjar.open_run(tmp_path / "run"), window=1)
        assert found["adaptation_epoch"].values.tolist() == [1.0] and float(found["learner_budget"]) == 1.0

    def test_an_open_run_may_still_come_to_the_last_task(self, tmp_path: Path) -> None:
        about: dict[str, Any] = {"eval_sets": SETS, "tasks": ["t1", "t2", "t3"], "provenance": False}
        recorder = waterjar.Recorder(tmp_path / "run", config("sequential", "sgd"), **about)
        for epoch in range(2):
            recorder.log(train_task="t2", epoch=epoch, performance={"macro_accuracy": dict.fromkeys(SETS, 0.5)})
        found = rigidity.measure(waterjar.open_run(tmp_path / "run"))
        recorder.close()
        assert why(found, "sfr") == ["not_recorded"] and str(found["order_note"].values) == ""


class TestFloor:
    @given(st.lists(st.floats(0, 1), min_size=4, max_size=4))
    def test_the_identity(self, values: list[float]) -> None:
        normal, masked, theirs, their_masked = values
        relative = rigidity.shortcut_reliance(normal, masked, rigidity.shortcut_reliance(theirs, their_masked))
        deficit = rigidity.performance_deficit(normal, theirs)
        assert abs(float(relative) + float(deficit) + (masked - their_masked)) <= 1e-12

    def test_the_identity_of_a_study(self, tmp_path: Path) -> None:
        for seed in (1, 2, 3):
            write_run(tmp_path, "scratch_t2", "sgd", seed, BASELINE)
            write_run(tmp_path, "sequential", "derpp", seed, learner(seed))
        part = cell(measured(tmp_path), "derpp")
        total = part["sfr_rel"] + part["pd"] + part["masked_gap"]
        assert np.abs(total.values).max() <= 1e-12
        assert part["masked_gap"].values == pytest.approx([0.1] * 3)  # 0.2 at epoch 4, the baseline's 0.1 at epoch 2
        assert why(part, "reliance_share") == ["chance_unknown"] * 3
        told = cell(measured(tmp_path, chance=0.05), "derpp")
        assert told["reliance_share"].values == pytest.approx([0.6 / 0.75, 0.5 / 0.65, 0.4 / 0.55])
        per_task = cell(measured(tmp_path, chance=[0.5, 0.05]), "derpp")
        assert per_task["reliance_share"].values.tolist() == told["reliance_share"].values.tolist()
        for wrong in ([0.5], [0.5, 0.05, 0.05], []):
            with pytest.raises(WaterjarError, match=r"chance=\[.*\]: expected one number, or one for .* which has 2"):
                measured(tmp_path, chance=wrong)

    def test_the_share_by_hand(self) -> None:
        assert float(reliance_share(0.75, 0.15, 0.05)) == pytest.approx(0.6 / 0.7)
        assert float(reliance_share(0.5, 0.0, 0.1)) == pytest.approx(1.25)  # below chance
        assert reliance_share(0.1, 0.0, 0.1).reason == "undefined"  # nothing above chance that could hang on it
        assert reliance_share(0.5, 0.0, float("nan")).reason == "chance_unknown"
        assert reliance_share(float("nan"), 0.0, 0.1).reason == "not_a_number"

    def bound(self, masked: list[float], **settings: Any) -> dict[str, Any]:
        """The paper's pattern: quicker, ends higher, and all of it on the shortcut."""
        own = side_of([1, 2, 1], 9, [0.9, 0.88, 0.91], masked)
        other = side_of([7, 6, 7], 9, [0.6, 0.62, 0.61], [0.01, 0.02, 0.0])
        return dict(judged(own, other, **settings))

    def test_where_masking_takes_both_to_chance_no_pattern_is_named(self) -> None:
        assert str(self.bound([0.02, 0.0, 0.01])["pattern"]) == "shortcut_rigidity"  # chance is not known
        found = self.bound([0.02, 0.0, 0.01], chance=1 / 60)
        assert str(found["pattern"]) == "bound_by_floor"
        text = str(found["sentence"])
        assert "neither is clearly above chance (0.010 and 0.010; chance is 0.017)" in text
        assert "SFR_rel is bound by the floor" in text and "leans on the shortcut more" not in text

    def test_one_side_above_chance_leaves_it_free(self) -> None:
        assert str(self.bound([0.3, 0.31, 0.29], chance=1 / 60)["pattern"]) == "inconclusive"
        assert str(self.bound([0.1, 0.11, 0.09], chance=1 / 60)["pattern"]) == "shortcut_rigidity"

    def small(self, folder: Path, images: int, masked: float, theirs: float) -> xr.Dataset:
        """Sixty classes, so that chance is 0.017; everybody learned."""
        for scenario, end, hidden in (("scratch_t2", 0.6, theirs), ("sequential", 0.9, masked)):
            for seed in (1, 2, 3):
                about: dict[str, Any] = {"eval_sets": SETS, "tasks": ["t1", "t2"], "provenance": False}
                about |= {"classes": [f"class {i}" for i in range(60)], "eval_sizes": dict.fromkeys(SETS, images)}
                place = folder / f"{scenario}-{seed}"
                with waterjar.Recorder(place, config(scenario, "sgd"), seeds=[seed], **about) as recorder:
                    for epoch in range(3):
                        values = {**dict.fromkeys(SETS, end + 0.01 * seed), "t2_shortcut_masked": hidden}
                        recorder.log(train_task="t2", epoch=epoch, performance={"macro_accuracy": values})
        return cell(measured(folder), "sgd")

    def test_so_few_images_do_not_tell(self, tmp_path: Path) -> None:
        """Neither of 8 images was right in any seed: the rate may be 0.31 all the same, by 1 - 0.05 ** (1 / 8)."""
        part = self.small(tmp_path, 8, 0.0, 0.0)
        assert str(part["pattern"].values) == "floor_unknown"
        text = str(part["sentence"].values)
        assert (
            "Whether SFR_rel is bound by the floor is not known: with the shortcut masked accuracy is 0.000 and" in text
        )
        assert "8 images show neither that one of them is above chance (0.017) nor that both are at most 0.05" in text
        assert (
            "SFR_rel is bound by the floor, it is -PD" not in text and "what it adds in reliance cannot be told" in text
        )
        # none right: 1 - 0.05 ** (1 / n) <= 1 / 60 + 0.05 from 44 images on
        (needed,) = re.findall(r"sets of about (\d+) images would, if these accuracies hold", text)
        assert 44 <= int(needed) <= 1.1 * 44

    @pytest.mark.parametrize(
        ("images", "masked", "theirs", "pattern"),
        [
            (int(np.ceil(np.log(0.05) / np.log(1 - 1 / 60 - 0.05))), 0.0, 0.0, "bound_by_floor"),
            (500, 0.01, 0.02, "bound_by_floor"),
            (500, 0.01, 0.5, "free"),
            (8, 0.0, 0.5, "free"),
            (20, 0.05, 0.05, "floor_unknown"),
        ],
    )
    def test_more_do(self, tmp_path: Path, images: int, masked: float, theirs: float, pattern: str) -> None:
        found = str(self.small(tmp_path, images, masked, theirs)["pattern"].values)
        assert found == pattern or (pattern == "free" and "floor" not in found)

    @given(st.integers(1, 400), st.data())
    def test_the_upper_bound_is_that_of_scipy(self, size: int, data: st.DataObject) -> None:
        hits = data.draw(st.integers(0, size))
        upper = stats.binomtest(hits, size, alternative="less").proportion_ci(0.95, "exact").high
        for gap, within in ((-1e-4, False), (1e-4, True)):
            assert shown_within([hits / size] * 3, 0.0, size, 0.95, upper + gap) is within

    def test_without_a_size_seeds_decide(self) -> None:
        assert shown_within([0.02, 0.0, 0.01], 1 / 60, None, 0.95, 0.05)
        assert not shown_within([0.45, 0.0, 0.01], 1 / 60, None, 0.95, 0.05)
        assert shown_within([0.0] * 3, 1 / 60, None, 0.95, 0.05)
        assert not shown_within([0.3] * 3, 1 / 60, None, 0.95, 0.05)  # equal: their spread is not known
        assert not shown_within([np.nan], 0.1, 10, 0.95, 0.05) and not shown_within([0.0], np.nan, 10, 0.95, 0.05)
        text = str(self.bound([0.45, 0.0, 0.01], chance=1 / 60)["sentence"])
        assert "these seeds show neither" in text and "more seeds would, or the sizes of the sets" in text

    @pytest.mark.parametrize("name", ["masked_gap", "reliance_share"])
    def test_the_contract(self, name: str) -> None:
        check_metric(name)


class TestGuessing:
    @pytest.mark.parametrize("seeds", [1, 3, 20])
    def test_the_binomial(self, seeds: int) -> None:
        rare = 0.01 if seeds == 1 else 0.005  # two limits share 1 %
        for level, size in ((0.1, 100), (1 / 60, 500), (0.5, 40)):
            mean, best = luck_limits(level, size, seeds)
            pooled = stats.binom(size * seeds, level)
            assert pooled.sf(round(mean * size * seeds)) <= rare < pooled.sf(round(mean * size * seeds) - 1)
            any_above = [1 - stats.binom(size, level).cdf(round(best * size) - less) ** seeds for less in (0, 1)]
            assert any_above[0] <= rare < any_above[1]

    def test_one_seed_that_learned_is_somebody(self) -> None:
        assert above_guessing([0.1, 0.12, 0.2], 0.1, 100, 0.95) is False  # of three tries
        assert above_guessing([0.1, 0.12, 0.21], 0.1, 100, 0.95) is True
        assert above_guessing(np.float32([0.18]), 0.1, 100, 0.95) is False  # 0.1800000072 as a number of 64 bits

    @pytest.mark.parametrize(("seeds", "size", "accuracy"), [(3, 5, 1.0), (20, 10, 0.9), (20, 200, 0.58)])
    def test_seeds_that_agree_are_somebody(self, seeds: int, size: int, accuracy: float) -> None:
        """No seed alone could show it of two classes; together they do."""
        assert accuracy <= luck_limits(0.5, size, seeds)[1]
        assert stats.binomtest(round(seeds * size * accuracy), seeds * size, 0.5, alternative="greater").pvalue < 0.005
        assert above_guessing([accuracy] * seeds, 0.5, size, 0.95) is True

    def test_images_too_few_to_tell(self) -> None:
        assert 0.5**5 > 0.01  # five of five, by luck
        for accuracy in (0.4, 1.0):
            assert above_guessing([accuracy], 0.5, 5, 0.95) is None
            assert shown_above([accuracy], 0.5, 5, 0.95) is False
        assert above_guessing([4 / 7], 0.5, 7, 0.95) is False  # seven of seven would show it

    @pytest.mark.parametrize("seeds", [1, 3, 10, 20])
    @pytest.mark.parametrize(("level", "size"), [(0.2, 500), (0.5, 10)])
    def test_many_seeds_that_guess_are_not_called_learned(self, seeds: int, level: float, size: int) -> None:
        """Simulated: at 99 % for each of 20 seeds, 18 of 100 studies in which all guess had one that "learned"."""
        rng = np.random.default_rng(0)
        tries = rng.binomial(size, level, (4000, seeds)) / size
        called = np.mean([above_guessing(one, level, size, 0.95) for one in tries[:1000]])
        mean, best = luck_limits(level, size, seeds)
        exceeded = (tries.mean(1) > mean + 1e-9) | (tries.max(1) > best + 1e-9)
        assert called == exceeded[:1000].mean()
        assert exceeded.mean() <= 0.01 + 2 * np.sqrt(0.01 * 0.99 / 4000)
        assert above_guessing([0.2] * (seeds - 1) + [0.3], 0.2, 500, 0.95) is True  # and who did learn still shows

    def test_without_a_size_by_t(self) -> None:
        values = np.array([0.12, 0.16, 0.14])
        low = stats.ttest_1samp(values, 0.1, alternative="greater").confidence_interval(0.95).low
        assert shown_above(values, low + 1e-5, None, 0.95) is False
        assert shown_above(values, low - 1e-5, None, 0.95) is True
        assert above_guessing([0.9], 0.1, None, 0.95) is None  # of one seed there is no interval
        assert above_guessing([0.9, 0.9], float("nan"), 100, 0.95) is None

    def studied(
        self, folder: Path, final: float, theirs: float, sizes: dict[str, int] | None, count: int = 3
    ) -> xr.Dataset:
        classes = [f"class {i}" for i in range(20)]
        for scenario, end in (("scratch_t2", theirs), ("sequential", final)):
            for seed in range(1, count + 1):
                options: dict[str, Any] = {"eval_sets": SETS, "tasks": ["t1", "t2"], "classes": classes}
                place = folder / f"{scenario}-{seed}"
                with waterjar.Recorder(
                    place, config(scenario, "sgd"), seeds=[seed], eval_sizes=sizes, provenance=False, **options
                ) as recorder:
                    for epoch in range(3):
                        value = end + 0.01 * (seed - 2)
                        each = np.full((len(SETS), 20, 1), np.nan)
                        each[:, :10] = value  # half of the classes are in each set
                        recorder.log(
                            train_task="t2",
                            epoch=epoch,
                            performance={
                                "macro_accuracy": dict.fromkeys(SETS, value),
                                "class_accuracy": waterjar.masked(each, np.isnan(each), "empty_set"),
                            },
                            train={"patched_images": 5.0},
                        )
        return measured(folder)

    @pytest.mark.parametrize("sizes", [dict.fromkeys(SETS, 200), None])
    def test_no_verdict_where_nobody_learned(self, tmp_path: Path, sizes: dict[str, int] | None) -> None:
        result = self.studied(tmp_path, 0.10, 0.09, sizes)  # ten classes in the set: guessing has 0.1
        part = cell(result, "sgd")
        assert str(part["pattern"].values) == "nobody_learned"
        text = str(part["sentence"].values)
        assert text.startswith("Neither sgd nor scratch_t2 has learned the shortcut classes: accuracy 0.100")
        assert "guessing has 0.100" in text and "There is no verdict on rigidity." in text
        limits = "the mean of 3 seeds up to 0.133, the best up to 0.165 with 200 images, in 99 of 100 cases"
        assert (limits in text) == (sizes is not None)
        base = str(cell(result, "scratch_t2")["sentence"].values)
        assert "is the baseline. scratch_t2 has not learned the shortcut classes: accuracy 0.090" in base

    @pytest.mark.parametrize(("final", "theirs"), [(0.5, 0.09), (0.09, 0.5)])
    def test_one_of_them_is_enough(self, tmp_path: Path, final: float, theirs: float) -> None:
        part = cell(self.studied(tmp_path, final, theirs, dict.fromkeys(SETS, 200)), "sgd")
        assert str(part["pattern"].values) != "nobody_learned"
        assert "has learned" not in str(part["sentence"].values)

    def test_too_few_images_are_no_verdict_that_nobody_learned(self, tmp_path: Path) -> None:
        part = cell(self.studied(tmp_path, 0.5, 0.4, dict.fromkeys(SETS, 1), count=1), "sgd")
        assert str(part["pattern"].values) != "nobody_learned"
        told = "Whether sgd or scratch_t2 learned the shortcut classes cannot be told: with 1 image and 1 seed even an"
        assert f"{told} accuracy of 1 may be guessing, which has 0.100." in str(part["sentence"].values)


class TestWhatIsSaid:
    def test_a_run_that_ended_is_named(self, tmp_path: Path) -> None:
        for seed in (1, 2, 3):
            write_run(tmp_path, "scratch_t2", "sgd", seed, BASELINE)
        for seed in (1, 2):
            write_run(tmp_path, "sequential", "derpp", seed, learner(seed))
        write_run(tmp_path, "sequential", "derpp", 3, {name: values[:2] for name, values in learner(3).items()})
        text = str(cell(measured(tmp_path), "derpp")["sentence"].values)
        assert "Seed 3 of derpp ended before the other runs of the cell (run_ended), and is left out" in text
        assert "ended before" not in str(cell(measured(tmp_path), "scratch_t2")["sentence"].values)

    def test_no_baseline_and_no_partner_are_causes_of_their_own(self, tmp_path: Path) -> None:
        for seed in (1, 2):
            write_run(tmp_path, "sequential", "derpp", seed, learner(seed))
        write_run(tmp_path, "scratch_t2", "sgd", 1, BASELINE)
        for name in ("ad", "pd", "sfr_rel", "ad_restricted", "masked_gap"):
            assert why(cell(measured(tmp_path), "derpp"), name) == ["present", "no_run"], name
            assert why(cell(measured(tmp_path, baseline=None), "derpp"), name) == ["no_baseline"] * 2, name
        alone = cell(measured(tmp_path, baseline=None), "derpp")
        for name in ("pd_mean", "pd_seeds_needed", "seeds_needed", "ad_restricted_bootstrap_low", "baseline_budget"):
            assert why(alone, name) == ["no_baseline"], name

    def test_every_reason_has_a_meaning_and_codes_stay(self) -> None:
        old = ["present", "not_recorded", "not_a_number", "empty_set", "run_ended", "never_reached", "undefined"]
        assert list(REASONS[: len(old)]) == old and tuple(MEANINGS) == REASONS
        assert "--set chance=0.5, or classes= of the Recorder" in MEANINGS["chance_unknown"]

    def test_equal_delays_count_from_six_seeds_on(self) -> None:
        for n, clear in ((5, False), (6, True)):
            found = judged(side_of([5] * n, 8, [0.7] * n, [0.1] * n), side_of([1] * n, 8, [0.9] * n, [0.6] * n))
            assert found["ad"].tolist() == [4] * n
            assert ("needs more epochs than base" in str(found["sentence"])) is clear
            assert ("AD +4.0 in each of 5 seeds, spread unknown" in str(found["sentence"])) is not clear

    def test_equal_but_for_rounding_is_equal(self) -> None:
        # 0.3 - 0.1 and 0.2 - 0.0 differ by 5e-17
        own = side_of([1, 2, 3], 8, [0.3, 0.2, 0.7], [0.1, 0.1, 0.1])
        other = side_of([1, 2, 3], 8, [0.1, 0.0, 0.5], [0.1, 0.1, 0.1])
        text = str(judged(own, other)["sentence"])
        assert "it ends neither clearly lower nor higher (PD -0.200 in each of 3 seeds, spread unknown)" in text
