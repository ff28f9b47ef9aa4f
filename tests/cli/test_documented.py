"""Every command that README, docs and --help show works."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import waterjar
from recording import einstellung
from view.figures.repeated_runs import repeated_run
from waterjar.cli.main import app
from waterjar.view.report.renderers import pdf

HOME = Path(__file__).resolve().parents[2]
OWN_TEST = "howto-losses.md"
"""It has a study of its own, and a test: test_howto_losses.py."""
PAGES = [HOME / "README.md", *(page for page in sorted((HOME / "docs").glob("*.md")) if page.name != OWN_TEST)]
COMMANDS = sorted(
    {
        line.strip().partition("#")[0].strip()
        for page in PAGES
        for line in page.read_text().splitlines()
        if re.match(r"\s*waterjar [a-z]+ ", line)
    }
)
TRAINING = [command for command in COMMANDS if command.startswith(("waterjar run", "waterjar branch"))]
"""Those that train; `branch` is tried in tests/lab/study/test_branch.py, where there is a run to go off from."""
BINARY = ("binary", "forgetting,capacity")
"""What shows that a command is about algorithms with many repeats."""
OF_STREAMS = "template"
"""What shows that it is about collectives."""
NAMES = [name for command in app.registered_commands if (name := command.name)]


def run(command: str) -> str:
    result = CliRunner().invoke(app, shlex.split(command)[1:])
    if result.exception is not None and not (isinstance(result.exception, SystemExit) and result.exit_code == 0):
        raise result.exception
    return result.output


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documented")
    waterjar.create_study(folder / "DIR")
    for rate in (0.25, 0.5):
        for seed in (1, 2):
            for learner in ("derpp", "er"):
                einstellung(folder / "DIR" / f"{learner}-{rate}-{seed}", learner=learner, seed=seed, rate=rate)
            einstellung(folder / "DIR" / f"scratch-{rate}-{seed}", scenario="scratch_t2", seed=seed, rate=rate)
    waterjar.create_study(folder / "binary")
    for i, method in enumerate(("sl", "rl")):
        repeated_run(folder / "binary" / method, method, [1, 2, 3], tasks=2, number=i)
    waterjar.create_study(folder / "streams")
    logits = np.random.default_rng(0).normal(size=(2, 20, 3))
    waterjar.from_logits(
        folder / "streams" / "run", dict(zip("ab", logits, strict=True)), collective="vote", labels=np.arange(20) % 3
    )
    for name in ("DIR", "binary", "streams"):  # measured once: what is copied below has the results with it
        run(f"waterjar diagnose {folder / name}")
    return folder


@pytest.mark.parametrize("command", [command for command in COMMANDS if command not in TRAINING])
def test_it_works_as_written(command: str, studies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    if re.match(r"waterjar report .*\.pdf", command) and not any(map(shutil.which, pdf.NAMES)):
        pytest.skip("chromium is not installed")
    shutil.copytree(studies, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    command = re.sub(r" study\b", " DIR", command)  # that of the README's own loop
    if any(word in command for word in BINARY):
        command = command.replace("DIR", "binary")
    if OF_STREAMS in command:
        command = command.replace("DIR", "streams")
    assert run(command.replace("NAME", "eri_summary")) is not None


def test_there_are_commands_to_try() -> None:
    tried = {command.split()[1] for command in COMMANDS}
    assert {"diagnose", "compare", "sensitivity", "plot", "report", "new", "run"} <= tried and len(COMMANDS) > 15


@pytest.mark.parametrize("name", NAMES)
def test_help_is_there(name: str) -> None:
    assert "--help" in run(f"waterjar {name} --help")


EXAMPLES = sorted(
    (command.name or "", option.opts[0], example)
    for command, made in (
        (one, typer.main.get_command_from_info(one, pretty_exceptions_short=False, rich_markup_mode=None))
        for one in app.registered_commands
    )
    for option in made.params
    for text in re.findall(r"such as (.*?)(?:;|\.(?: |$)|$)", getattr(option, "help", None) or "")
    for example in text.replace('"', "").split(" or ")
)
"""Command, option and what its help shows as an example of it."""
OF_TRAINED = ("reproduce",)
"""Commands whose examples need a study that was trained by the laboratory: they are tried where one is."""
BESIDE = {
    "export": "--out out.csv --format csv",
    "export --set": "--out out --analyses --layer late",
    "plot": "--out x.png --figure eri_summary",
    "sensitivity": "--metric sfr_rel --over patch.rate",
    "sensitivity --over threshold": "--values 0.4,0.5",
    "compare": "--no-figures",
    "report": "--out x.json",
}
"""What else a command needs, all of it or with an option, or with one example of it."""


def test_there_are_examples_to_try() -> None:
    tried = {(command, option) for command, option, _ in EXAMPLES}
    of_all = {
        (c, o) for c in ("diagnose", "compare", "plot", "report", "export", "sensitivity") for o in ("--set", "--where")
    }
    assert of_all | {("ls", "--where"), ("compare", "--metrics"), ("sensitivity", "--over")} <= tried


@pytest.mark.parametrize(("command", "option", "example"), [one for one in EXAMPLES if one[0] not in OF_TRAINED])
def test_what_the_help_shows_as_an_example(
    command: str, option: str, example: str, studies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    study = studies / ("binary" if (command, option) == ("export", "--set") else "DIR")
    own = BESIDE.get(f"{command} {option}", BESIDE.get(command, ""))
    own = re.sub(rf"{option} \S+", "", own) + " " + BESIDE.get(f"{command} {option} {example}", "")
    assert run(f"waterjar {command} {study} {own} {option} {shlex.quote(example)}")


@pytest.mark.parametrize("options", ["--only rigidity --csv", "--only ad,pd --json --fresh --workers 1"])
def test_options_go_together(options: str, studies: Path) -> None:
    assert run(f"waterjar diagnose {studies / 'DIR'} {options}")


@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.parametrize("kind", ["einstellung", "binary"])
def test_training_works_as_written(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The template, shrunk, through every documented way of running it."""
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    file = "study.yaml" if kind == "einstellung" else "binary.yaml"
    run(f"waterjar new {file} --kind {kind}")
    text = Path(file).read_text()
    for old, new in (("train_per_class: 200", "train_per_class: 8"), ("test_per_class: 50", "test_per_class: 4"),
                     ("epochs_t1: 10", "epochs_t1: 1"), ("epochs_t2: 10", "epochs_t2: 2"), ("epochs: 10", "epochs: 1"),
                     ("number: 6", "number: 2"), ("repeats: 8", "repeats: 2"), ("samples: 40", "samples: 8"),
                     ("validation: 0.1", "validation: 0.25"), ("seeds: [42, 123, 456]", "seeds: [42]"),
                     ("backbones: [small_cnn]", "backbones: [mlp]")):  # fmt: skip
        text = text.replace(old, new)
    Path(file).write_text(text)
    for command in [command for command in TRAINING if file in command]:
        run(command)
    out = Path(file).with_suffix("")
    assert (out / "report.html").exists() and list((out / "figures").rglob("*.png"))
    tried = [(command, option, example) for command, option, example in EXAMPLES if command in OF_TRAINED]
    assert tried
    for command, option, example in tried:
        assert "equal" in run(f"waterjar {command} {out} {option} {example} --seed 1")


def test_the_metric_of_contributing_is_one() -> None:
    """Whoever copies it from there has a metric that keeps the contract."""
    from waterjar.diagnose.registry import forget
    from waterjar.testing import check_metric

    (code,) = re.findall(r"```python\n(.*?)```", (HOME / "CONTRIBUTING.md").read_text(), re.DOTALL)
    try:
        exec(compile(code, "CONTRIBUTING.md", "exec"), {"__name__": "contributing"})
        check_metric("largest_activation")
    finally:
        forget("largest_activation")
