"""Rows are not people: units, exact duplicates, missing values and columns that measure nothing."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from helpers.command import fails, run

from fairpca import FairPCACV, audit, load_model
from fairpca.cli.columns.prepare import prepare
from fairpca.cli.columns.roles import named_like, owner_of

N = 240


def write(path, **columns):
    rows = zip(*columns.values(), strict=True)
    path.write_text("".join(f"{','.join(map(str, row))}\n" for row in [columns, *rows]))


def panel(n_people=60, visits=4):
    """Visits of people, and the same rows for the library."""
    rng = np.random.default_rng(1)
    person = np.arange(n_people).repeat(visits)
    own = rng.normal(size=(n_people, 4))[person]
    X = (0.8 * own + 0.6 * rng.normal(size=own.shape)).round(6)
    sex = np.array(["f", "m"])[person % 2]
    return {f"x{j}": X[:, j] for j in range(4)}, sex, person


def found(tmp_path, *more, command="audit"):
    words = [command, "d.csv", "-g", "sex", "-r", "2", "--json", "-", *more]
    return json.loads(run(*words, cwd=tmp_path).stdout)


def said(tmp_path, *more):
    return run("audit", "d.csv", "-g", "sex", "-r", "2", *more, cwd=tmp_path).stdout


@pytest.mark.parametrize("name", ["person_id", "hhid", "nr"])
def test_an_id_that_repeats_is_the_unit(name, tmp_path):
    X, sex, person = panel()
    write(tmp_path / "d.csv", **{name: person}, sex=sex, **X)
    rows = np.column_stack([*X.values()])
    expected = audit(FairPCACV(2, standardize=True), rows, sex, units=person)
    groups = found(tmp_path)["groups"]
    assert [row["n_units"] for row in groups] == [30, 30]
    gaps = [row["baseline"]["gap"] for row in groups]
    for gap, row in zip(gaps, expected.groups, strict=True):
        np.testing.assert_allclose([*gap.values()], [*row.baseline.gap], rtol=1e-8)
    alone = [row["baseline"]["gap"] for row in found(tmp_path, "--unit", "none")["groups"]]
    assert alone != gaps
    what = "people" if name == "person_id" else "units"
    assert f"60 {what} ({name}), 240 rows" in said(tmp_path)
    assert f"60 {what}" not in said(tmp_path, "--unit", "none")


def test_the_unit_with_most_values_wins_and_the_others_are_named(tmp_path):
    X, sex, person = panel()
    write(tmp_path / "d.csv", school_id=person // 2, person_id=person, sex=sex, **X)
    shown = said(tmp_path)
    assert "60 people (person_id), 240 rows" in shown
    assert "school_id" in shown.partition("(--unit)")[2]
    assert "30 units (school_id)" in said(tmp_path, "--unit", "school_id")


def test_ids_that_are_no_units(tmp_path):
    X, sex, person = panel()
    few = np.where(sex == "f", person % 3, person)  # too few among the women
    write(tmp_path / "d.csv", row_id=np.arange(N), staff_id=few, sex=sex, **X)
    assert "staff_id), " not in said(tmp_path)
    line = fails("audit", "d.csv", "-g", "sex", "--unit", "nobody", cwd=tmp_path)
    assert "no column 'nobody'" in line


def test_a_named_unit_need_not_look_like_an_id(tmp_path):
    X, sex, person = panel()
    write(tmp_path / "d.csv", who=[f"p{i}" for i in person], sex=sex, **X)
    assert [row["n_units"] for row in found(tmp_path, "--unit", "who")["groups"]] == [30, 30]
    for command in ("report", "columns"):
        extra = ["--out", "r.html"] if command == "report" else []
        words = [command, "d.csv", "-g", "sex", "-r", "2", "--unit", "who", *extra]
        assert "units (who)" in run(*words, cwd=tmp_path).stdout
    fit = ["fit", "d.csv", "-g", "sex", "-r", "2", "--unit", "who", "-o", "m.safetensors"]
    assert "units (who)" in run(*fit, cwd=tmp_path).stdout
    judged = ["audit", "d.csv", "-g", "sex", "--unit", "who", "--model", "m.safetensors"]
    assert "units (who)" in run(*judged, cwd=tmp_path).stdout


def test_rows_that_repeat_others_withhold_the_verdict(tmp_path):
    X, sex, _ = panel(n_people=N, visits=1)
    many = {name: column.repeat(3) for name, column in X.items()}
    write(tmp_path / "d.csv", who=np.arange(N).repeat(3), sex=sex.repeat(3), **many)
    line = fails("audit", "d.csv", "-g", "sex", "-r", "2", "--drop", "who", cwd=tmp_path)
    assert "240 rows occur 3 times each in d.csv" in line
    assert "--unit" in line
    assert "--keep-duplicates" in line
    found(tmp_path, "--drop", "who", "--keep-duplicates")
    assert [row["n_units"] for row in found(tmp_path, "--unit", "who")["groups"]] == [120, 120]


def test_answers_on_a_scale_may_repeat(tmp_path):
    rng = np.random.default_rng(0)
    answers = {f"q{j}": rng.integers(1, 6, N) for j in range(4)}
    many = {name: column.repeat(2) for name, column in answers.items()}
    write(tmp_path / "d.csv", sex=np.array(["f", "m"] * (N // 2)).repeat(2), **many)
    found(tmp_path)


def test_rows_that_are_left_out_are_told_by_group(tmp_path):
    X, sex, _ = panel(n_people=N, visits=1)
    gone = (sex == "m") & (np.arange(N) % 4 == 1)
    x0 = np.where(gone, "", X["x0"].astype(str)).tolist()
    write(tmp_path / "d.csv", **X | {"x0": x0}, sex=sex)
    kept = 120 - x0.count("")
    assert f"120 → {kept}" in said(tmp_path, "--missing", "drop")
    shown = said(tmp_path, "--missing", "median")
    assert f"x0 ({x0.count('')})" in shown
    assert "--missing drop" in fails(
        "audit", "d.csv", "-g", "sex", "--missing", "error", cwd=tmp_path
    )


def test_columns_that_measure_nothing_are_no_features_unless_named(tmp_path):
    X, sex, _ = panel(n_people=N, visits=1)
    rng = np.random.default_rng(0)
    others = {
        "wt": rng.uniform(1, 2, N).round(2),
        "psu": rng.integers(1, 9, N),
        "home_phone": rng.integers(5_550_000, 5_559_999, N),
        "zip": [f"{z:05d}" for z in rng.integers(500, 99_999, N)],
        "fips": [f"{z:03d}" for z in rng.integers(1, 200, N)],
        "seen": [20200101 + 100 * m + d for m, d in rng.integers(0, 12, (N, 2))],
        "birth_weight": rng.normal(3, 1, N).round(3),
        "year": rng.integers(1990, 2020, N),
    }
    write(tmp_path / "d.csv", **X, **others, sex=sex)
    features = found(tmp_path)["provenance"]["feature_names"]
    assert features == [*X, "birth_weight", "year"]
    left_out = {row["name"] for row in found(tmp_path)["left_out"]}
    assert left_out == {"wt", "psu", "home_phone", "zip", "fips", "seen"}
    named = found(tmp_path, "--features", "x0,wt,zip,seen")["provenance"]["feature_names"]
    assert named == ["x0", "wt", "zip", "seen"]
    asked = found(tmp_path, "--weight", "wt")
    assert asked["provenance"]["weighted"]


@pytest.mark.parametrize(
    "name",
    ["id", "ID", "PersonId", "person id", "patient_ids", "hhid", "pid", "row number", "Unnamed: 0",
     "id_num", "job_ad_id", "SEQN", "index", "lfd_nr"],
)  # fmt: skip
def test_names_of_ids(name):
    assert named_like(name) == "identifier"


@pytest.mark.parametrize(
    "name", ["paid", "humid", "acid", "covid", "body_mass_index", "width", "rowing", "ideal", "kid"]
)
def test_names_that_end_like_ids(name):
    assert named_like(name) == ""


def test_names_of_people():
    assert [owner_of(name) for name in ("person_id", "patientID", "userid")] == [True] * 3
    assert [owner_of(name) for name in ("job_ad_id", "hhid", "id", "nr")] == [False] * 4


def holes(tmp_path):
    """Rows of which a quarter of the men's lack two numbers."""
    X, sex, _ = panel(n_people=N, visits=1)
    rows = np.column_stack([*X.values()])
    rows[(sex == "m") & (np.arange(N) % 4 == 1), :2] = np.nan
    cells = {f"x{j}": np.where(np.isnan(x), "", x.astype(str)) for j, x in enumerate(rows.T)}
    write(tmp_path / "d.csv", **cells, sex=sex)
    return rows, sex


