"""Folders, and columns in the names of folders."""

import bz2

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from helpers.data import assert_same_moments
from helpers.files import moments_of, read_table
from helpers.marks import posix
from helpers.tables import as_table

from fairpca import GroupMoments


@pytest.mark.parametrize("partitioned_by", ["sex", "year"])
def test_partitioned_folder(partitioned_by, data, tmp_path):
    X, sex = data
    year = np.where(np.arange(len(X)) % 3 == 0, 2020, 2021)
    table = as_table(X, sex, year=year)
    pq.write_to_dataset(table, tmp_path / "d", partition_cols=[partitioned_by])
    (tmp_path / "d" / "_SUCCESS").touch()
    features = ["x0", "x1", "x2", "x3"]
    moments = moments_of(tmp_path / "d", sensitive_features=partitioned_by, features=features)
    labels = sex if partitioned_by == "sex" else year.astype(str)  # as the path has it
    assert_same_moments(moments, GroupMoments.from_data(X, labels))
    if partitioned_by == "year":
        default = moments_of(tmp_path / "d", sensitive_features="sex")
        assert default.feature_names == features
        chosen = moments_of(tmp_path / "d", sensitive_features="sex", features=["x0", "year"])
        assert_same_moments(chosen, GroupMoments.from_data(np.column_stack([X[:, 0], year]), sex))


def test_column_in_the_path_of_a_single_file(data, tmp_path):
    X, sex = data
    pq.write_to_dataset(as_table(X, sex), tmp_path / "d", partition_cols=["sex"])
    files = sorted((tmp_path / "d").rglob("*.parquet"))
    with pytest.raises(ValueError, match=r"'sex' in .*; it is in the path: pass the folder"):
        moments_of(files, sensitive_features="sex")


def test_long_numbers_in_paths_stay_text(data, tmp_path):
    X, sex = data
    for label in np.unique(sex):
        folder = tmp_path / "d" / f"nr=9999999999999999999{ord(label[-1])}"
        folder.mkdir(parents=True)
        pq.write_table(as_table(X[sex == label], sex[sex == label]), folder / "p.parquet")
    moments = moments_of(tmp_path / "d", sensitive_features="nr")
    assert all(label.startswith("9999999999999999999") for label in moments.groups)


def test_numbers_written_differently_are_different_groups(data, tmp_path):
    X, sex = data
    for written in ("1", "01"):
        (tmp_path / "d" / f"g={written}").mkdir(parents=True)
        pq.write_table(as_table(X, sex), tmp_path / "d" / f"g={written}" / "p.parquet")
    moments = moments_of(tmp_path / "d", sensitive_features="g")
    assert moments.groups.tolist() == ["01", "1"]
    assert moments.counts.tolist() == [len(X), len(X)]


def test_wrong_paths(data, tmp_path):
    table = as_table(*data)
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        moments_of(tmp_path / "nowhere.csv", sensitive_features="sex")
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        moments_of(tmp_path / "no[2.csv", sensitive_features="sex")
    with pytest.raises(ValueError, match="holds no data files"):
        moments_of(tmp_path, sensitive_features="sex")
    with pytest.raises(ValueError, match="no files were given"):
        moments_of([], sensitive_features="sex")
    pq.write_table(table, tmp_path / "d")
    with pytest.raises(ValueError, match=r"does not tell its format .*rename it"):
        moments_of(tmp_path / "d", sensitive_features="sex")
    pq.write_table(table, tmp_path / "d.parquet")
    pq.write_table(table.drop_columns("x2"), tmp_path / "e.parquet")
    with pytest.raises(ValueError, match=r"no column 'x2' in .*e\.parquet"):
        moments_of(tmp_path, sensitive_features="sex")
    (tmp_path / "e.parquet").unlink()
    pa_csv.write_csv(table, tmp_path / "d.csv")
    with pytest.raises(ValueError, match="several formats"):
        moments_of(tmp_path, sensitive_features="sex")


@posix
def test_a_link_to_itself_is_no_file(tmp_path):
    (tmp_path / "d.csv").symlink_to("d.csv")
    with pytest.raises(FileNotFoundError, match=r"no file or folder .*d\.csv'; pass another path"):
        read_table(tmp_path / "d.csv", "sex")


def test_a_compression_that_cannot_be_read_is_refused_also_in_a_folder(tmp_path):
    text = "x,sex\n1,f\n2,m\n"
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.csv.bz2").write_bytes(bz2.compress(text.encode()))
    for path in (tmp_path, tmp_path / "b.csv.bz2"):
        with pytest.raises(ValueError, match=r"b\.csv\.bz2 is compressed"):
            moments_of(path, sensitive_features="sex")


@posix
@pytest.mark.parametrize("pattern", ["", "/*.parquet"])
def test_a_part_that_cannot_be_read_is_not_left_out(pattern, data, tmp_path):
    pq.write_table(as_table(*data), tmp_path / "part-0.parquet")
    (tmp_path / "part-1.parquet").symlink_to("nowhere")
    with pytest.raises(ValueError, match=r"part-1\.parquet is a broken link"):
        moments_of(f"{tmp_path}{pattern}", sensitive_features="sex")


def test_a_folder_that_is_called_like_a_file_is_read_once(data, tmp_path):
    (tmp_path / "d.parquet").mkdir()
    pq.write_table(as_table(*data), tmp_path / "d.parquet" / "part-0.parquet")
    for path in (tmp_path, f"{tmp_path}/**/*.parquet", tmp_path / "d.parquet"):
        found = moments_of(path, sensitive_features="sex")
        assert found.counts.sum() == len(data[1])
    with pytest.raises(ValueError, match=r"d\.parquet is a broken link or a folder"):
        moments_of(f"{tmp_path}/*.parquet", sensitive_features="sex")


@pytest.mark.parametrize("folder", ["x0=1/d", "d/x0=1"])
def test_a_column_is_not_replaced_by_one_of_the_path(folder, data, tmp_path):
    for label in "ab":
        place = tmp_path / folder / f"part={label}"
        place.mkdir(parents=True)
        pq.write_table(as_table(*data), place / "p.parquet")
    top = tmp_path / folder if folder.startswith("x0") else tmp_path / "d"
    with pytest.raises(
        ValueError, match="two columns named 'x0'; rename the column, or the folder"
    ):
        moments_of(top, sensitive_features="sex")
