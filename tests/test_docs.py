"""Pages name files and functions that exist, and their code prints what they show."""

from __future__ import annotations

import contextlib
import csv
import importlib.util
import io
import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

from fairpca import audit
from fairpca.datasets import load_rand_health

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "fairpca"
PAGES = ["architecture", "contributing", "recipes", "releasing"]
IS_PATH = re.compile(r"[\w.*/-]+(/|\.(py|rst|md|txt|toml|cff|yml|csv))")


CODE = {
    ".md": re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE),
    ".rst": re.compile(r"^\.\. code-block:: (python|text)\n\n((?:   .*\n|\n)+)", re.MULTILINE),
}


def literals(page: str) -> set[str]:
    text = (ROOT / "docs" / f"{page}.rst").read_text(encoding="utf-8")
    return {" ".join(found.split()) for found in re.findall(r"``([^`]+)``", text)}


@pytest.mark.parametrize("page", PAGES)
def test_files_exist(page):
    paths = [name for name in literals(page) if IS_PATH.fullmatch(name)]
    missing = [p for p in paths if not any(ROOT.glob(p)) and not any(PACKAGE.glob(p))]
    assert paths
    assert missing == []


@pytest.mark.parametrize("page", ["architecture", "recipes"])
def test_names_are_in_the_code(page):
    words = set()
    for file in PACKAGE.rglob("*.py"):
        words |= set(re.findall(r"\w+", file.read_text(encoding="utf-8")))
    others = [name for name in literals(page) if not IS_PATH.fullmatch(name)]
    dotted = [name for name in others if re.fullmatch(r"\w+(\.\w+)*", name)]
    names = {part for name in dotted for part in name.split(".")}
    assert {"solve", "Solution"} <= names
    assert names - words == set()


@pytest.mark.parametrize("page", ["README.md", "docs/getting_started.rst", "docs/fairness.rst"])
def test_code_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = ROOT / page
    known, printed, compared = {}, "", 0
    for kind, block in CODE[path.suffix].findall(path.read_text(encoding="utf-8")):
        text = textwrap.dedent(block).strip()
        if kind == "text":
            assert printed.strip() == text
            compared += 1
        else:
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(text, known)
            printed = stream.getvalue()
    assert compared


def table(name, *key):
    """The rows of a table of the docs, by the columns that tell them apart."""
    with (ROOT / "docs" / name).open(encoding="utf-8") as file:
        return {tuple(row[column] for column in key): row for row in csv.DictReader(file)}


def words(page):
    return " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())


def test_what_equalised_odds_does_is_told_of_every_table():
    rows, text = table("benchmarks_outcomes.csv", "data", "method"), words("fairness.rst")
    for data in ("compas", "german", "adult"):
        plain, odds = rows[data, "PLS"], rows[data, "FairPLS, equalised odds"]
        gaps = [(plain[gap], odds[gap]) for gap in ("TPR gap", "FPR gap")]
        assert sorted(after < before for before, after in gaps) == [False, True]
        for before, after in gaps:
            assert f"from {before[1:]} to {after[1:]}" in text
    parity = rows["compas", "FairPLS, demographic parity"]
    figures = [parity[name][1:] for name in ("TPR gap", "FPR gap", "AUC of the target")]
    assert f"({', '.join(figures)})" in text


def test_the_cost_of_folds_is_that_of_the_table():
    rows, text = table("benchmarks_folds.csv", "part"), words("options.rst")
    few, many, three = (rows[part,] for part in ("1000 rows", "100000 rows", "three groups"))
    assert f"{float(many['ratio']):.1f} times as long as a plain fit" in text
    assert f"{float(few['ratio']):.1f} times as long with 1,000 rows" in text
    assert f"{1000 * float(few['seconds']):.0f} milliseconds" in text
    assert f"With three groups it is {float(three['ratio']):.0f} times" in text


def test_where_cross_validation_does_not_help_is_told():
    rows, text = table("people_to_come.csv", "part", "r", "method"), words("people_to_come.rst")

    def figures(part, r, method):
        row = rows[part, r, method]
        return row["harmed group"][1:], row["other group"][1:], row["disparity"]

    for part, r, sentence in (
        ("Biodeg", "10", "pays {1} for a gain of {0}. Without ``cv`` it pays {4} for {3}."),
        ("RAND health", "4", "a gain of {0} for {1}, in place of {3} for {4}."),
        ("TCRED", "10", "half of the gain, {0} in place of {3}. The disparity in the other half is "
         "{2} on average, more than PCA's {8}; without ``cv`` it is {5}."),
    ):  # fmt: skip
        methods = "efficient, cv=10", "efficient", "PCA"
        shown = [figure for method in methods for figure in figures(part, r, method)]
        assert sentence.format(*shown) in text


def test_every_example_has_a_picture_and_a_place():
    """A script without a figure gets the gallery's placeholder; one without a place stops it."""
    scripts = {path.name: path.read_text("utf-8") for path in (ROOT / "examples").glob("*.py")}
    assert [name for name, text in scripts.items() if "plt.show()" not in text] == []
    order = (ROOT / "docs" / "gallery_order.py").read_text("utf-8")
    assert sorted(re.findall(r'"(\w+\.py)"', order)) == sorted(scripts)


@pytest.mark.slow
def test_table_of_the_readme_is_the_report():
    people = load_rand_health()
    found = audit(people.data, people.sensitive_features)
    held_out, readme = found.cross_validation, (ROOT / "README.md").read_text(encoding="utf-8")
    line = r"^\| .* \((\d+)\) \| ([\d.]+) \| ([\d.]+) \| (.*) \|$"
    rows = re.findall(line, readme, re.MULTILINE)
    assert [int(size) for size, *_ in rows] == found.group_sizes
    for g, (_, before, after, words) in enumerate(rows):
        R = held_out.pca.group_errors[g]
        assert (before, after) == (f"{R:.2f}", f"{held_out.fair.group_errors[g]:.2f}")
        change = found.changes.groups[g]
        shown = [int(n) for n in re.findall(r"\d+", words)]
        ends = sorted(abs(round(100 * end / R)) for end in (change.low, change.high))
        assert shown == [abs(round(100 * change.estimate / R)), *ends]
    D = held_out.pca.disparity, abs(held_out.fair.disparity)
    assert f"| difference | {D[0]:.2f} | {D[1]:.2f} |" in readme


@pytest.mark.slow
def test_table_of_the_guide_is_what_the_example_computes():
    pytest.importorskip("matplotlib").use("Agg")
    guide = (ROOT / "docs" / "fairness.rst").read_text(encoding="utf-8")
    known = {}
    exec((ROOT / "examples" / "which_fairness.py").read_text("utf-8"), known)
    for name, figures in zip(known["methods"], known["table"], strict=True):
        (shown,) = re.findall(rf"^{name}((?: +[-+.\d]+){{7}})$", guide, re.MULTILINE)
        np.testing.assert_allclose([float(x) for x in shown.split()], figures, atol=0.012)


def test_links_of_the_readme_are_addresses_on_pypi():
    """The build turns paths into addresses: PyPI has no files of ours."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hatch_build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hatch_build)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links, made = (re.findall(r"\]\(([^)]*)\)", t) for t in (readme, hatch_build.absolute(readme)))
    paths = [link for link in links if not link.startswith("https://")]
    assert "docs/_static/report.png" in paths
    assert all((ROOT / path).exists() for path in paths)
    assert len(made) == len(links)
    assert all(link.startswith("https://") for link in made)
    assert f"{hatch_build.PICTURES}docs/_static/report.png" in made
