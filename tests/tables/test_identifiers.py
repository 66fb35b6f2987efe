"""Row numbers and ids are no features, unless they are asked for."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.files import fitted_to, moments_of, read_table
from helpers.tables import WRITERS

from fairpca import FairPCA

N = 40


@pytest.fixture
def people(tmp_path):
    """A table with row numbers, ids, and honest features, some of which are all different."""
    rng = np.random.default_rng(0)
    columns = {
        "": range(N),
        "rownames": range(1, N + 1),
        "ticket": rng.permutation(N) + 1000,
        "person_id": rng.integers(0, 9, N),
        "patientID": rng.integers(0, 9, N),
        "age": rng.integers(20, 60, N),
        "income": rng.normal(size=N).round(6),
        "population": rng.permutation(N) ** 2 + 10,
        "sex": rng.choice(["f", "m"], N),
    }
    rows = zip(*columns.values(), strict=True)
    lines = [",".join(columns), *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "people.csv").write_text("\n".join(lines))
    return tmp_path / "people.csv"


HONEST = ["age", "income", "population"]


def test_ids_are_left_out_and_said(people):
    table = read_table(people, "sex")
    assert table.feature_names == HONEST
    assert table.record.left_out == {
        "": "index",
        "rownames": "identifier",
        "person_id": "identifier",
        "patientID": "identifier",
        "ticket": "row numbers",
    }
    fair = fitted_to(FairPCA(1), people, sensitive_features="sex")
    assert fair.feature_names_in_.tolist() == HONEST


def test_ids_that_are_named_are_used(people):
    table = read_table(people, "sex", features=["ticket", "age"])
    assert table.feature_names == ["ticket", "age"]
    assert table.record.left_out == {}
    moments = moments_of(people, sensitive_features="sex", features=["rownames"])
    assert moments.feature_names == ["rownames"]


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow"])
def test_only_whole_numbers_without_gaps_are_row_numbers(kind, tmp_path):
    numbers = np.arange(N, dtype=float)
    order = np.random.default_rng(0).permutation(N)
    columns = {
        "from_0": numbers,
        "shuffled": numbers[order] + 7,
        "gap": np.where(numbers < 9, numbers, numbers + 1),
        "thirds": numbers / 3,
        "twice": np.minimum(numbers, N - 2),
        "sex": ["f", "m"] * (N // 2),
    }
    WRITERS[kind](pa.table(columns), tmp_path / f"d.{kind}")
    table = read_table(tmp_path / f"d.{kind}", "sex")
    assert table.feature_names == ["gap", "thirds", "twice"]


def test_few_rows_are_not_judged_by_their_values(tmp_path):
    (tmp_path / "few.csv").write_text("a,g\n1,x\n2,y\n3,x\n")
    assert read_table(tmp_path / "few.csv", "g").feature_names == ["a"]


def test_ids_stay_where_nothing_else_is_left(tmp_path):
    lines = [f"{i},{'fm'[i % 2]}" for i in range(N)]
    (tmp_path / "d.csv").write_text("\n".join(["x,sex", *lines]))
    moments = moments_of(tmp_path / "d.csv", sensitive_features="sex")
    assert moments.feature_names == ["x"]


def test_target_and_weight_are_never_features(people):
    table = read_table(people, "sex", drop=["rownames", "person_id", "patientID", "ticket"],
                       target="age", sample_weight="population")  # fmt: skip
    assert table.feature_names == ["income"]
    assert len(table.target) == len(table.sample_weight) == N


IDS = [
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
]
WORDS = [
    *("paid", "humid", "acid", "grid", "android", "valid", "covid", "bid", "aid", "mid", "kid"),
    *("amino_acid", "lipid", "fluid", "solid", "rapid", "thyroid", "steroid", "hybrid", "void"),
    *("amount_paid", "prepaid", "unpaid", "centroid", "overlaid", "candid", "orchid", "is_covid"),
]


def test_names_of_ids_and_words_that_end_like_one(tmp_path):
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(0, 9, N) for name in [*IDS, *WORDS]}
    pq.write_table(pa.table(columns | {"sex": ["f", "m"] * (N // 2)}), tmp_path / "d.parquet")
    table = read_table(tmp_path / "d.parquet", "sex")
    assert table.feature_names == WORDS
    assert table.record.left_out == dict.fromkeys(IDS, "identifier")
