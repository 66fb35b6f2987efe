"""Files are replaced whole, links and rights stay, and inputs are never written to."""

from __future__ import annotations

import os
import resource
import stat
import sys

import numpy as np
import pytest
from helpers.files import fitted_to, write_scores_of

from fairpca import FairPCA
from fairpca.__main__ import main
from fairpca._atomic import refuse_inputs

ROWS = "".join(f"{i % 7},{i * i % 11},{'fm'[i % 2]}\n" for i in range(40))


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    return FairPCA(2).fit(rng.normal(size=(60, 99)), sensitive_features=["f", "m"] * 30)


@pytest.fixture(scope="module")
def content(model, tmp_path_factory):
    """The bytes of the model's file."""
    path = tmp_path_factory.mktemp("model") / "file"
    model.save(path)
    return path.read_bytes()


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_link_stays_and_its_target_is_replaced(model, content, tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "file", tmp_path / "link"
    link.symlink_to(target)
    model.save(link)
    assert target.read_bytes() == content
    target.write_text("old")
    model.save(link)
    assert link.is_symlink()
    assert target.read_bytes() == content
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file", "link", "real"]


def test_a_file_keeps_its_mode_and_new_ones_get_the_usual(model, tmp_path):
    old, new, usual = tmp_path / "old", tmp_path / "new", tmp_path / "usual"
    old.touch()
    old.chmod(0o640)
    usual.touch()
    model.save(old)
    model.save(new)
    assert mode(old) == 0o640
    assert mode(new) == mode(usual)


def test_only_plain_files_are_written(model, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name in ("/dev/null", tmp_path / "pipe", tmp_path, tmp_path / "loop"):
        with pytest.raises(OSError, match=r"device or a broken link; pass the name of a file"):
            model.save(name)
    assert (tmp_path / "loop").is_symlink()
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


def test_the_file_behind_standard_output_is_not_replaced(model, tmp_path):
    log = tmp_path / "log"
    log.write_text("before\n")
    usual = os.dup(1)
    try:
        with log.open("a") as stdout:
            os.dup2(stdout.fileno(), 1)
        with pytest.raises(OSError, match="/dev/stdout is a folder, a device"):
            model.save("/dev/stdout")
    finally:
        os.dup2(usual, 1)
        os.close(usual)
    assert log.read_text() == "before\n"


def test_errors_name_the_file_that_was_given(model, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        model.save(tmp_path / "nowhere" / "file")
    assert caught.value.filename == str(tmp_path / "nowhere" / "file")


def test_a_full_disk_is_named_by_the_file_that_was_given(model, content, tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(content) // 2, limits[1]))
    try:
        with pytest.raises(OSError, match="too large") as full:
            model.save(tmp_path / "file")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert full.value.filename == str(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def data(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "data.csv").write_text("x,y,g\n" + ROWS)
    return tmp_path / "folder" / "data.csv"


def test_an_input_is_not_written_to_under_any_name(data, tmp_path):
    before, folder = data.read_text(), data.parent
    (tmp_path / "symbolic.csv").symlink_to(data)
    os.link(data, tmp_path / "hard.csv")
    (tmp_path / "alias").symlink_to(folder)
    names = ["folder/data.csv", "folder/../folder/data.csv", "symbolic.csv", "hard.csv"]
    for read in (data, tmp_path / "hard.csv", folder, tmp_path / "alias"):
        for name in [*names, "alias/data.csv"]:
            with pytest.raises(ValueError, match=rf"{name}.* read.*; write to .*file"):
                refuse_inputs(tmp_path / name, [read])
    with pytest.raises(ValueError, match=r"new\.csv lies in the folder .*alias, which is read"):
        refuse_inputs(folder / "new.csv", [tmp_path / "alias"])
    for name in ("new.csv", "folder.csv"):
        refuse_inputs(tmp_path / name, [tmp_path / "alias"])
    assert data.read_text() == before


def test_standard_streams_may_be_inputs(model, data, tmp_path, monkeypatch, capsys):
    before = data.read_text()
    model.save(tmp_path / "m.safetensors")
    for source, output in (("-", data), (data, "-")):
        named = [str(tmp_path / "m.safetensors"), str(source), "--out", str(output)]
        with data.open() as stdin, data.open("a") as stdout, monkeypatch.context() as streams:
            streams.setattr(sys, "stdin", stdin)
            streams.setattr(sys, "stdout", stdout)
            with pytest.raises(SystemExit) as ended:
                main(["transform", *named])
        assert ended.value.code == 2
        assert "is a file that is read" in capsys.readouterr().err
        assert data.read_text() == before


def test_failure_and_interruption_leave_the_old_file(data, tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("old")
    fair = fitted_to(FairPCA(1), data, sensitive_features="g")

    def fail(error):
        def progress(fraction):
            raise error

        write_scores_of(fair, data, path, progress=progress)

    for error in (KeyboardInterrupt, ZeroDivisionError):
        with pytest.raises(error):
            fail(error)
    assert path.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "scores.csv"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_file_is_not_replaced(model, tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        model.save(path)
    assert path.read_text() == "old"
