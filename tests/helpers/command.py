"""The fairpca command, within this process or in one of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from unittest.mock import patch

#: The command in a process of its own: for signals, pipes, terminals and encodings.
COMMAND = [sys.executable, "-W", "error", "-m", "fairpca"]


def run(*arguments, cwd, stdin="", code=0, text=True):
    """Run the command within this process; return what `subprocess.run` would."""
    from fairpca.__main__ import main

    words = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in arguments]
    given = io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8")
    printed, complaints = (
        io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)
    )
    with (
        chdir(cwd),
        patch.object(sys, "stdin", given),
        redirect_stdout(printed),
        redirect_stderr(complaints),
    ):
        try:
            main(words)
        except SystemExit as end:
            status = int(end.code or 0)
    answers = [stream.buffer.getvalue() for stream in (printed, complaints)]
    if text:
        answers = [answer.decode() for answer in answers]
    done = subprocess.CompletedProcess(words, status, *answers)
    assert done.returncode == code, done.stderr
    return done


def fails(*arguments, cwd, code=2, stdin=""):
    """Run a command that must fail with one line, and leave the folder as it was."""
    before = sorted(cwd.iterdir())
    done = run(*arguments, cwd=cwd, code=code, stdin=stdin)
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("fairpca: ")
    assert sorted(cwd.iterdir()) == before
    return done.stderr
