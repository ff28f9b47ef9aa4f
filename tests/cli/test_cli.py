from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import waterjar
from recording import record
from waterjar import Recorder
from waterjar.cli import doctor
from waterjar.cli.main import app, main


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


@pytest.fixture
def study(tmp_path: Path) -> Path:
    folder = waterjar.create_study(tmp_path / "study", {"title": "x"})
    for learner, seed in (("sgd", 1), ("sgd", 2), ("derpp", 1)):
        with Recorder(folder / f"{learner}-{seed}", {"learner": learner, "opt": {"lr": 0.1}}, seeds=[seed],
                      eval_sets=["test"]) as recorder:  # fmt: skip
            recorder.log(epoch=0, performance={"accuracy": 0.25, "loss": float("nan")})
    return folder


def test_help_imports_nothing_heavy() -> None:
    script = (
        "import sys\n"
        "from waterjar.cli.main import app\n"
        "try: app(['--help'])\n"
        "except SystemExit as done: assert not done.code\n"
        "heavy = {'torch', 'xarray', 'scipy', 'matplotlib', 'zarr', 'numba', 'pandas', 'numpy'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for command in ("ls", "show", "verify", "doctor"):
        assert command in done.stdout


def test_importing_waterjar_is_light() -> None:
    script = "import sys, waterjar; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_version() -> None:
    assert run("--version") == (0, f"waterjar {waterjar.__version__}\n")


def test_ls(study: Path) -> None:
    code, text = run("ls", study)
    assert code == 0
    for word in ("derpp-1", "sgd-2", "sealed", "3 runs, 2 cells", waterjar.open_run(study / "sgd-1").root_hash[:12]):
        assert word in text
    code, text = run("ls", study, "--where", "learner=sgd and seed in (2, 3)", "--json")
    assert [entry["name"] for entry in json.loads(text)] == ["sgd-2"]
    assert json.loads(text)[0]["config"] == {"learner": "sgd", "opt": {"lr": 0.1}}
    assert "no runs in" in run("ls", study, "--where", "seed=9")[1]


def test_show(study: Path) -> None:
    code, text = run("show", study / "sgd-1")
    assert code == 0
    for word in ("config.opt.lr", "performance/accuracy", "0.2500", "test", "sealed"):
        assert word in text
    found = json.loads(run("show", study / "sgd-1", "--json")[1])
    assert found["performance"] == {
        "step": 0,
        "variables": ["accuracy", "loss"],
        "last": {"test": [0.25, None]},
    }
    assert found["config"]["learner"] == "sgd"
    assert found["root_hash"] == waterjar.open_run(study / "sgd-1").root_hash
    arrays = {array["name"]: array for array in found["arrays"]}
    assert arrays["performance/loss"]["direction"] == "lower"
    with Recorder(study / "bare", {}) as recorder:
        recorder.log(epoch=0, train={"loss": 1})
    assert "performance at" not in run("show", study / "bare")[1]


def test_names_from_files_are_text_not_markup(tmp_path: Path) -> None:
    config = {"learner": "[bold red]x[/]\x1b[31m"}
    with Recorder(tmp_path / "run", config, eval_sets=["[link=http://evil]a"]) as recorder:
        recorder.log(epoch=0, performance={"accuracy": 0.5})
    text = run("ls", tmp_path)[1] + run("show", tmp_path / "run")[1]
    assert "[bold red]x[/]" in text
    assert "[link=http://evil]a" in text
    assert "\x1b[31m" not in text


def test_verify(study: Path) -> None:
    assert run("verify", study / "sgd-1")[0] == 0
    code, text = run("verify", study, "--json")
    assert (code, {found["state"] for found in json.loads(text)}) == (0, {"sealed"})
    chunk = study / "sgd-2" / "performance" / "accuracy" / "c" / "0" / "0" / "0"
    data = bytearray(chunk.read_bytes())
    data[3] ^= 4
    chunk.write_bytes(data)
    code, text = run("verify", study)
    assert code == 1
    assert "changed: array performance/accuracy, chunk 0/0/0" in text
    found = {Path(item["path"]).name: item for item in json.loads(run("verify", study, "--json")[1])}
    assert found["sgd-1"]["state"] == "sealed"
    assert found["sgd-2"]["problems"] == [
        {"kind": "changed", "file": "performance/accuracy/c/0/0/0", "array": "performance/accuracy", "chunk": "0/0/0"}
    ]


def test_verify_knows_what_the_ledger_knows(study: Path) -> None:
    shutil.rmtree(study / "sgd-2")
    code, text = run("verify", study)
    assert code == 1
    assert "missing" in text
    assert {item["state"] for item in json.loads(run("verify", study, "--json")[1])} == {"sealed", "missing"}


def test_verify_passes_over_what_was_never_a_run(study: Path) -> None:
    (study / "other.zarr").mkdir()
    (study / "other.zarr" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    (study / "broken").mkdir()
    (study / "broken" / "zarr.json").write_text("{")
    code, text = run("verify", study, "--json")
    states = {Path(item["path"]).name: item["state"] for item in json.loads(text)}
    assert code == 1
    assert states == {"derpp-1": "sealed", "sgd-1": "sealed", "sgd-2": "sealed", "broken": "tampered"}
    with pytest.raises(waterjar.WaterjarError, match="is not a waterjar run"):
        run("verify", study / "other.zarr")


def test_verify_open_and_extra(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run", {})
    assert run("verify", tmp_path / "run")[0] == 0
    assert "open" in run("verify", tmp_path / "run")[1]
    assert run("verify", tmp_path / "run", "--require-sealed")[0] == 1
    code, text = run("verify", tmp_path / "run", "--sign")
    assert code == 1
    assert "not signed, because it is not sealed" in text
    recorder.close()
    (tmp_path / "run" / "notes.md").write_text("x")
    code, text = run("verify", tmp_path / "run", "--require-sealed")
    assert code == 0
    assert "not part of the run: notes.md" in text


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen")
def test_verify_signs(tmp_path: Path, run_path: Path) -> None:
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    assert run("verify", run_path, "--sign", "--key", key)[0] == 0
    assert "signer not in a list given" in run("verify", run_path)[1]
    (tmp_path / "allowed").write_text(f"ada {key.with_suffix('.pub').read_text()}")
    assert "by ada SHA256:" in run("verify", run_path, "--allowed-signers", tmp_path / "allowed")[1]
    signature = run_path / ".waterjar" / "manifest.sha256.sig"
    signature.write_text(signature.read_text().replace("A", "B", 3))
    assert run("verify", run_path)[0] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ls", "nowhere"], "nowhere is not a directory"),
        (["show", "nowhere"], "nowhere is not a run"),
        (["verify", "nowhere"], "nowhere is not a directory"),
        (["verify", "."], "is not a run and holds none"),
        (["ls", ".", "--where", "a b"], "is not understood"),
    ],
)
def test_errors_are_one_line_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["waterjar", *arguments])
    with pytest.raises(SystemExit) as done:
        main()
    assert done.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    for seed in range(30):
        record(tmp_path / f"run-{seed}", steps=1, seed=seed)
    command = f"{sys.executable} -m waterjar ls {tmp_path} --json | head -n 1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert done.stdout == "[\n"
    assert "Traceback" not in done.stderr


def test_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    code, text = run("doctor")
    assert code == 0
    assert "core" in text
    found = json.loads(run("doctor", "--json")[1])
    assert found["waterjar"] == waterjar.__version__
    assert found["extras"]["core"]["missing"] == []
    assert found["extras"]["core"]["installed"]["xarray"]
    assert max(map(len, text.split("\n"))) <= 80
    words = text.replace(",", " ").split()
    for extra in found["extras"].values():
        assert all(package in words for package in (*extra["installed"], *extra["missing"]))
    needed = [f"adversarial-robustness-toolbox-{n}>=1; extra == 'oracle'" for n in range(4)]
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: needed)
    text = run("doctor")[1]  # names of what is missing are whole in 80 columns, too
    assert max(map(len, text.split("\n"))) <= 80
    assert all(f"adversarial-robustness-toolbox-{n}" in text.replace(",", " ").split() for n in range(4))
    needed = ["numpy>=2", 'no-such-thing[x]>=1.0; extra == "lab"', "waterjar[lab]; extra == 'all'"]
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: needed)
    lab = json.loads(run("doctor", "--json")[1])["extras"]["lab"]
    assert lab == {"installed": {}, "missing": ["no-such-thing"], "command": "pip install '.[lab]'"}
    assert "in a checkout of waterjar: pip install '.[lab]'" in run("doctor")[1]
    monkeypatch.setattr(
        doctor.metadata, "requires", lambda name: ["numpy; extra == 'a'", "no-such-thing; extra == 'a'"]
    )
    text = run("doctor")[1]
    assert "\\x0a" not in text and any(line.strip() == "missing: no-such-thing" for line in text.split("\n"))


