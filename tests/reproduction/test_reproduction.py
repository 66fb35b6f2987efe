"""The reproduction against the authors' results; resuming, refusing, tables, claims, figures."""

from __future__ import annotations

import csv
import json
import re
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.marks import needs_data
from sklearn.utils import Bunch

import reproduction
from fairpca import FairPCA
from fairpca.datasets import make_two_groups
from reproduction import (
    METHODS,
    Result,
    check_claims,
    intersections,
    plan,
    publish,
    reproduce,
    run_jobs,
)
from reproduction.__main__ import main
from reproduction.experiments import DATASETS, Dataset
from reproduction.results import ResultFiles
from reproduction.tables import timing
from reproduction.tools import quietly

# file, dataset, the group that its column A stands for, numbers of components compared
REFERENCES = [
    ("tcred", "tcred", "lower", range(1, 22)),
    ("lsac", "lsac", "black", range(1, 9)),  # of rank 9: from there on all is rounding
    ("lsac_without_other", "lsac-without-other", "black", range(1, 9)),
    ("lfw", "lfw", "female", (2,)),
]


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["unbalanced", "balanced"])
@pytest.mark.parametrize(("file", "dataset", "group_A", "ranks"), REFERENCES)
def test_columns_agree_with_the_authors_results(
    reference_folder, file, dataset, group_A, ranks, variant
):
    suffix = "_balanced" if variant == "balanced" else ""
    table = np.genfromtxt(reference_folder / f"{file}{suffix}.csv", delimiter=",", names=True)
    wanted = [row for row in table if row["r"] in ranks]
    data = DATASETS[dataset].variant(variant)
    for name, column in (("pca", "pca"), ("u-fpca-golden", "u"), ("c-fpca-golden", "c")):
        for row, result in zip(wanted, METHODS[name].run(data, ranks), strict=True):
            A, B = result.error_1, result.error_2
            if result.group_1 != group_A:
                A, B = B, A
            ours = [result.overall_error, A, B]
            theirs = [row[f"{column}_rec"], row[f"{column}_recA"], row[f"{column}_recB"]]
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)
            assert np.sqrt(row[f"{column}_F"]) == pytest.approx(
                abs(result.disparity), abs=1e-6 * row["pca_rec"]
            )


@pytest.fixture
def tiny(monkeypatch):
    """A dataset that loads at once; returns the list of its loads."""
    loads = []

    def load(balanced):
        loads.append(balanced)
        sizes = (30, 30) if balanced else (60, 30)
        return make_two_groups(sizes, n_features=4, random_state=0)

    monkeypatch.setitem(DATASETS, "tiny", Dataset("tiny", "Tiny", (1, 2, 3), load))
    return loads


def computed(jobs, folder):
    """Run the jobs; return the titles of those that were not done before, in order."""
    titles = {}
    run_jobs(jobs, folder, lambda doing, fraction: titles.setdefault(doing, fraction))
    return list(titles)


