"""Row numbers and ids are no features, unless they are asked for."""

import json

import numpy as np
import pyarrow as pa
import pytest
from helpers.command import run
from helpers.tables import WRITERS

from fairpca import FairPCA, FairPLS, GroupMoments
from fairpca._input.identifiers import is_identifier
from fairpca._tables.identifiers import identifiers
from fairpca._tables.table import FileTable
from fairpca.report import read_table

N = 40


@pytest.fixture
def people(tmp_path):
    """A table with row numbers, ids, shuffled distinct numbers, and honest features."""
    rng = np.random.default_rng(0)
    columns = {
        "": range(N),
        "rownames": range(1, N + 1),
        "ticket": rng.permutation(N) + 1000,
        "person_id": rng.integers(0, 9, N),
        "patientID": rng.integers(0, 9, N),
        "age": rng.integers(20, 60, N),
        "income": rng.normal(size=N).round(6),
        "grid": rng.integers(0, 5, N),
        "sex": rng.choice(["f", "m"], N),
        "y": rng.permutation(N),
    }
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    return tmp_path


IDS = ["rownames", "ticket", "person_id", "patientID"]


def test_which_columns_are_identifiers(people):
    table = FileTable(people / "people.csv")
    names = ["rownames", "ticket", "person_id", "patientID", "age", "income", "grid"]
    assert identifiers(table, names) == IDS
    assert identifiers(table, ["income"]) == []


def _in_both_formats(folder, columns):
    table = pa.table(columns)
    for name in ("csv", "parquet"):
        WRITERS[name](table, folder / f"d.{name}")
        yield FileTable(folder / f"d.{name}")


def test_row_numbers_that_are_stored_as_fractions(tmp_path):
    numbers = np.arange(N, dtype=float)
    gaps = [None if i % 5 == 2 else i + 1.0 for i in range(N)]
    columns = {"from_0": numbers, "from_1": numbers + 1, "gaps": gaps}
    honest = {
        "ages": numbers + 18,  # all different and in order, but no row numbers
        "incomes": np.random.default_rng(0).permutation(N) * 1.0,
        "thirds": numbers / 3,
        "few": [i + 0.0 if i < 12 else None for i in range(N)],
    }
    for table in _in_both_formats(tmp_path, columns | honest):
        # In text, whole numbers are written without a fraction by some programs.
        table.types |= {name: pa.float64() for name in columns | honest}
        assert identifiers(table, [*columns, *honest]) == [*columns]


def test_whole_numbers_all_different_where_they_are_known(tmp_path):
    numbers = (np.random.default_rng(0).permutation(N) + 10**5).tolist()
    known = [None if i % 5 == 2 else number for i, number in enumerate(numbers)]
    twice = [*known[:-1], known[0]]
    for table in _in_both_formats(tmp_path, {"ssn": known, "twice": twice}):
        assert identifiers(table, ["ssn", "twice"]) == ["ssn"]


@pytest.mark.parametrize(
    "name",
    [
        "caseid",
        "pid",
        "userid",
        "customerid",
        "uid",
        "CASEID",
        "hhid",
        "subjid",
        "PatientIds",
        "ssn",
    ],
)
def test_names_of_ids_without_a_separator(name):
    assert is_identifier(name)


@pytest.mark.parametrize(
    "name",
    ["paid", "humid", "acid", "grid", "android", "valid", "covid", "bid", "aid", "mid", "kid",
     "amino_acid", "lipid", "fluid", "solid", "rapid", "thyroid", "steroid", "hybrid", "void",
     "amount_paid", "prepaid", "unpaid", "centroid", "overlaid", "candid", "orchid", "is_covid"],
)  # fmt: skip
def test_words_that_end_like_an_id(name):
    assert not is_identifier(name)


def test_few_rows_are_not_judged_by_their_values(tmp_path):
    (tmp_path / "few.csv").write_text("a,g\n1,x\n2,y\n3,x\n")
    assert identifiers(FileTable(tmp_path / "few.csv"), ["a"]) == []


