"""Files that are cut off, altered or changed while they are read are refused."""

import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from helpers.files import fitted_to, moments_of, write_scores_of
from helpers.tables import WRITERS, as_table, write_ipc

from fairpca import FairPCA


@pytest.mark.parametrize("part", [0.03, 0.5, 0.97])
@pytest.mark.parametrize("kind", WRITERS)
def test_truncated_files_are_refused(kind, part, data, tmp_path):
    X, sex = data
    whole, cut = tmp_path / f"whole.{kind}", tmp_path / f"cut.{kind}"
    WRITERS[kind](as_table(X, sex), whole)
    content = whole.read_bytes()
    cut.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(ValueError, match=str(cut)):
        moments_of([whole, cut], sensitive_features="sex")
    fair = fitted_to(FairPCA(2), whole, sensitive_features="sex")
    (tmp_path / "scores.csv").write_text("old")
    with pytest.raises(ValueError, match=str(cut)):
        write_scores_of(fair, [whole, cut], tmp_path / "scores.csv")
    assert (tmp_path / "scores.csv").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == sorted([whole.name, cut.name, "scores.csv"])


def test_altered_text_is_refused_with_its_row(data, tmp_path, monkeypatch):
    monkeypatch.setattr("fairpca.cli.reader.table.HEAD_ROWS", 100)
    X, sex = data
    pa_csv.write_csv(as_table(X, sex), tmp_path / "d.csv")
    lines = (tmp_path / "d.csv").read_text().split("\n")
    lines[400] = lines[400].replace(".", "#")
    (tmp_path / "d.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"line 401 of .*d\.csv has '[^']*#.* in column 'x"):
        moments_of(tmp_path / "d.csv", sensitive_features="sex")
    lines[400] = "1,2"
    (tmp_path / "d.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"line 401 of .*d\.csv has 2 values where .* has 6"):
        moments_of(tmp_path / "d.csv", sensitive_features="sex")


def test_altered_arrow_files_are_refused(tmp_path):
    """In a process of its own: offsets that point outside of the file would end it."""
    table = pa.table({"a": [1.0, 2.0] * 1000, "sex": ["f", "m"] * 1000})
    path = tmp_path / "d.arrow"
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    whole = path.read_bytes()
    path.with_stem("name").write_bytes(whole.replace(b"sex", b"s\xe5x"))
    offsets = bytearray(whole)
    offsets[whole.find(np.arange(100, 110, dtype="<i4").tobytes()) + 3] ^= 0x10
    path.write_bytes(offsets)
    code = (
        "import sys; from helpers.files import moments_of\n"
        "for path in sys.argv[1:]:\n"
        "    try: moments_of(path, sensitive_features='sex')\n"
        "    except ValueError as error: print(error)"
    )
    paths = sorted(tmp_path.iterdir())
    where = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    run = subprocess.run(
        [sys.executable, "-c", code, *paths],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": where},
    )
    said = run.stdout.splitlines()
    assert len(said) == len(paths) == 2
    for path, line in zip(paths, said, strict=True):
        assert f"{path.name} cannot be read: it is cut off, damaged" in line


def test_the_stream_format_is_refused(data, tmp_path):
    write_ipc(as_table(*data), tmp_path / "d.arrow", pa.ipc.new_stream)
    with pytest.raises(ValueError, match=r"d\.arrow cannot be read: .* of another format"):
        moments_of(tmp_path / "d.arrow", sensitive_features="sex")


def test_file_changed_while_it_is_read(data, tmp_path, monkeypatch):
    monkeypatch.setattr("fairpca.cli.reader.table._BATCH_ROWS", 100)
    X, sex = data
    path = tmp_path / "d.parquet"
    WRITERS["parquet"](as_table(X, sex), path)

    def touch(fraction):
        os.utime(path, ns=(1, 1))

    with pytest.raises(ValueError, match=r"d\.parquet was changed while it was being read"):
        moments_of(path, sensitive_features="sex", progress=touch)


def test_a_damaged_first_archive_is_named(tmp_path):
    text = "x,y,sex\n" + "".join(f"{i},{i * i % 17},{'fm'[i % 2]}\n" for i in range(400))
    packed = gzip.compress(text.encode())
    first, second = tmp_path / "first.csv.gz", tmp_path / "second.csv.gz"
    first.write_bytes(packed[: len(packed) // 2])
    second.write_bytes(packed)
    with pytest.raises(ValueError, match=r"first\.csv\.gz"):
        moments_of([first, second], sensitive_features="sex")
