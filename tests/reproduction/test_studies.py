"""Other studies' published figures, and ours."""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest
from helpers.marks import needs_data

from fairpca.datasets import load_tcred
from reproduction import STUDIES, reproduce_study, study_data
from reproduction.__main__ import main
from reproduction.studies.comparison import Figure, agreement, printed
from reproduction.studies.hiding import mmd2_of
from reproduction.study_files import STUDY_FILES, digest_of_content
from reproduction.tools import silent


def figure(published, ours, tolerance=1e-6):
    return Figure("table", 2, "all rows", "method", "measure", published, ours, tolerance)


def test_figures_agree_to_within_their_tolerance():
    assert figure(1.0, 1.0 + 9e-7).agrees
    assert not figure(1.0, 1.0 + 2e-6).agrees
    assert figure(0.017, 0.01749, printed(3)).agrees
    assert not figure(0.017, 0.01751, printed(3)).agrees
    assert figure(None, 1.0).agrees is None
    assert figure(1.0, 2.0, None).as_row()["agrees"] == ""


@pytest.mark.parametrize(
    ("ours", "finding"), [([1, 2], "holds"), ([1, 3], "holds in part"), ([5, 5], "does not hold")]
)
def test_verdicts_count_the_figures_that_agree(ours, finding):
    figures = [figure(float(p), float(o)) for p, o in zip((1, 2), ours, strict=True)]
    claim = agreement([*figures, figure(9.0, 1.0, None)], "Both.", "table")
    assert claim.finding == finding
    assert f"of {len(figures)} figures" in claim.numbers


def test_mmd2_is_zero_between_equal_samples_and_grows_with_distance():
    rng = np.random.default_rng(0)
    sample = rng.normal(size=(50, 2))
    assert mmd2_of(sample, sample[::-1], 1.0) == pytest.approx(0, abs=1e-12)
    near, far = (mmd2_of(sample, sample + shift, 1.0) for shift in (0.3, 3.0))
    assert 0 < near < far


@needs_data
def test_a_whole_study(tmp_path):
    report = reproduce_study("vu2022", tmp_path)
    assert {claim.finding for claim in report.claims} == {"holds"}
    assert sorted(path.name for path in report.files) == ["claims.csv", "figures.csv", "index.html"]
    with (tmp_path / "vu2022" / "figures.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["agrees"] for row in rows] == ["yes"] * 3
    page = (tmp_path / "vu2022" / "index.html").read_text(encoding="utf-8")
    assert page.count(f">{float(rows[0]['published']):.6f}<") == 2  # theirs and ours
    assert "http" not in page  # it loads nothing


@needs_data
def test_two_ranks_of_multi_criteria_dimensionality_reduction():
    study = STUDIES["tantipongpipat2019"]
    data = study.load()
    for loaded in data:
        for criterion in ("variance", "loss", "nash"):
            loaded[criterion] = loaded[criterion][1:12:10]
    figures, claims = study.run(data, silent)
    assert len(figures) == 12
    assert all(figure.agrees for figure in figures)
    assert claims[0].finding == "holds"


@needs_data
def test_one_split_of_the_mmd_study():
    study = STUDIES["lee2022"]
    data = study.load()
    data["splits"] = {"german": data["splits"]["german"][:2]}
    data["published"] = [row for row in data["published"] if int(row["split"]) < 2]
    figures, claims = study.run(data, silent)
    same = [figure for figure in figures if figure.method == "PCA"]
    assert len(same) == 8
    assert all(figure.agrees and abs(figure.difference) < 1e-12 for figure in same)
    assert claims[0].finding == "holds"
    honest = [figure.held_out for figure in same if figure.measure == "accuracy"]
    assert all(0.5 < value < 1 for value in honest)


@needs_data
@pytest.mark.slow
def test_the_streaming_study():
    study = STUDIES["lee2023"]
    figures, claims = study.run(study.load(), silent)
    assert sum(figure.agrees is True for figure in figures) == 14
    assert {claim.finding for claim in claims} == {"holds"}


@needs_data
def test_the_published_iteration_and_the_optimum():
    figures, claims = STUDIES["samadi2018"].run(load_tcred(), silent)
    assert claims[0].finding == "holds"
    by_rank = {}
    for found in figures:
        by_rank.setdefault(found.r, {})[found.method] = found.ours
    assert all(
        losses["MinMaxPCA"] <= losses["multiplicative weights"] for losses in by_rank.values()
    )


def test_without_data_a_message_and_nothing_else(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FAIRPCA_DATA", str(tmp_path))
    assert main(["--study", "tantipongpipat2019", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "credit.csv.gz is not at hand" in said
    assert "github.com/SDPforAll" in said
    assert list(tmp_path.iterdir()) == []


def test_the_command_names_the_studies(capsys):
    assert main(["--study", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["pelegrina2022", *STUDIES]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--study", "nobody2020"], "choose from"),
        (["--study", "nobody2020"], "pelegrina2022"),
        (["--study", "vu2022", "--dataset", "tcred"], "Leave them out"),
    ],
)
def test_wrong_use_of_the_command(options, message, tmp_path, capsys):
    assert main([*options, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@needs_data
@pytest.mark.parametrize(
    ("load", "shape", "groups"),
    [
        (study_data.load_compas, (1727, 11), ["caucasian", "others"]),
        (study_data.load_german, (700, 57), ["25 and older", "under 25"]),
        (study_data.load_adult, (1582, 97), ["female", "male"]),
        (lambda: study_data.load_vu("wine"), (6497, 11), ["0", "1"]),
        (study_data.load_credit, (30000, 23), ["high school", "higher", "other"]),
    ],
)
def test_loaders(load, shape, groups):
    bunch = load()
    assert bunch.data.shape == shape
    assert bunch.groups.tolist() == groups
    assert len(bunch.feature_names) == shape[1]
    assert "github.com" in bunch.description
    if "test_data" in bunch:
        assert len(bunch.test_data) == len(bunch.test_target)
        assert abs(bunch.data.mean(axis=0)).max() < 1e-9


def test_packed_splits_are_recognised_by_their_content(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        for i in range(10):
            rows = np.column_stack([rng.normal(size=(6, 3)), [0, 1] * 3, [0, 0, 0, 1, 1, 1]])
            np.savetxt(tmp_path / f"{part}_{i}.csv", rows, delimiter=",")
    folder = tmp_path / "studies" / "lee2022"
    folder.mkdir(parents=True)
    packed = study_data.pack_splits(tmp_path, folder / "compas.npz")
    with pytest.raises(ValueError, match="sha256"):
        study_data.load_compas(data_home=tmp_path)
    digest = digest_of_content(packed)
    known = replace(STUDY_FILES["compas"], content_sha256=digest)
    monkeypatch.setitem(STUDY_FILES, "compas", known)
    loaded = study_data.load_compas(split=3, data_home=tmp_path)
    assert loaded.data.shape == (6, 3)
    assert loaded.sensitive_features.tolist() == ["others"] * 3 + ["caucasian"] * 3


@pytest.mark.parametrize(
    "call",
    [
        lambda: study_data.load_compas(split=10),
        lambda: study_data.load_german(version=2021),
        lambda: study_data.load_credit(by="sex"),
        lambda: study_data.load_vu("adult"),
    ],
)
def test_unknown_parts_are_refused(call):
    with pytest.raises(ValueError, match="is not known: pass"):
        call()
