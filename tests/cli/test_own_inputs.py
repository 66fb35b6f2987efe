"""No command writes over what it reads, whatever it is called."""

from __future__ import annotations

import os
import resource
import shutil

import numpy as np
import pytest
from helpers.command import fails, run

pytest.importorskip("pyarrow", reason="the command line needs the cli extra")
pytest.importorskip("click")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with a table and a model of it."""
    folder, rng = tmp_path_factory.mktemp("fitted"), np.random.default_rng(0)
    rows = "\n".join(f"{a},{b},{c},{'mf'[i % 3 == 0]}" for i, (a, b, c) in
                     enumerate(rng.normal(size=(40, 3))))  # fmt: skip
    (folder / "people.csv").write_text(f"a,b,c,sex\n{rows}\n")
    run("fit", "people.csv", "-g", "sex", "-r", "1", "-o", "m.safetensors", "-q", cwd=folder)
    return folder


@pytest.fixture
def folder(fitted, tmp_path):
    """A folder ``in`` with the table, links to it, and the model."""
    (tmp_path / "in").mkdir()
    shutil.copy(fitted / "people.csv", tmp_path / "in")
    shutil.copy(fitted / "m.safetensors", tmp_path)
    (tmp_path / "link.csv").symlink_to(tmp_path / "in" / "people.csv")
    os.link(tmp_path / "in" / "people.csv", tmp_path / "hard.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("data", "out"),
    [
        ("hard.csv", "in/people.csv"),
        ("hard.csv", "link.csv"),
        ("in", "hard.csv"),
        ("in", "in/new.csv"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ["fit", "DATA", "-g", "sex", "-r", "1", "-o", "OUT"],
        ["report", "DATA", "-g", "sex", "-r", "1", "-o", "OUT"],
        ["report", "DATA", "-g", "sex", "-r", "1", "--json", "OUT"],
        ["report", "DATA", "-g", "sex", "-r", "1", "--model-card", "OUT"],
        ["audit", "DATA", "-g", "sex", "--json", "OUT"],
        ["transform", "m.safetensors", "DATA", "-o", "OUT"],
    ],
    ids=lambda command: f"{command[0]}{command[-2]}",
)
def test_a_command_does_not_replace_its_input(command, data, out, folder):
    before = (folder / "hard.csv").read_bytes()
    words = {"DATA": data, "OUT": out}
    line = fails(*(words.get(word, word) for word in command), cwd=folder)
    assert out in line
    assert "read" in line
    assert (folder / "hard.csv").read_bytes() == before
    assert [path.name for path in (folder / "in").iterdir()] == ["people.csv"]


def test_transform_does_not_replace_its_model(folder):
    before = (folder / "m.safetensors").read_bytes()
    (folder / "scores.csv").symlink_to(folder / "m.safetensors")
    assert "m.safetensors" in fails("transform", "m.safetensors", "hard.csv", "-o", "scores.csv",
                                    cwd=folder)  # fmt: skip
    assert (folder / "m.safetensors").read_bytes() == before


def test_report_tells_two_names_of_one_file(folder):
    assert "both name" in fails("report", "hard.csv", "-g", "sex", "-o", "r.html", "--json",
                                "in/../r.html", cwd=folder)  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        ["fit", "hard.csv", "-g", "sex", "-r", "1", "-o", "OUT.safetensors"],
        ["report", "hard.csv", "-g", "sex", "-r", "1", "-o", "OUT.html"],
        ["audit", "hard.csv", "-g", "sex", "--json", "OUT.json"],
        ["transform", "m.safetensors", "hard.csv", "-o", "OUT.csv"],
    ],
    ids=lambda command: command[0],
)
def test_a_full_disk_is_reported_with_the_file_that_was_asked_for(command, folder):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64, limits[1]))
    try:
        line = fails(*command, cwd=folder)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert line.startswith(f"fairpca: {command[-1]}: ")
    assert "large" in line
