"""How the command ends: one line, a sensible exit code, and no partial file."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
from helpers.command import COMMAND, fails, run
from helpers.marks import posix, slow_case

from fairpca.__main__ import main

click = pytest.importorskip("click", reason="the command line needs the cli extra")
from fairpca.cli import app  # noqa: E402

DATA = ["-g", "sex", "--features", "x0,x1,x2", "-r", "1"]


def test_unwritable_output_is_noticed_first(tmp_path):
    line = fails("report", "--out", "nowhere/r.html", cwd=tmp_path)
    assert line == "fairpca: nowhere/r.html: No such file or directory\n"
    (tmp_path / "folder").mkdir()
    assert "is a folder" in fails("report", "--out", "folder", cwd=tmp_path)
    assert "is a folder" in fails("report", "--json", "folder", cwd=tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_names_that_promise_another_format(tmp_path):
    assert "m.safetensors" in fails("fit", "-r", "2", "-o", "m.csv", cwd=tmp_path)
    assert "people.html" in fails("report", "--out", "people.pdf", cwd=tmp_path)


def test_a_dash_is_standard_output(people, tmp_path):
    data = people / "gap.csv"
    page = run("report", data, *DATA, "--out", "-", cwd=tmp_path).stdout
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    model = run("fit", data, *DATA, "--out", "-", cwd=tmp_path, text=False)
    (tmp_path / "m.safetensors").write_bytes(model.stdout)
    assert "women" in run("inspect", "m.safetensors", cwd=tmp_path).stdout
    line = fails("report", "--out", "-", "--json", "-", cwd=tmp_path)
    assert "--out and --json both name '-'" in line


@pytest.mark.parametrize("rank", ["0", "-1", "1.5", "nan", "inf", "many"])
def test_impossible_ranks(tmp_path, rank):
    assert "such as 3" in fails("report", f"-r={rank}", cwd=tmp_path)


@pytest.mark.parametrize("number", ["10", "nan", "-0.1", "x"])
def test_impossible_numbers(tmp_path, number):
    line = fails("audit", f"--fail-above={number}", cwd=tmp_path)
    assert "--fail-above" in line
    assert "Input should" not in line
    assert line.endswith("See fairpca audit --help.\n")


def test_unknown_options_commands_and_columns_are_one_line(people, tmp_path):
    assert "--grup" in fails("report", "--grup", "sex", cwd=tmp_path)
    assert "reprot" in fails("reprot", cwd=tmp_path)
    assert "'sexx'" in fails("audit", people / "gap.csv", "-g", "sexx", cwd=tmp_path)
    assert "--group" in fails("audit", people / "gap.csv", cwd=tmp_path)
    assert "name the file" in fails("audit", "--decimal", ",", cwd=tmp_path)
    assert "pass both" in fails("audit", "--target-positive", "1", cwd=tmp_path)


def test_no_message_speaks_python_to_the_shell(people, tmp_path):
    for words in (["audit"], ["audit", "-g", "id"], ["audit", "-g", "x0"], ["report", "-g", "a"]):
        line = fails(words[0], people / "gap.csv", *words[1:], cwd=tmp_path)
        assert "sensitive_features" not in line
        assert "(in Python" not in line


@posix
def test_closed_standard_output_does_not_change_the_answer(people, tmp_path):
    words = [*COMMAND, "audit", str(people / "even.csv"), *DATA, "--fail-above", "0.9"]
    command = f"{shlex.join(words)} >&-"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@posix
def test_a_reader_that_goes_away(people, tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    command = [*COMMAND, "audit", people / "gap.csv", *DATA]
    with os.fdopen(writer, "wb") as stdout:
        done = subprocess.run(
            command, cwd=tmp_path, stdout=stdout, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (141, b"")


def test_control_characters_reach_no_terminal(tmp_path):
    evil = "\x1b]0;title\x07"
    rows = "".join(f"{i % 7},{i % 5},{i % 3},{'ab'[i % 2]}{evil}\n" for i in range(200))
    (tmp_path / "h.csv").write_text(f"x,y,z{evil},g{evil}\n{rows}")
    done = run("audit", "h.csv", "-g", f"g{evil}", "-r", "1", cwd=tmp_path)
    for words in (["-g", evil], ["-g", f"g{evil}", "--drop", evil], [f"--x{evil}"]):
        assert "\x1b" not in fails("audit", "h.csv", *words, cwd=tmp_path)
    assert "\x1b" not in fails("audit", f"{evil}.csv", "-g", "g", cwd=tmp_path)
    assert "\x1b" not in fails("inspect", f"{evil}.safetensors", cwd=tmp_path)
    assert "\x1b" not in done.stdout + done.stderr


@pytest.fixture
def interruptible():
    """Undo that a shell ignores interrupts on behalf of tests that run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@posix
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, slow_case(signal.SIGTERM)])
def test_interrupt_while_reading_leaves_nothing(tmp_path, number):
    process = subprocess.Popen(
        [*COMMAND, "report", "-", "-g", "g"], cwd=tmp_path,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    # More than a pipe holds: when all is written, the command has begun to read, and waits.
    process.stdin.write(b"a,b,g\n" + b"1,2,x\n" * 200_000)
    process.send_signal(number)
    _, errors = process.communicate()
    check_interrupted(number, process.returncode, errors.decode(), tmp_path)


@posix
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_while_rendering_leaves_nothing(people, tmp_path, number, monkeypatch):
    def interrupted(*given, **named):
        signal.raise_signal(number)

    monkeypatch.setattr("fairpca.report.render", interrupted)
    done = run("report", people / "gap.csv", *DATA, cwd=tmp_path, code=128 + number)
    check_interrupted(number, done.returncode, done.stderr, tmp_path)


def check_interrupted(number, code, errors, folder):
    assert code == 128 + number
    expected = "fairpca: interrupted.\n"
    assert errors == (expected if number == signal.SIGINT else "")
    assert not list(folder.iterdir())


def test_interrupt_while_loading_is_one_line(tmp_path):
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt")
    done = subprocess.run(  # -m looks into the working directory first
        [*COMMAND, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert done.stderr == "fairpca: interrupted.\n"


@posix
def test_a_run_within_another_program_leaves_no_trace(people, tmp_path):
    def state():
        handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
        return handlers, warnings.filters[:], sys.stdout.errors, sys.argv

    data = [str(people / "gap.csv"), *DATA]
    before = state()
    for words, code in ((["audit", "-q", *data], 0), (["audit", *data, "-r", "99"], 2)):
        with pytest.raises(SystemExit) as end:
            main(words)
        assert end.value.code == code
        assert state() == before
    with ThreadPoolExecutor(1) as pool:  # where signals cannot be handled
        assert isinstance(pool.submit(main, ["audit", "-q", *data]).exception(), SystemExit)


@pytest.mark.parametrize("command", ["report", "audit", "fit", "columns", "transform", "inspect"])
def test_help_is_in_groups_and_its_examples_can_be_parsed(tmp_path, command):
    shown = run(command, "--help", cwd=tmp_path).stdout
    assert "Output:" in shown
    if command in ("report", "audit"):
        headings = ["Start here:", "Columns and rows:", "Choice:", "Output:"]
        assert sorted(headings, key=shown.index) == headings
    examples = shown.partition("For example:\n")[2].splitlines()
    assert len(examples) >= 3
    for line in examples:
        words = shlex.split(line)
        words = words[words.index("fairpca") + 1 :]
        words = words[: words.index("|")] if "|" in words else words
        assert words[0] == command
        with app.make_context("fairpca", []) as context:
            app.commands[command].make_context(command, words[1:], parent=context).close()


def test_options_mean_the_same_in_every_command():
    seen = {}
    for name in ("report", "audit", "fit"):
        for option in app.commands[name].params:
            for word in option.opts:
                if word not in ("--out", "-o"):
                    assert seen.setdefault(word, option.help) == option.help


def test_help_loads_nothing_heavy():
    code = (
        "import sys\n"
        "from fairpca.__main__ import main\n"
        "for words in (['--help'], ['audit', '--help'], ['audit', '--nothing']):\n"
        "    try: main(words)\n"
        "    except SystemExit as end: pass\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'pyarrow', 'duckdb', 'altair', 'matplotlib'}\n"
        "sys.exit(str(found) if (found := heavy & set(sys.modules)) else 0)"
    )
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="this system has no such terminals")
def test_a_narrow_terminal_cuts_no_number(people, tmp_path, monkeypatch):
    data = [people / "gap.csv", *DATA]
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setattr("fairpca.cli.terminal.sys.stdout.isatty", lambda: True, raising=False)
    found = json.loads(run("audit", *data, "--json", "-", cwd=tmp_path).stdout)
    shown = run("audit", *data, cwd=tmp_path).stdout
    assert f"{found['groups'][0]['n']:,}" in shown
    assert "…" not in shown


def test_version_is_printed(tmp_path):
    import fairpca

    assert run("--version", cwd=tmp_path).stdout == f"fairpca {fairpca.__version__}\n"
