"""What the command shows on a terminal and elsewhere."""

from __future__ import annotations

import json
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

from fairpca.cli._terminal import _some_names  # noqa: E402


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
    held_out = ["audit", "-r", "14", "--held-out", "--max-relative-disparity", "0.1"]
    done = run(*held_out, cwd=tmp_path)
    assert done.stdout.splitlines()[1].split() == ["14", "0", "0", "0"]
    assert "relative disparity 0 is within" in done.stdout
    assert "nothing is lost" in done.stdout
    (found,) = json.loads(run(*held_out, "--json", "-", cwd=tmp_path).stdout)["pca"]
    assert (found["group_errors"], found["disparity"]) == ([0, 0], 0)
    run("report", "-r", "3", cwd=tmp_path)


def test_a_fit_that_keeps_everything_is_no_proof(tmp_path):
    fit = ["fit", "--columns", "age,education,log_income", "-o", "m.safetensors"]
    for command in ([*fit, "-r", 3], ["inspect", "m.safetensors"]):
        said = run(*command, cwd=tmp_path).stdout
        assert "nothing is lost, so nothing was compressed: that is no proof of fairness" in said
        assert "fair;" not in said
        assert "certificate" not in said
    assert "certificate: optimal" in run(*fit, "-r", 2, cwd=tmp_path).stdout


def test_many_groups_and_long_names_fit_the_terminal(tmp_path):
    rng = np.random.default_rng(0)
    groups = [f"a rather long name of group {i % 12:02d}" for i in range(240)]
    table = pa.table({"a": rng.normal(size=240), "b": rng.normal(size=240), "g": groups})
    pq.write_table(table, tmp_path / "many.parquet")
    lines = run("audit", "many.parquet", "-g", "g", cwd=tmp_path).stdout.splitlines()
    assert "worst served" in lines[0]
    assert lines[-1] == "average squared errors on the rows fitted to, columns standardised"
    assert max(map(len, lines)) <= 80
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    done = run("report", "--out", folder / "r.html", cwd=tmp_path)
    assert f"written to {folder / 'r.html'}" in done.stdout
    assert "cost of fairness +" in done.stdout


@pytest.mark.parametrize("width", [200, 80, 60, 30])
@pytest.mark.parametrize("k", [2, 3, 6])
def test_no_number_is_cut_off(tmp_path, monkeypatch, width, k):
    """Not even in a terminal that is too narrow for the table."""
    monkeypatch.setenv("COLUMNS", str(width))
    rng = np.random.default_rng(0)
    names = [f"people of district {i}" for i in range(k)]
    X = rng.normal(size=(240, 4)) * [1, 1, 1e-3, 1e-4]
    table = {name: X[:, i] for i, name in enumerate("wxyz")}
    table = pa.table({**table, "g": [names[i % k] for i in range(240)]})
    pq.write_table(table, tmp_path / "d.parquet")
    data = ["d.parquet", "-g", "g", "--no-standardize"]
    printed = run("audit", *data, cwd=tmp_path).stdout
    rows = json.loads(run("audit", *data, "--json", "-", cwd=tmp_path).stdout)["pca"]
    abreast = "served" not in printed
    assert abreast == (k == 2 or width == 200)
    for row in rows:
        line = next(
            line for line in printed.splitlines() if line.startswith(f"{row['n_components']:>10}")
        )
        errors = (
            row["group_errors"] if abreast else [min(row["group_errors"]), max(row["group_errors"])]
        )
        assert {f"{number:.4g}" for number in (*errors, row["disparity"])} <= set(line.split())
    run("fit", *data, "-r", 3, "--cv", 3, "-o", "m.safetensors", cwd=tmp_path)
    shown = run("inspect", "m.safetensors", cwd=tmp_path).stdout
    model = fairpca.load_model(tmp_path / "m.safetensors")
    for error in (*model.group_errors_, *model.held_out_group_errors_):
        assert f"{error:.4g}" in shown.split()
    assert "\u2026" not in printed + shown


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


def test_one_more_name_is_said_in_full():
    names = [f"column{i}" for i in range(9)]
    assert _some_names(names[:7]) == ", ".join(names[:7])
    assert _some_names(names[:8]).endswith("column5 and 2 more")
    shown = _some_names(["a" * 30, "b"], ["12 %", "3 %"])
    assert shown == f"{'a' * 23}… 12 %, b 3 %"  # a long name does not hide its note


def test_figures_are_written_as_on_the_page(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=60) * 100, rng.normal(size=60)
    columns = {"x": x, "y": y, "z": x + y, "g": ["a", "b", "b"] * 20}
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    how = ["-r", "1", "--no-standardize", "--cv", "0"]
    lines = run("report", "d.parquet", "-g", "g", *how, cwd=tmp_path).stdout.splitlines()
    table = [line for line in lines if line.startswith(("a ", "b ", "Overall "))]
    assert len(table) == 3
    assert all(line.count("less than 0.1 %") == 1 for line in table)
    fitted = run("fit", "d.parquet", "-g", "g", *how, "-o", "m.safetensors", cwd=tmp_path).stdout
    assert "\u2212" in fitted  # a minus sign, as on the page
    assert " -" not in fitted


def test_a_fitted_model_says_of_which_rows_its_errors_are(tmp_path):
    rng = np.random.default_rng(0)
    g = np.repeat(["a", "b"], [80, 40])
    X = rng.normal(size=(120, 4)) * np.where(g[:, None] == "b", [1, 1, 3, 1], [3, 2, 1, 1])
    columns = {**{name: X[:, i] for i, name in enumerate("wxyz")}, "g": g}
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    fit = ["fit", "d.parquet", "-g", "g", "-r", "2", "-o", "m.safetensors"]
    plain = run(*fit, cwd=tmp_path).stdout.splitlines()
    assert plain[0] == "on the rows fitted to"
    chosen = run(*fit, "--cv", "4", "--no-standardize", cwd=tmp_path).stdout.splitlines()
    assert chosen[0].startswith("on held-out rows")
    assert "intervals do not account for that choice, those of fairpca report do" in chosen[0]
    assert chosen[4] == "on the rows fitted to"
    model = fairpca.load_model(tmp_path / "m.safetensors")
    for line, before, after in zip(
        chosen[2:4], model.held_out_pca_group_errors_, model.held_out_group_errors_, strict=True
    ):
        assert line.split()[2:4] == [f"{before:.4g}", f"{after:.4g}"]
        assert " to " in line
    assert run("inspect", "m.safetensors", cwd=tmp_path).stdout.splitlines()[:8] == chosen[:8]
    told = json.loads(run("inspect", "m.safetensors", "--json", cwd=tmp_path).stdout)
    assert told["held_out_changes"] == model.held_out_changes_.tolist()


@pytest.mark.parametrize(("smallest", "told"), [(4, True), (12, False)])
def test_fewer_folds_than_usual_are_named(tmp_path, smallest, told):
    rng = np.random.default_rng(0)
    g = np.repeat(["a", "b", "c"], [60, 40, smallest])
    columns = {name: rng.normal(size=len(g)) for name in "xyz"}
    pq.write_table(pa.table({**columns, "g": g}), tmp_path / "d.parquet")
    shown = run("report", "d.parquet", "-g", "g", "-r", "1", cwd=tmp_path).stdout
    assert ("4 folds only, one for each row of c (--min-group-size)" in shown) == told
    assert ("folds only" in shown) == told


def test_no_command_is_described_by_half_a_sentence(tmp_path):
    listed = run("--help", cwd=tmp_path).stdout.split("Commands:")[1]
    assert len(listed.strip().splitlines()) == 6
    assert "..." not in listed
