"""What the command shows on a terminal and elsewhere."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from helpers.command import COMMAND, fails, run

import fairpca

pa = pytest.importorskip("pyarrow", reason="the command line needs the cli extra")
pytest.importorskip("typer")
import pyarrow.parquet as pq  # noqa: E402


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no such terminals")
def test_progress_is_shown_on_a_terminal_only(tmp_path):
    """A slow reader makes the bar appear; it is gone, and nothing is written, at the end."""
    controller, terminal = os.openpty()
    command = [*COMMAND, "audit", "-", "-g", "g", "--json", "out.json"]
    pipe, shown = subprocess.PIPE, b""
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=pipe, stdout=pipe, stderr=terminal
    ) as process:
        os.close(terminal)
        with suppress(OSError):  # reading fails when the process ends
            while select.select([controller], [], [], 300)[0]:
                shown += os.read(controller, 1 << 16)
                if b"reading" in shown and not process.stdin.closed:
                    process.stdin.write(b"a,g\n1,x\n2,y\n5,y\n")
                    process.stdin.close()
    os.close(controller)
    assert b"reading" in shown
    assert process.returncode == 0
    assert (tmp_path / "out.json").exists()


def test_rounding_is_not_printed_as_if_it_meant_something(tmp_path):
    done = run("report", "-r", "14", cwd=tmp_path)
    assert "e-" not in done.stdout
    assert "optimal to rounding error" in done.stdout
    done = run("audit", "-r", "14", "--max-disparity", "0", cwd=tmp_path)
    assert done.stdout.splitlines()[1].split() == ["14", "0", "0", "0"]
    run("report", "-r", "3", cwd=tmp_path)


def test_many_groups_and_long_names_fit_the_terminal(tmp_path):
    rng = np.random.default_rng(0)
    groups = [f"a rather long name of group {i % 12:02d}" for i in range(240)]
    table = pa.table({"a": rng.normal(size=240), "b": rng.normal(size=240), "g": groups})
    pq.write_table(table, tmp_path / "many.parquet")
    lines = run("audit", "many.parquet", "-g", "g", cwd=tmp_path).stdout.splitlines()
    assert "worst served" in lines[0]
    assert len(lines) == 3
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    done = run("report", "--out", folder / "r.html", cwd=tmp_path)
    assert f"written to {folder / 'r.html'}" in done.stdout
    assert "cost of fairness +" in done.stdout


def test_hostile_names_stay_text_in_the_terminal(tmp_path):
    rng = np.random.default_rng(0)
    names = ["[red]x[/red]", "\x1b[31mred", "n" * 5000, "\u2028\U0001f600"]
    table = {name: rng.normal(size=30) for name in names}
    labels = ["[bold]a", "\x1b]0;title\x07b"]
    table = pa.table({**table, "g": [labels[i % 3 == 0] for i in range(30)]})
    pq.write_table(table, tmp_path / "h.parquet")
    done = run("report", "h.parquet", "-g", "g", "-r", "2", cwd=tmp_path)
    assert "\x1b" not in done.stdout
    assert "[bold]a" in done.stdout
    assert "\x1b" not in fails("report", "h.parquet", "-g", "\x1b[31mre", cwd=tmp_path)


def test_a_terminal_without_umlauts_still_gets_its_answer(tmp_path):
    (tmp_path / "u.csv").write_text(
        "a,b,g\n1,2,m\u00e4nn\n2,3,frau\n4,4,frau\n3,9,m\u00e4nn\n", "utf-8"
    )
    done = subprocess.run(
        [*COMMAND, "audit", "u.csv", "-g", "g"], cwd=tmp_path, capture_output=True, check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert b"m?nn" in done.stdout


def test_help_loads_nothing_heavy():
    code = (
        "import sys\n"
        "from fairpca.__main__ import main\n"
        "try: main(['--help'])\n"
        "except SystemExit as end: assert end.code == 0\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'altair', 'matplotlib'}\n"
        "sys.exit(str(found) if (found := heavy & set(sys.modules)) else 0)"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_version_and_installed_script():
    expected = f"fairpca {fairpca.__version__}"
    assert run("--version", cwd=Path()).stdout.strip() == expected
    script = Path(sys.executable).with_name("fairpca")
    if not script.exists():
        pytest.skip("the fairpca command is not beside this Python")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == expected
