"""Missing values are named, and leaving rows out does not destroy the data unnoticed."""

import numpy as np
import pytest
from helpers.files import fitted_to, moments_of, read_table

from fairpca import FairPCA, GroupMoments
from fairpca.exceptions import TableError

N = 60


@pytest.fixture
def people(tmp_path):
    """Three groups; 'weeks' is mostly empty, and no row of 'c' is complete in 'age'."""
    rng = np.random.default_rng(0)
    groups = ["a", "b", "c"] * (N // 3)
    lines = ["height,age,weeks,score,g"]
    for i, g in enumerate(groups):
        age = "" if g == "c" else f"{rng.normal():.4f}"
        weeks = f"{rng.normal():.4f}" if i % 10 == 0 else ""
        lines.append(f"{rng.normal():.4f},{age},{weeks},{rng.normal():.4f},{g}")
    (tmp_path / "people.csv").write_text("\n".join(lines))
    return tmp_path / "people.csv"


def test_columns_are_named_and_the_advice_is_harmless(people):
    with pytest.raises(TableError) as caught:
        read_table(people, "g")
    error = caught.value
    assert error.problem == "missing"
    assert error.fact.startswith("56 of 60 rows of ")
    assert "have missing values, in 'weeks' (54), 'age' (20)" in error.fact
    assert "line 2 of" not in error.fact  # the first row is complete
    assert "line 3 of" in error.fact
    assert "--drop 'weeks'" in error.advice
    assert "--missing drop" not in error.advice  # most rows would go
    with pytest.raises(TableError, match=r"20 of .* leave these rows out with --missing drop"):
        read_table(people, "g", drop="weeks")


def test_more_than_half_of_the_rows_are_never_dropped(people):
    with pytest.raises(TableError, match=r"(more than half|every row of 'c').* 56 of 60 rows"):
        read_table(people, "g", missing="drop")


def test_a_whole_group_is_never_dropped(people):
    with pytest.raises(TableError, match="every row of 'c' would be left out"):
        read_table(people, "g", drop="weeks", missing="drop")


def test_dropped_rows_are_counted_by_group(people):
    text = people.read_text().replace(",b", ",a").replace(",c", ",b").splitlines()
    people.write_text("\n".join([*text, "1,2,3,4,b", "1,2,,4,b"]))
    table = read_table(people, "g", drop="weeks", missing="drop")
    assert table.record.n_rows == N + 2
    assert table.record.n_dropped == 20
    assert table.record.seen - table.record.used == {"b": 20}
    assert table.record.missing == {"age": 20}
    assert table.data.num_rows == 42


def test_a_row_without_a_group_can_be_a_group(tmp_path):
    (tmp_path / "d.csv").write_text("x,y,g\n1,2,a\n2,1,b\n3,2,a\n3,1,b\n5,2,\n")
    with pytest.raises(TableError, match=r"in 'g' \(1\).*--missing-group 'not recorded'"):
        read_table(tmp_path / "d.csv", "g")
    table = read_table(tmp_path / "d.csv", "g", missing_group="not recorded")
    assert table.sensitive_features.tolist() == ["a", "b", "a", "b", "not recorded"]
    assert read_table(tmp_path / "d.csv", "g", missing="drop").data.num_rows == 4


def test_a_group_of_rows_without_one_loses_no_rows(tmp_path):
    rows = [f"{'' if i % 4 == 0 else i},{i % 3},{['a', 'b', ''][i % 3]}" for i in range(30)]
    (tmp_path / "d.csv").write_text("\n".join(["x,y,g", *rows]))
    table = read_table(tmp_path / "d.csv", "g", missing="median", missing_group="not recorded")
    assert (table.record.n_dropped, table.record.seen) == (0, table.record.used)
    assert (table.record.missing, table.record.gaps) == ({}, {"x": 8})
    assert set(table.record.gaps_in_group) == {"a", "b", "not recorded"}


def test_missing_text_is_counted_once_by_its_column(tmp_path):
    rows = [f"{i * i},{['u', 'v', 'w', ''][i % 4]},{'ab'[i % 2]}" for i in range(20)]
    (tmp_path / "d.csv").write_text("\n".join(["x,town,g", *rows]))
    with pytest.raises(TableError, match=r"in 'town' \(5\).*--drop 'town'"):
        read_table(tmp_path / "d.csv", "g", encode=True)


def test_values_that_mean_a_missing_one_spare_the_groups(tmp_path):
    (tmp_path / "d.csv").write_text("x,y,g\n1,2,a\nother,1,other\n3,-9,a\n3,1,other\n-9.0,2,a\n")
    table = read_table(tmp_path / "d.csv", "g", missing_values=["other", "-9"], missing="available")
    assert table.sensitive_features.tolist() == ["a", "other", "a", "other", "a"]
    x, y = (table.data[name].to_numpy() for name in "xy")
    np.testing.assert_array_equal(x, [1, np.nan, 3, 3, np.nan])
    np.testing.assert_array_equal(y, [2, 1, np.nan, 1, 2])


def test_medians_are_those_of_all_rows(people):
    table = read_table(people, "g", missing="median")
    kept = read_table(people, "g", missing="available")
    for name in table.feature_names:
        raw = kept.data[name].to_numpy()
        filled = np.where(np.isnan(raw), np.nanmedian(raw), raw)
        np.testing.assert_allclose(table.data[name].to_numpy(), filled, rtol=1e-12)
    assert table.record.gaps == {"age": 20, "weeks": 54}
    assert table.record.gaps_in_group["c"] > table.record.gaps_in_group["a"]


def test_a_continuous_column_is_refused_before_its_groups_fill_the_memory(tmp_path):
    ages = np.random.default_rng(0).uniform(18, 90, 300).round(3)
    rows = [f"{i % 7},{i % 5},{age}" for i, age in enumerate(ages)]
    (tmp_path / "d.csv").write_text("\n".join(["x,y,age", *rows]))
    with pytest.raises(ValueError, match="make bands in a query"):
        fitted_to(FairPCA(1), tmp_path / "d.csv", sensitive_features="age")


def test_a_column_without_values_is_no_feature(tmp_path):
    (tmp_path / "d.csv").write_text("x,empty,g\n1,,a\n2,,b\n4,,a\n")
    table = read_table(tmp_path / "d.csv", "g")
    assert table.record.left_out == {"empty": "empty"}
    with pytest.raises(TableError, match="no value of 'empty'"):
        read_table(tmp_path / "d.csv", "g", features=["x", "empty"], missing="median")


def test_folds_count_the_rows_that_stay(tmp_path):
    rng = np.random.default_rng(0)
    X, g = rng.normal(size=(200, 2)).round(6), rng.choice(["a", "b"], 200)
    gone = rng.random(200) < 0.2
    lines = [f"{'' if k else x},{y},{h}" for (x, y), h, k in zip(X, g, gone, strict=True)]
    (tmp_path / "d.csv").write_text("\n".join(["x,y,g", *lines]))
    expected = GroupMoments.from_data(X[~gone], g[~gone], folds=4)
    found = moments_of(tmp_path / "d.csv", sensitive_features="g", folds=4, missing="drop")
    for fold in range(4):
        for mine, theirs in zip(found.split(fold), expected.split(fold), strict=True):
            np.testing.assert_array_equal(mine.counts, theirs.counts)
            np.testing.assert_allclose(mine.means, theirs.means, rtol=1e-10)
