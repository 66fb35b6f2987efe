"""Missing values are named, and leaving rows out does not destroy the data unnoticed."""

import numpy as np
import pytest
from helpers.command import fails, run

from fairpca.report import read_table

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
    return tmp_path


def test_columns_are_named_and_the_advice_is_harmless(people):
    line = fails("audit", "people.csv", "-g", "g", cwd=people)
    assert "in 'weeks' (54), 'age' (20); mostly empty: 'weeks'; leave columns out" in line
    assert "--drop weeks (in Python drop=['weeks'])" in line
    assert "--impute median" in line
    assert "--drop-missing" not in line  # most rows would go
    line = fails("audit", "people.csv", "-g", "g", "--drop", "weeks", cwd=people)
    assert "--drop-missing (in Python drop_missing=True)" in line


def test_a_group_column_is_not_left_out(people):
    (people / "labels.csv").write_text("x,y,g\n1,2,a\n2,1,b\n3,2,a\n3,1,b\n5,2,\n")
    line = fails("audit", "labels.csv", "-g", "g", cwd=people)
    assert "in 'g' (1); choose another column, or complete this one, or leave these rows" in line
    assert run("audit", "labels.csv", "-g", "g", "--drop-missing", cwd=people).stdout
    fit = ["fit", "labels.csv", "-g", "g", "--drop-missing", "-r", "1", "-o", "m.safetensors"]
    run(*fit, cwd=people)
    line = fails("audit", "--model", "m.safetensors", "labels.csv", cwd=people)
    assert "in 'g' (1); choose another column" in line


def test_more_than_half_of_the_rows_go_only_if_told_to(people):
    line = fails("audit", "people.csv", "-g", "g", "--drop-missing", cwd=people)
    assert "less than half of the rows would be left: 56 of 60 rows" in line
    assert "--drop weeks" in line
    assert "--drop-most (in Python drop_most=True)" in line
    told = ["--drop-missing", "--drop-most"]
    done = run("audit", "people.csv", "-g", "g", *told, cwd=people)
    assert "left out, missing values: 56 of 60 rows" in done.stdout
    table = read_table(str(people / "people.csv"), ["g"], drop_missing=True, drop_most=True)
    assert table.data.num_rows == 4


def test_groups_that_are_lost_are_named(people):
    options = ["-g", "g", "--drop", "weeks", "--drop-missing"]
    done = run("audit", "people.csv", *options, cwd=people)
    assert "left out, missing values: 20 of 60 rows" in done.stdout
    assert "groups lost with them: c" in done.stdout
    kept = [line for line in (people / "people.csv").read_text().splitlines() if ",b" not in line]
    (people / "two.csv").write_text("\n".join(kept))
    line = fails("audit", "two.csv", *options, "--drop-most", cwd=people)
    assert (
        "all complete rows of two.csv are in one group, 'a'; every row of 'c' has a missing "
        in line
    )
    assert "in 'age' (20): leave columns out with --drop age" in line


def test_no_row_left_names_the_columns(people):
    (people / "none.csv").write_text("x,y,g\n1,,a\n,2,b\n3,,a\n")
    line = fails("audit", "none.csv", "-g", "g", "--drop-missing", "--drop-most", cwd=people)
    assert "no row would be left: 3 of 3 rows of none.csv have missing values, in 'y' (2)" in line


def test_a_group_of_one_row_is_mentioned(people):
    rows = "\n".join(f"{i % 7},{i % 5},{'ab'[i % 2]}" for i in range(20))
    (people / "one.csv").write_text(f"x,y,g\n{rows}\n3,4,single\n")
    done = run("audit", "one.csv", "-g", "g", cwd=people)
    assert "groups of one row: single (--min-group-size)" in done.stdout


def test_groups_are_split_like_other_lists(people):
    rows = "\n".join(f"{i % 7},{i % 5},{'ab'[i % 2]},{'xy'[i % 3 == 0]}" for i in range(30))
    (people / "two.csv").write_text(f"u,v,g,h\n{rows}\n")
    once, twice = (
        run("audit", "two.csv", *groups, "--json", "-", cwd=people).stdout
        for groups in (["-g", "g,h"], ["-g", "g", "-g", "h"])
    )
    assert once == twice
    assert "a & x" in once


def test_advice_to_leave_columns_out_names_the_worst_or_is_not_given(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 8)).round(3).astype(object)
    for j in range(4):
        X[: j + 1, j] = ""

    def write(name):
        rows = "\n".join(",".join([*map(str, x), "ab"[i % 2]]) for i, x in enumerate(X))
        (tmp_path / name).write_text(",".join([*(f"x{j}" for j in range(8)), "g"]) + f"\n{rows}\n")

    write("few.csv")
    line = fails("audit", "few.csv", "-g", "g", cwd=tmp_path)
    assert "in 'x3' (4), 'x2' (3), 'x1' (2), 'x0' (1); " in line  # one more name is not hidden
    assert "--drop x3,x2,x1,x0 (in" in line
    for j in range(4, 8):
        X[:j, j] = ""
    write("many.csv")
    line = fails("audit", "many.csv", "-g", "g", cwd=tmp_path)
    assert "in 'x7' (7), 'x6' (6), 'x5' (5) and others; fill in numbers with --impute" in line
    X[:50, 2:] = ""  # now most of them are empty, and none is left out of the advice
    X[1::2, 7] = ""
    write("most.csv")
    told = ["--drop-missing", "--drop-most"]
    line = fails("audit", "most.csv", "-g", "g", *told, cwd=tmp_path)
    assert "every row of 'b' has a missing value" in line
    assert "--drop x7,x2,x3,x4,x5,x6 (in" in line
    run("audit", "most.csv", "-g", "g", "--drop", "x7,x2,x3,x4,x5,x6", told[0], cwd=tmp_path)
