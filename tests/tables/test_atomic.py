"""Files are replaced whole, links and rights stay, and devices are written to."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import threading

import pytest

from fairpca._tables.atomic import refuse_inputs, replacing


def write(path, text="new"):
    with replacing(path) as temporary:
        temporary.write_text(text)


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_a_link_stays_and_its_target_is_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "file.txt", tmp_path / "link.txt"
    link.symlink_to(target)
    write(link, "through a dangling link")
    assert target.read_text() == "through a dangling link"
    write(link)
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["file.txt", "link.txt", "real"]


def test_a_file_keeps_its_mode_and_new_ones_get_the_usual(tmp_path):
    old, new, usual = tmp_path / "old", tmp_path / "new", tmp_path / "usual"
    old.touch()
    old.chmod(0o640)
    usual.touch()
    write(old)
    write(new)
    assert mode(old) == 0o640
    assert mode(new) == mode(usual)


def test_devices_and_pipes_are_written_to(tmp_path):
    write("/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    heard = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    write(pipe, "x" * 100_000)
    reader.join()
    assert heard == ["x" * 100_000]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_standard_output_is_appended_to_wherever_it_leads(tmp_path):
    log = tmp_path / "log"
    log.write_text("before\n")
    code = (
        "from fairpca._tables.atomic import replacing\n"
        "with replacing('/dev/stdout') as t: t.write_text('after\\n')"
    )
    with log.open("a") as stdout:
        subprocess.run([sys.executable, "-c", code], stdout=stdout, check=True)
    assert log.read_text() == "before\nafter\n"


def test_errors_name_the_file_that_was_given(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write(tmp_path / "nowhere" / "file")
    assert caught.value.filename == str(tmp_path / "nowhere" / "file")
    with pytest.raises(OSError, match="No space left") as full:
        write("/dev/full")
    assert full.value.filename == "/dev/full"


def test_a_full_disk_is_named_by_the_file_that_was_given(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 10, limits[1]))
    try:
        with pytest.raises(OSError, match="too large") as full:
            write(tmp_path / "file", "x" * (1 << 14))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert full.value.filename == str(tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_a_link_to_itself_is_refused_and_stays(tmp_path):
    loop, other = tmp_path / "loop", tmp_path / "other"
    loop.symlink_to(other)
    other.symlink_to(loop)
    with pytest.raises(OSError, match="leads back to itself") as caught:
        write(loop)
    assert caught.value.filename == str(loop)
    assert loop.is_symlink()


def test_an_input_is_not_written_to_under_any_name(tmp_path):
    folder, data = tmp_path / "folder", tmp_path / "folder" / "data.csv"
    folder.mkdir()
    data.write_text("a,g")
    (tmp_path / "symbolic.csv").symlink_to(data)
    os.link(data, tmp_path / "hard.csv")
    (tmp_path / "alias").symlink_to(folder)
    names = ["folder/data.csv", "folder/../folder/data.csv", "symbolic.csv", "hard.csv"]
    for name in [*names, "alias/data.csv"]:
        for read in (data, tmp_path / "hard.csv", folder, tmp_path / "alias"):
            with pytest.raises(ValueError, match=rf"{name}.* read.*; write to .*file"):
                refuse_inputs(tmp_path / name, [tmp_path / "other.csv", read])
    with pytest.raises(ValueError, match=r"new\.csv lies in the folder .*alias, which is read"):
        refuse_inputs(folder / "new.csv", [tmp_path / "alias"])
    for name in ("new.csv", "folder.csv", "/dev/null"):
        refuse_inputs(tmp_path / name, [data, folder, "-", "/dev/null"])
    assert data.read_text() == "a,g"


def test_standard_streams_may_be_inputs(tmp_path):
    data = tmp_path / "data.csv"
    data.write_text("a,g")
    code = "import sys; from fairpca._tables.atomic import refuse_inputs; "
    for arguments in (f"'{data}', ['-']", f"'-', ['{data}']"):
        with data.open() as stdin, data.open("a") as stdout:
            done = subprocess.run(
                [sys.executable, "-c", f"{code} refuse_inputs({arguments})"],
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.PIPE,
                text=True,
            )
        assert "is a file that is read" in done.stderr


def test_failure_and_interruption_leave_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail(error):
        with replacing(path) as temporary:
            temporary.write_text("half")
            raise error

    for error in (KeyboardInterrupt, ValueError):
        with pytest.raises(error):
            fail(error)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_a_read_only_file_is_not_replaced(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        write(path)
    assert path.read_text() == "old"
