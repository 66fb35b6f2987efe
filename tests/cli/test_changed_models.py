"""A model file that was changed, and given a right checksum again, is refused in words."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest
from helpers.command import fails, run
from helpers.model_files import rewrite

pytest.importorskip("pyarrow", reason="the command line needs the cli extra")
pytest.importorskip("click")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with a table that has columns of text, and a model of it."""
    folder = tmp_path_factory.mktemp("fitted")
    rng = np.random.default_rng(0)
    lines = ["a,b,c,home,sex"]
    for i, (a, b, c) in enumerate(rng.normal(size=(60, 3)) * [1, 2, 3]):
        lines.append(f"{a},{b},{c},{('own', 'rent', 'other')[i % 3]},{'mf'[i % 4 == 0]}")
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    options = ["--encode", "-g", "sex", "-r", "2", "-o", "m.safetensors", "-q"]
    run("fit", "people.csv", *options, cwd=folder)
    return folder


@pytest.fixture
def folder(fitted, tmp_path):
    shutil.copytree(fitted, tmp_path, dirs_exist_ok=True)
    return tmp_path


COMMANDS = [
    ["inspect", "m.safetensors"],
    ["inspect", "m.safetensors", "--json", "-"],
    ["transform", "m.safetensors", "people.csv", "-o", "scores.csv"],
    ["audit", "people.csv", "--model", "m.safetensors"],
]


def without(part, name):
    def change(header, _):
        del header[part][name]

    return change


CHANGES = {
    "columns reversed": lambda header, _: header["extra"]["columns"].reverse(),
    "columns no list": lambda header, _: header["extra"].update(columns="abc"),
    "columns of numbers": lambda header, _: header["extra"].update(columns=[1, 2, 3]),
    "categories no dict": lambda header, _: header["extra"].update(categories=["home"]),
    "categories no lists": lambda header, _: header["extra"].update(categories={"home": 3}),
    "categories of no column": lambda header, _: header["extra"]["categories"].update(zz=["a"]),
    "categories turned": lambda header, _: header["extra"]["categories"]["home"].reverse(),
    "groups no list": lambda header, _: header["extra"].update(group={"sex": 1}),
    "no names": without("attributes", "feature_names_in_"),
    "names reversed": lambda header, _: header["attributes"]["feature_names_in_"].reverse(),
    "no number of components": without("attributes", "n_components_"),
    "no status": without("attributes", "status_"),
    "a status of another type": lambda header, _: header["attributes"].update(status_=[1]),
}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: "".join(command[::2]))
@pytest.mark.parametrize("change", CHANGES)
def test_it_is_refused(folder, command, change):
    rewrite(folder / "m.safetensors", CHANGES[change])
    assert "m.safetensors" in fails(*command, cwd=folder)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: "".join(command[::2]))
def test_what_was_written_is_not(folder, command):
    run(*command, cwd=folder)
    if "--json" in command:
        told = json.loads(run(*command, cwd=folder).stdout)
        assert told["columns"] == ["a", "b", "c", "home"]
        assert told["categories"] == {"home": ["other", "own", "rent"]}
    assert os.path.exists(folder / "m.safetensors")
