"""Tables on terminals of any width."""

from __future__ import annotations

import io
import sys

import pytest

from waterjar.cli.output import print_rich, row, table

NAME = "sequential-small_cnn-derpp-lr=0.02-0a1b2c3d"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(made: object, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal of 80 columns shows."""
    out = Terminal()
    with monkeypatch.context() as patch:
        patch.setenv("COLUMNS", "80")
        patch.setenv("TERM", "dumb")
        patch.setattr(sys, "stdout", out)
        print_rich(made)
    return out.getvalue()


def test_names_of_runs_are_never_broken_and_columns_go_on_below(monkeypatch: pytest.MonkeyPatch) -> None:
    made = table("runs", ["run", *(f"setting {i}" for i in range(8))])
    row(made, NAME, *(f"value {i}" for i in range(8)))
    text = shown(made, monkeypatch)
    lines = text.splitlines()
    assert all(len(line) <= 80 for line in lines)
    with_name = [line for line in lines if NAME in line]
    assert len(with_name) > 1  # once in each part
    assert [word for line in with_name for word in line.split("  ") if word.strip().startswith("value")]
    assert all(f"value {i}" in text and f"setting {i}" in text for i in range(8))


def test_columns_that_say_what_a_row_is_about_stand_in_every_part(monkeypatch: pytest.MonkeyPatch) -> None:
    made = table("", ["metric", "cell", *(f"column number {i}" for i in range(6))], ("cell",))
    row(made, "ACC", "naive", *(f"number {i}" for i in range(6)))
    text = shown(made, monkeypatch)
    parts = [line for line in text.splitlines() if "ACC" in line]
    assert len(parts) > 1 and all("naive" in line for line in parts)


def test_long_texts_wrap_in_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    made = table("", ["name", "why"])
    row(made, "a", "one word after the other " * 10)
    text = shown(made, monkeypatch)
    assert text.count("name") == 1
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_name_wider_than_the_terminal_is_folded_and_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    made = table("", ["name", "value"])
    row(made, "x" * 100, "1")
    text = shown(made, monkeypatch)
    assert text.count("x") == 100


def test_a_pipe_gets_one_line_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    made = table("", ["run", *(f"setting {i}" for i in range(20))])
    row(made, NAME, *(f"value {i}" for i in range(20)))
    print_rich(made)
    assert any(NAME in line and "value 19" in line for line in capsys.readouterr().out.splitlines())
