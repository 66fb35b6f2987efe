"""A shell may ask what could be typed next."""

from __future__ import annotations

import pytest
from helpers.command import run

pytest.importorskip("typer", reason="the command needs the cli extra")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("fairpca re", {"report"}),
        ("fairpca report --model-c", {"--model-card"}),
        ("fairpca fit --constraint ", {"pareto", "no_worse", "none"}),
    ],
)
def test_the_shell_is_told_what_could_come_next(typed, offered, monkeypatch, tmp_path):
    monkeypatch.setenv("_FAIRPCA_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split(" ")) - 1))
    assert set(run(cwd=tmp_path).stdout.split()) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_the_shell_in_use_is_shown(shell, monkeypatch, tmp_path):
    shellingham = pytest.importorskip("shellingham")
    monkeypatch.setattr(shellingham, "detect_shell", lambda: (shell, f"/bin/{shell}"))
    assert f"complete_{shell}" in run("--show-completion", cwd=tmp_path).stdout