def test_the_command_leaves_them_out_with_a_note(people):
    options = ["-g", "sex", "--label", "y"]
    done = run("audit", "people.csv", *options, cwd=people)
    assert "left out, looks like row numbers or ids: (no name), rownames, ticket" in done.stdout
    assert "--keep-ids" in done.stdout
    plain = json.loads(run("audit", "people.csv", *options, "--json", "-", cwd=people).stdout)
    by_hand = ["--drop", ",".join(IDS)]
    dropped = run("audit", "people.csv", *options, *by_hand, "--json", "-", cwd=people)
    assert plain["pca"] == json.loads(dropped.stdout)["pca"]
    kept = run("audit", "people.csv", *options, "--keep-ids", "--json", "-", cwd=people)
    assert len(json.loads(kept.stdout)["pca"]) == 3 + len(IDS)
    chosen = run("audit", "people.csv", *options, "--columns", "ticket,age", "--json", "-",
                 cwd=people)  # fmt: skip
    assert len(json.loads(chosen.stdout)["pca"]) == 2


def test_a_column_without_a_name_is_noted_and_never_used(people):
    options = ["-g", "sex", "--label", "y", "--keep-ids"]
    done = run("audit", "people.csv", *options, cwd=people)
    assert "looks like row numbers or ids: (no name)\n" in done.stdout
    done = run("audit", "people.csv", "-g", "sex", "--columns", "age,income", cwd=people)
    assert "(no name)" not in done.stdout


def test_read_table_warns(people):
    with pytest.warns(UserWarning, match=r"'rownames', 'ticket'.*keep_ids=True") as caught:
        table = read_table(str(people / "people.csv"), ["sex"], label="y")
    assert caught[0].filename == __file__
    assert table.feature_names == ["age", "income", "grid"]
    table = read_table(str(people / "people.csv"), ["sex"], label="y", keep_ids=True)
    assert table.feature_names == [*IDS, "age", "income", "grid"]


def test_read_table_takes_one_name(people):
    file = str(people / "people.csv")
    one = read_table(file, groups="sex", columns="age", missing_values="unknown")
    assert one.feature_names == ["age"]
    few = read_table(file, "sex", columns=["age", "grid"], drop="grid")
    assert few.feature_names == ["age"]
    assert few.sensitive_features.tolist() == one.sensitive_features.tolist()


def test_fits_to_files_follow_the_same_rule(people):
    file = people / "people.csv"
    with pytest.warns(UserWarning, match=r"'rownames', 'ticket'.*keep_ids=True") as caught:
        fair = FairPCA(1).fit_files(file, group="sex")
    assert caught[0].filename == __file__
    assert fair.feature_names_in_.tolist() == ["age", "income", "grid"]  # y is distinct too
    every = GroupMoments.from_files(file, group="sex", keep_ids=True)
    assert every.feature_names == [*IDS, "age", "income", "grid", "y"]
    named = GroupMoments.from_files(file, group="sex", columns=["ticket", "age"])
    assert named.feature_names == ["ticket", "age"]
    with pytest.warns(UserWarning, match="look like row numbers"):
        some = GroupMoments.from_files(file, group="sex", keep_ids=["y"])
    assert some.feature_names == ["age", "income", "grid", "y"]
    with pytest.warns(UserWarning, match="look like row numbers"):
        pls = FairPLS(1, notion=None, target_type="numbers").fit_files(
            file, group="sex", target="y"
        )
    assert pls.feature_names_in_.tolist() == ["age", "income", "grid"]


def test_ids_stay_where_nothing_else_is_left(tmp_path):
    lines = [f"{i},{'fm'[i % 2]}" for i in range(N)]
    (tmp_path / "d.csv").write_text("\n".join(["x,sex", *lines]))
    assert GroupMoments.from_files(tmp_path / "d.csv", group="sex").feature_names == ["x"]


def test_the_target_is_never_a_feature(people):
    columns = ["age", "income", "y"]
    table = read_table(str(people / "people.csv"), ["sex"], label="y", columns=columns)
    assert table.feature_names == ["age", "income"]
