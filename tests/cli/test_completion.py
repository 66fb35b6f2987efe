"""A shell may ask what could be typed next."""

from __future__ import annotations

import pytest
from helpers.command import run

pytest.importorskip("click", reason="the command needs the cli extra")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("fairpca re", {"report"}),
        ("fairpca report --model-c", {"--model-card"}),
        ("fairpca fit --constraint ", {"efficient", "no_worse", "parity"}),
    ],
)
def test_the_shell_is_told_what_could_come_next(typed, offered, monkeypatch, tmp_path):
    monkeypatch.setenv("_FAIRPCA_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
    lines = run(cwd=tmp_path).stdout.splitlines()
    assert {line.partition(",")[2] for line in lines} == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_told_how_to_ask(shell, monkeypatch, tmp_path):
    monkeypatch.setenv("_FAIRPCA_COMPLETE", f"{shell}_source")
    assert f"{shell}_complete" in run(cwd=tmp_path).stdout