@pytest.mark.slow
def test_the_third_command_of_the_readme_opens_no_connection(tmp_path, monkeypatch):
    """TCRED is in the repository; a folder of data that is set must not be needed either."""
    monkeypatch.delenv("FAIRPCA_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "no data"))

    def refuse(*where):
        raise AssertionError(f"a connection to {where}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    words = ["--dataset", "tcred", "--method", "pca", "--method", "u-fpca"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "figures" / "errors_unbalanced.png").exists()


def test_a_finished_run_is_not_computed_again(tiny, tmp_path):
    jobs = plan(["tiny"])
    first = run_jobs(jobs, tmp_path)
    assert tiny == [False, True]
    assert len(first) == len(METHODS) * 2 * 3
    assert computed(jobs, tmp_path) == []
    assert run_jobs(jobs, tmp_path) == first
    assert tiny == [False, True]


def test_progress_rises_to_one(tiny, tmp_path):
    fractions = []
    jobs = plan(["tiny"], ["pca", "u-fpca"], ["balanced"])
    run_jobs(jobs, tmp_path, lambda doing, fraction: fractions.append(fraction))
    assert sorted(set(fractions)) == pytest.approx(np.arange(7) / 6)
    assert fractions == sorted(fractions)


def test_an_interrupted_run_goes_on_where_it_stopped(tiny, tmp_path):
    jobs = plan(["tiny"], ["pca", "u-fpca", "c-fpca"], ["unbalanced"])

    def interrupt(doing, fraction):
        if fraction > 0.5:  # pca is complete, u-fpca is not
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, tmp_path, interrupt)
    assert [path.name for path in tmp_path.iterdir()] == ["tiny_unbalanced_pca.json"]
    assert computed(jobs, tmp_path) == ["Tiny, unbalanced, u-FPCA", "Tiny, unbalanced, c-FPCA"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"format": 2', '"format": 1'),
        lambda text: text.replace('"r": 3', '"r": 4'),
        lambda text: text.replace('"method": "pca"', '"method": "mofpca"'),
        lambda text: text.replace('"seconds"', '"minutes"'),
        lambda text: "[]",
    ],
)
def test_files_that_are_not_whole_are_computed_again(tiny, tmp_path, damage):
    jobs = plan(["tiny"], ["pca", "u-fpca"], ["unbalanced"])
    run_jobs(jobs, tmp_path)
    path = ResultFiles(tmp_path).path("tiny", "unbalanced", "pca")
    path.write_text(damage(path.read_text()))
    assert computed(jobs, tmp_path) == ["Tiny, unbalanced, PCA"]
    assert ResultFiles(tmp_path).read("tiny", "unbalanced", "pca", (1, 2, 3)) is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"datasets": ["adult"]}, "dataset 'adult' not known: choose from tcred, lfw, lsac"),
        ({"methods": ["ica", "pca"]}, "method 'ica' not known: choose from pca, fairpca, mofpca"),
        ({"variants": ["even"]}, "variant 'even' not known: choose from unbalanced, balanced"),
    ],
)
def test_unknown_names_list_what_exists(arguments, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        reproduce(tmp_path / "out", **arguments)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_fails_before_any_computing(tiny, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file/out'"):
        reproduce(tmp_path / "file" / "out", datasets=["tiny"])
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "results").write_text("in the way")
    with pytest.raises(OSError, match="out/results'"):
        reproduce(tmp_path / "out", datasets=["tiny"])
    assert tiny == []


@pytest.mark.slow
def test_report_holds_tables_and_figures(tiny, tmp_path):
    report = reproduce(tmp_path, datasets=["tiny"])
    with (tmp_path / "results.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == len(report.results) == len(METHODS) * 2 * 3
    stored = json.loads((tmp_path / "results.json").read_text())
    assert [row["method"] for row in stored["results"]] == [row["method"] for row in rows]
    exact = [row for row in stored["results"] if row["method"] in ("u-fpca", "c-fpca")]
    assert all(abs(row["duality_gap"]) < 1e-12 for row in exact)
    assert all(row["fairness_measure"] == row["disparity"] ** 2 for row in exact)
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {
        f"{stem}.{kind}"
        for stem in ("intuition", "illustration", "groups_tiny_unbalanced", "groups_tiny_balanced")
        for kind in ("png", "svg")
    }
    assert all(path.stat().st_size > 1000 for path in report.files if path.parent.name == "figures")
    assert {claim.finding for claim in report.claims[1:]} == {"not run"}  # not about these data


@pytest.mark.slow
def test_figures_are_the_same_every_time(tiny, tmp_path):
    results = run_jobs(plan(["tiny"], variants=["balanced"]), tmp_path)
    as_tcred = [replace(result, dataset="tcred") for result in results]
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        publish(as_tcred, tmp_path / name)
    for path in (tmp_path / "one" / "figures").glob("*.svg"):
        assert path.read_bytes() == (tmp_path / "two" / "figures" / path.name).read_bytes()
    assert (tmp_path / "one" / "figures" / "errors_balanced.png").exists()


def test_every_method_shown_has_its_own_colour_and_marker():
    from reproduction.drawing import LOOKS

    shown = {name for name, method in METHODS.items() if method.shown}
    assert set(LOOKS) == shown
    assert len({look.color for look in LOOKS.values()}) == len(shown)
    assert len({look.marker for look in LOOKS.values()}) == len(shown)


@pytest.mark.slow
def test_figures_of_some_methods_only(tiny, tmp_path):
    results = run_jobs(plan(["tiny"], ["pca", "c-fpca-golden"], ["balanced"]), tmp_path)
    report = publish([replace(result, dataset="lsac") for result in results], tmp_path)
    stems = {path.stem for path in report.files if path.suffix == ".svg"}
    assert stems == {"intuition", "illustration", "errors_balanced", "groups_lsac_balanced"}


# -- beyond the paper ------------------------------------------------------------------------------


@pytest.mark.slow
def test_faces_by_sex_and_race(tmp_path):
    loads = []

    def load():
        loads.append(1)
        rng = np.random.default_rng(0)
        labels = rng.integers(0, [[2, 3]], (600, 2))
        X = rng.normal(size=(600, 20)) * (1 + labels[:, 1:] / 9) * np.linspace(3, 1, 20)
        names = np.array(["female", "male"])[labels[:, 0]], np.array(list("abc"))[labels[:, 1]]
        return Bunch(data=X, sensitive_features=names[0], race=names[1])

    results = intersections.run_intersections(tmp_path, load)
    assert intersections.run_intersections(tmp_path, load) == results
    assert len(loads) == 1
    data = load()
    groups = np.column_stack([data.sensitive_features, data.race])
    with quietly():
        fair = FairPCA(10, constraint="no_worse").fit(data.data, sensitive_features=groups)
    ours = [x for x in results if (x.r, x.method) == (10, "c-FPCA")]
    assert [x.group for x in ours] == fair.groups_.tolist()
    assert [x.error for x in ours] == pytest.approx(fair.group_errors_)
    assert ours[0].spread == pytest.approx(fair.disparity_, abs=1e-9)
    report = publish([], tmp_path, results)
    with (tmp_path / "lfw_sex_by_race.csv").open() as stream:
        assert len(list(csv.DictReader(stream))) == len(results) == 3 * 3 * 6
    assert (tmp_path / "figures" / "lfw_sex_by_race.svg") in report.files


def test_faces_by_sex_and_race_come_with_c_fpca_on_lfw():
    assert intersections.belongs_to(plan())
    assert intersections.belongs_to(plan(["lfw"]))
    assert not intersections.belongs_to(plan(["tcred", "lsac"]))
    assert not intersections.belongs_to(plan(["lfw"], ["pca"]))


# -- claims ----------------------------------------------------------------------------------------

BASE = Result(
    dataset="tcred", variant="unbalanced", method="pca", r=4, overall_error=10.0, group_1="a",
    group_2="b", error_1=9.0, error_2=11.0, harmed_group="b", disparity=2.0, pca_harmed_error=11.0,
    alpha=1.0, duality_gap=0.0, status="", seconds=0.1,
    cpu_seconds=0.1, n_eigensolves=1,
)  # fmt: skip


def case(**changes):
    """All five methods at one r, as the paper would have them; changes by method."""
    results = {
        "pca": BASE,
        "fairpca": replace(BASE, overall_error=10.1, error_1=8.9, disparity=2.1),
        "mofpca": replace(BASE, overall_error=11.9, error_1=11.8, error_2=11.9, disparity=0.1),
        "u-fpca": replace(BASE, overall_error=12.0, error_1=12.0, error_2=12.0, disparity=0.0),
        "c-fpca": replace(BASE, overall_error=10.2, error_1=10.0, error_2=11.0, disparity=1.0),
    }
    return [
        replace(result, method=name, **changes.get(name.replace("-", "_"), {}))
        for name, result in results.items()
    ]


def finding(results, statement):
    [claim] = [
        claim
        for claim in check_claims(results)
        if claim.variant == "unbalanced" and statement in claim.statement
    ]
    return claim.finding


@pytest.mark.parametrize(
    ("statement", "changes"),
    [
        ("lowest fairness measure", {"u_fpca": {"disparity": 0.2}}),
        ("no group is worse off", {"c_fpca": {"error_2": 11.1}}),
        ("not always respect that cap", {"u_fpca": {"error_1": 10.9, "error_2": 10.9}}),
    ],
)
def test_claims_turn_with_the_numbers(statement, changes):
    assert finding(case(), statement) == "holds"
    assert finding(case(**changes), statement) == "does not hold"


def test_small_loss_means_small():
    assert finding(case(), "small loss") == "holds"
    assert finding(case(c_fpca={"overall_error": 10.9}), "small loss") == "holds in part"


def test_cases_in_which_nothing_is_left_out_prove_nothing():
    empty = [replace(r, pca_harmed_error=1e-15) for r in case()]
    assert {claim.finding for claim in check_claims(empty)[1:]} == {"not run"}


def test_the_printed_sign_harms_the_harmed_group():
    theorem = check_claims([])[0]
    assert theorem.finding == "does not hold"
    printed, corrected, pca = (float(x) for x in re.findall(r"-?\d+\.\d\d", theorem.numbers))
    assert corrected < pca < printed


@pytest.mark.slow
@needs_data
def test_claims_on_tcred(tmp_path):
    results = run_jobs(plan(["tcred"]), tmp_path)
    claims = {(c.variant, c.statement): c for c in check_claims(results)}
    by_start = {(v, s[:20]): c for (v, s), c in claims.items()}
    lowest = by_start["unbalanced", "u-FPCA has the lowest"[:20]]
    assert lowest.finding == "holds"
    assert "TCRED r = 1, 2 no projection" in lowest.numbers
    mofpca = by_start["unbalanced", "On TCRED at r = 4, 5"]
    assert mofpca.finding == "holds in part"
    assert "r = 4: 0.036 against" in mofpca.numbers
    assert "also at TCRED r = 17, 18, 19, 20" in mofpca.numbers
    assert all(c.finding == "holds" for c in claims.values() if "no group is worse" in c.statement)
    for row in timing(results):
        assert row["golden_eigensolves"] > 4 * row["exact_eigensolves"]
        if row["method"] == "c-fpca":
            assert row["exact_largest_excess"] < 1e-12 < row["golden_largest_excess"]


# -- the command -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_command_runs_and_resumes(tiny, tmp_path, capsys):
    folder = tmp_path / "here"
    words = ["--dataset", "tiny", "--method", "pca", "--method", "c-fpca", "--out", str(folder)]
    for _ in range(2):
        assert main(words) == 0
        assert f"files written to {folder}" in capsys.readouterr().out
    assert tiny == [False, True]
    assert (folder / "figures" / "groups_tiny_balanced.svg").exists()


def test_command_refuses_before_computing(tmp_path, capsys):
    assert main(["--dataset", "adult", "--out", str(tmp_path / "new")]) == 2
    assert "dataset 'adult' not known: choose from tcred, lfw" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["--dataset", "lsac", "--out", str(tmp_path / "file")]) == 2
    assert "file' cannot be written" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_command_names_the_data_file_that_was_altered(tmp_path, monkeypatch, capsys):
    (tmp_path / "lsac.csv").write_text("1,2,3")
    monkeypatch.setenv("FAIRPCA_DATA", str(tmp_path))
    assert main(["--dataset", "lsac", "--method", "pca", "--out", str(tmp_path / "out")]) == 2
    assert "lsac.csv" in capsys.readouterr().err


def test_only_public_names_of_the_package_are_used():
    root = Path(reproduction.__file__).parent
    modules = "".join(path.read_text("utf-8") for path in root.rglob("*.py"))
    imported = re.findall(r"^\s*(?:from|import) (fairpca[\w.]*)(?: import (.*))?$", modules, re.M)
    assert len(imported) > 10
    assert not [line for line in imported if re.search(r"\b_(?!_)", " ".join(line))]