def test_odd_runs_are_shown_too(tmp_path: Path) -> None:
    with Recorder(tmp_path / "inf", {}, eval_sets=["a"]) as recorder:
        recorder.log(epoch=0, performance={"loss": float("inf")})
        recorder.log(epoch=1, train={"loss": 1.0})
    found = json.loads(run("show", tmp_path / "inf", "--json")[1])
    assert found["performance"] == {"step": 0, "variables": ["loss"], "last": {"a": ["inf"]}}
    assert "performance at step 0" in run("show", tmp_path / "inf")[1]
    recorder = Recorder(tmp_path / "cut", {}, eval_sets=["a"])
    recorder.log(epoch=0, performance={"loss": 1.0})
    recorder._store.unlock()
    with Recorder(tmp_path / "cut", {}, eval_sets=["a"], resume_at=-1):
        pass
    assert run("show", tmp_path / "cut")[0] == 0


def test_allowed_signers_must_have_signed(tmp_path: Path, run_path: Path) -> None:
    (tmp_path / "allowed").write_text("")
    assert run("verify", run_path, "--allowed-signers", tmp_path / "allowed")[0] == 1


def test_doctor_reads_names_with_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: ["Jinja2>=3.1; extra == 'view'", "a.b-c2 (>=1)"])
    extras = json.loads(run("doctor", "--json")[1])["extras"]
    assert [*extras["view"]["installed"], *extras["view"]["missing"]] == ["Jinja2"]
    assert extras["core"]["missing"] == ["a.b-c2"]


