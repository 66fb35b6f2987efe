"""How the command ends: one line, a sensible exit code, and no partial file."""

from __future__ import annotations

import json
import os
import re
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

typer = pytest.importorskip("typer", reason="the command line needs the cli extra")
from fairpca.cli import app  # noqa: E402
from fairpca.cli._examples import EXAMPLES  # noqa: E402


def test_unwritable_output_is_noticed_first(tmp_path):
    assert "No such file" in fails("report", "--out", "nowhere/r.html", cwd=tmp_path)
    (tmp_path / "folder").mkdir()
    assert "is a folder" in fails("report", "--out", "folder", cwd=tmp_path)
    assert "is a folder" in fails("report", "--json", "folder", cwd=tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_dash_is_standard_output(diabetes_files, tmp_path):
    page = run("report", "--out", "-", cwd=tmp_path).stdout
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    numbers = run("report", "--out", "page.html", "--json", "-", cwd=tmp_path).stdout
    assert json.loads(numbers)["groups"] == ["black", "others"]
    model = run(
        "fit", diabetes_files / "d.csv", "-g", "sex", "--out", "-", cwd=tmp_path, text=False
    )
    (tmp_path / "m.safetensors").write_bytes(model.stdout)
    assert "male" in run("inspect", "m.safetensors", cwd=tmp_path).stdout
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.safetensors", "page.html"]
    line = fails("report", "--out", "-", "--json", "-", cwd=tmp_path)
    assert "--out and --json both name '-'" in line


def test_errors_name_the_file_that_was_given(tmp_path):
    line = fails("report", "--out", "nowhere/r.html", cwd=tmp_path)
    assert line == "fairpca: nowhere/r.html: No such file or directory\n"
    line = fails("report", "--out", "/dev/full", cwd=tmp_path)
    assert line == "fairpca: /dev/full: No space left on device\n"


@pytest.mark.parametrize("rank", ["0", "-1", "1.5", "nan", "inf", "many"])
def test_impossible_ranks(tmp_path, rank):
    assert "such as 3" in fails("report", f"-r={rank}", cwd=tmp_path)


def test_impossible_numbers(tmp_path):
    for number in ("nan", "inf", "-0.1"):
        line = fails("audit", "--max-disparity", number, cwd=tmp_path)
        assert f"'--max-disparity': {number}; pass" in line
    for number in ("0", "-1", "15"):
        assert "from 1 to 14" in fails("audit", "-r", number, cwd=tmp_path)
    for number in ("0.8", "5.5", "many"):
        line = fails("audit", "-r", number, cwd=tmp_path)
        assert f"'-r': '{number}'; pass a whole number such as 3 (shares are for report" in line
        assert line.endswith("See fairpca audit --help.\n")
    for option in (["--seed", "-1"], ["--seed", "x"], ["--max-disparity", "x"]):
        line = fails("report", *option, cwd=tmp_path)
        assert option[0] in line
        assert "Input should" not in line


def test_more_components_than_features(tmp_path):
    assert "from 1 to 14" in fails("report", "-r", "15", cwd=tmp_path)
    assert "from 1 to 14" in fails("audit", "-r", "15", cwd=tmp_path)


def test_unknown_options_and_commands_are_one_line(tmp_path):
    assert "--grup" in fails("report", "--grup", "sex", cwd=tmp_path)
    assert "reprot" in fails("reprot", cwd=tmp_path)


@posix
@pytest.mark.parametrize(
    "command",
    [["audit"], slow_case(["transform", "m.safetensors", "long.csv", "--out", "-"])],
    ids=["audit", "transform"],
)
def test_reader_that_goes_away(diabetes_files, tmp_path, command):
    run("fit", diabetes_files / "d.csv", "-g", "sex", "-r", "2", "--columns", "age,bmi,bp",
        "--out", "m.safetensors", cwd=tmp_path)  # fmt: skip
    (tmp_path / "long.csv").write_text("age,bmi,bp\n" + "1,2,3\n" * 20_000)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as stdout:
        done = subprocess.run(
            [*COMMAND, *command], cwd=tmp_path, stdout=stdout, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 141
    assert done.stderr == b""


@posix
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
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupt_while_rendering_leaves_nothing(tmp_path, number, monkeypatch):
    monkeypatch.setattr("fairpca.report.render", lambda *args: signal.raise_signal(number))
    done = run("report", cwd=tmp_path, code=128 + number)
    check_interrupted(number, done.returncode, done.stderr, tmp_path)


def check_interrupted(number, code, errors, folder):
    assert code == 128 + number
    expected = "fairpca: interrupted.\n"
    assert errors == (expected if number == signal.SIGINT else "")
    assert not list(folder.iterdir())


def test_interrupt_while_loading_is_one_line(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    done = subprocess.run(  # -m looks into the working directory first
        [*COMMAND, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 130
    assert done.stderr == "fairpca: interrupted.\n"


@posix
def test_a_run_within_another_program_leaves_no_trace(tmp_path):
    def state():
        handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
        return handlers, warnings.filters[:], sys.stdout.errors, sys.argv

    before = state()
    for arguments, code in ((["audit", "-q"], 0), (["audit", "-r", "99"], 2), (["--help"], 0)):
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == code
        assert state() == before
    with ThreadPoolExecutor(1) as pool:  # where signals cannot be handled
        assert isinstance(pool.submit(main, ["audit", "-q"]).exception(), SystemExit)


def test_a_model_is_no_table(tmp_path):
    for name in ("model.csv", "model.JSON", "model.pkl"):
        line = fails("fit", "-r", 2, "-o", name, cwd=tmp_path)
        assert "a model is a safetensors file; pass --out model.safetensors." in line


def test_a_report_is_no_pdf(tmp_path):
    line = fails("report", "--out", "people.pdf", cwd=tmp_path)
    assert "pass --out people.html" in line


@pytest.mark.parametrize(("command", "lines"), EXAMPLES.items())
def test_examples_in_the_help_can_be_parsed(tmp_path, command, lines):
    shown = run(command, "--help", cwd=tmp_path).stdout
    assert not re.search(r"<(str|bool|list|path|int|float)", shown)
    group = typer.main.get_command(app)
    for line in lines:
        assert f"  {line}\n" in shown
        program, name, *words = shlex.split(line)
        assert (program, name) == ("fairpca", command)
        with group.make_context("fairpca", []) as context:
            group.get_command(context, name).make_context(name, words, parent=context).close()
