"""Studies whose numbers are no accuracies, such as the returns of an agent: tables, tests, report and figures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import ttest_rel
from typer.testing import CliRunner

import waterjar
import waterjar as wj
from waterjar.cli.main import app
from waterjar.diagnose.study import diagnose
from waterjar.errors import WaterjarError

SEEDS = 20
HIGHER = {"monitor/return": wj.Variable(("step", "repeat"), "return", direction="higher")}
QUICK = {"provenance": False, "summary": False, "storage": wj.Storage(sync=False)}


def last(method: str, seed: int) -> float:
    return float(np.random.default_rng([seed, len(method)]).normal(100 if method == "ppo" else 90, 5))


def write(folder: Path, variables: dict[str, wj.Variable] | None) -> Path:
    for method in ("a2c+", "ppo"):
        for seed in range(SEEDS):
            with wj.Recorder(
                folder / f"{method}-{seed}", {"method": method}, seeds=[seed], variables=variables or {}, **QUICK
            ) as recorder:
                for epoch in range(3):
                    value = last(method, seed) if epoch == 2 else 0.0
                    recorder.log(epoch=epoch, monitor={"return": value, "length": 7.0})
    return folder


@pytest.fixture(scope="module")
def returns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("returns") / "study", HIGHER)


@pytest.fixture(scope="module")
def undirected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("undirected") / "study", None)


def command(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def test_the_last_values_are_summed_up_without_a_setting(returns: Path) -> None:
    table = wj.summary(returns)
    assert list(table.index) == ["monitor/return ↑", "monitor/length"]
    numbers = wj.summary(returns, "return", numbers=True)
    own = [last("ppo", seed) for seed in range(SEEDS)]
    assert numbers.loc["monitor/return", ("ppo", "mean")] == pytest.approx(np.mean(own))
    assert numbers.loc["monitor/return", ("ppo", "n")] == SEEDS
    assert "monitor/return" in repr(wj.measure(returns))


def test_they_are_compared_as_scipy_does(returns: Path) -> None:
    own, other = ([last(method, seed) for seed in range(SEEDS)] for method in ("ppo", "a2c+"))
    found = wj.compare(returns, "return", baseline="a2c+").set_index("cell").loc["ppo"]
    assert found["metric"] == "monitor/return"
    assert found["difference"] == pytest.approx(np.mean(own) - np.mean(other))
    assert found["p"] == pytest.approx(ttest_rel(own, other).pvalue)
    better = np.mean(np.sign(np.subtract(own, other)) > 0)
    assert found["improvement"] == pytest.approx(better) and better > 0.5
    assert set(wj.compare(returns)["metric"]) == {"monitor/return", "monitor/length"}


def test_commands_say_the_same(returns: Path, undirected: Path) -> None:
    assert "monitor/return ↑" in command("diagnose", returns)
    assert "monitor/return" in command("diagnose", returns, "--only", "return", "--csv")
    said = command("compare", returns, "--metrics", "return", "--no-figures")
    assert "monitor/return ↑" in said and "over 1 test" in said and "Recorder(" not in said
    said = command("compare", undirected, "--metrics", "monitor/return", "--no-figures")
    assert "which way is better was not recorded: Recorder(..., variables={'monitor/return': waterjar.Variable(" in said
    assert wj.compare(undirected, "return")["improvement"].isna().all()


def test_a_word_that_nothing_has_is_an_error(returns: Path) -> None:
    with pytest.raises(WaterjarError, match="retrun"):
        wj.compare(returns, "retrun")
    with pytest.raises(WaterjarError, match="retrun"):
        wj.summary(wj.measure(returns), "retrun")


def test_the_report_tests_them_once(returns: Path, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    page = wj.report(returns, tmp_path / "report.md").read_text()
    assert "ppo has a higher return than a2c+" in page
    assert page.count("corrected over 2 tests") == 1 and "monitor/return" in page


@pytest.mark.no_cover
def test_figures_show_them_without_a_setting(returns: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    wj.plot.learning_curves(returns).savefig(tmp_path / "x.png")
    command("compare", returns, "--out", tmp_path / "figures")
    assert {file.name for file in (tmp_path / "figures").iterdir()} == {
        "curves_monitor_length.png",
        "curves_monitor_return.png",
    }


def test_beside_accuracies_over_tasks_they_stand_in_tables_and_are_not_tested(tmp_path: Path) -> None:
    with wj.Recorder(
        tmp_path / "study" / "one", {"method": "m"}, seeds=[0], tasks=["a"], eval_sets={"a": "a"}, **QUICK
    ) as recorder:
        for epoch in range(3):
            recorder.log(epoch=epoch, performance={"accuracy": {"a": 0.3 * epoch}}, monitor={"return": float(epoch)})
    found = diagnose(waterjar.open_study(tmp_path / "study"))
    assert found.ends == [] and found.described == ["monitor/return"]
    assert "monitor/return" in set(found.table()["metric"]) and "monitor/return" not in found.main_metrics()
    assert found.table(["return", "ACC"])["metric"].tolist() == ["monitor/return", "average_accuracy"]
    assert found.table(["return"])["value"].tolist() == [2.0]


def test_nothing_at_all_is_still_an_error(tmp_path: Path) -> None:
    with wj.Recorder(tmp_path / "study" / "one", {"method": "m"}, seeds=[0], **QUICK) as recorder:
        recorder.event("note", "nothing was logged")
    with pytest.raises(WaterjarError, match="nothing could be measured"):
        wj.summary(tmp_path / "study")