def test_show_tells_the_order_of_training(tmp_path: Path) -> None:
    for name, visits in (("once", "xy"), ("again", "xyxy")):
        with Recorder(tmp_path / name, {}, eval_sets=["a"], tasks=["x", "y"]) as recorder:
            for task in visits:
                recorder.log(train_task=task, epoch=1, performance={"accuracy": 0.5})
    assert "visits" not in run("show", tmp_path / "once")[1]
    assert re.search(r"visits\W+x, y, x, y", run("show", tmp_path / "again")[1])
    assert json.loads(run("show", tmp_path / "again", "--json")[1])["visits"] == ["x", "y", "x", "y"]


def test_show_tells_what_happened(tmp_path: Path) -> None:
    with Recorder(tmp_path / "quiet", {}, eval_sets=["a"]) as recorder:
        recorder.log(epoch=0, performance={"accuracy": 0.5})
    with Recorder(tmp_path / "loud", {}, eval_sets=["a"], seeds=[7, 8]) as recorder:
        recorder.log(epoch=0, performance={"accuracy": [[0.5, 0.5]]})
        recorder.event("dead_network", "nobody [bold]answers[/]", level="warning", repeat=1)
        for number in range(30):
            recorder.event("count", f"event {number:02d}")
    assert "events" not in run("show", tmp_path / "quiet")[1].replace("events_", "")
    text = run("show", tmp_path / "loud")[1]
    assert "event 29" in text and "event 10" in text and "event 09" not in text
    events = json.loads(run("show", tmp_path / "loud", "--json")[1])["events"]
    assert len(events) == 31
    assert events[0] | {"time": 0.0} == {
        "step": 0, "time": 0.0, "seed": 8, "level": "warning", "kind": "dead_network",
        "message": "nobody [bold]answers[/]",
    }  # fmt: skip
