"""The fairpca command in a subprocess."""

from __future__ import annotations

import subprocess
import sys

COMMAND = [sys.executable, "-W", "error", "-m", "fairpca"]


def run(*arguments, cwd, stdin=None, code=0, text=True):
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=text,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    return done


def fails(*arguments, cwd, code=2, stdin=None):
    """Run a command that must fail with one line, and leave the folder as it was."""
    before = sorted(cwd.iterdir())
    done = run(*arguments, cwd=cwd, code=code, stdin=stdin)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("fairpca: ")
    assert sorted(cwd.iterdir()) == before
    return done.stderr