def test_what_is_known_is_used_by_default(tmp_path):
    rows, sex = holes(tmp_path)
    model = FairPCACV(2, standardize=True, missing="available")
    expected = audit(model, rows, sex, missing="available")
    gaps = [row["baseline"]["gap"] for row in found(tmp_path)["groups"]]
    for gap, row in zip(gaps, expected.groups, strict=True):
        np.testing.assert_allclose([*gap.values()], [*row.baseline.gap], rtol=1e-6)
    shown = said(tmp_path)
    assert "x0 (60), x1 (60)" in " ".join(shown.replace(" and", ",").split())
    assert "25.0 %" in shown or "25 %" in shown
    assert "60 of 240 rows" in fails(
        "audit", "d.csv", "-g", "sex", "--missing", "error", cwd=tmp_path
    )


def test_scores_of_incomplete_rows(tmp_path):
    rows, _ = holes(tmp_path)
    run("fit", "d.csv", "-g", "sex", "-r", "2", "-o", "m.safetensors", cwd=tmp_path)
    run("transform", "m.safetensors", "d.csv", "-o", "s.csv", cwd=tmp_path)
    scores = np.loadtxt(tmp_path / "s.csv", delimiter=",", skiprows=1)
    model = load_model(tmp_path / "m.safetensors")
    frame = pd.DataFrame(rows, columns=[f"x{j}" for j in range(4)])
    np.testing.assert_allclose(scores, model.transform(frame), rtol=1e-8, atol=1e-10)
    judged = ["audit", "d.csv", "-g", "sex", "--model", "m.safetensors"]
    assert "x0 (60)" in run(*judged, cwd=tmp_path).stdout
    assert "--missing" in fails(*judged, "--missing", "median", cwd=tmp_path)


def test_a_table_too_large_for_memory_has_units_and_missing_numbers_too(tmp_path, monkeypatch):
    X, sex, person = panel()
    x0 = np.where(np.arange(N) % 7 == 1, "", X["x0"].astype(str))
    write(tmp_path / "d.csv", person_id=person, sex=sex, **X | {"x0": x0})
    expected = found(tmp_path)["groups"]
    monkeypatch.setitem(prepare.__kwdefaults__, "rows_up_to", 0)
    streamed = found(tmp_path)
    assert streamed["origin"]["streamed"]
    for row, other in zip(streamed["groups"], expected, strict=True):
        assert row["n_units"] == other["n_units"]
        gaps = [own["baseline"]["gap"]["value"] for own in (row, other)]
        assert gaps[0] == pytest.approx(gaps[1], rel=1e-6)
