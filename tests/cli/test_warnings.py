"""A fit in the shell says what the same fit says in Python, in the words of the shell."""

from __future__ import annotations

import re

import numpy as np
import pytest
from helpers.command import run
from helpers.data import make_groups
from helpers.many_groups import open_gap

from fairpca import DualityGapWarning, FairPCA, MinMaxPCA

pa = pytest.importorskip("pyarrow", reason="the command line needs the cli extra")
pytest.importorskip("typer")
import pyarrow.parquet as pq  # noqa: E402

from fairpca.cli._words import in_words_of_the_shell  # noqa: E402


def write(folder, X, groups):
    columns = {f"x{i}": column for i, column in enumerate(X.T)}
    pq.write_table(pa.table({**columns, "g": groups.tolist()}), folder / "d.parquet")


def fit(folder, *options):
    """What is printed, and the lines of it that warn."""
    words = ["fit", "d.parquet", "-g", "g", "--no-standardize", "-o", "m.safetensors"]
    lines = run(*words, *options, cwd=folder).stdout.splitlines()
    return lines, [line for line in lines if line.startswith("! ")]


@pytest.fixture
def levelled(tmp_path):
    """Groups that become alike only by becoming worse."""
    write(tmp_path, *make_groups(seed=1, alike=0.9))
    return tmp_path


@pytest.mark.parametrize("folds", [0, 5])
def test_levelling_down_is_said(levelled, folds):
    lines, warned = fit(levelled, "-r", 3, "--constraint", "none", "--cv", folds)
    assert len(warned) == 1
    assert warned[0].endswith(". --constraint pareto, the default, stops before that.")
    assert lines[0] == warned[0]  # before the errors
    assert fit(levelled, "-r", 3)[1] == []


@pytest.mark.parametrize("folds", [0, 5])
def test_a_limit_that_is_not_met_is_said(levelled, folds):
    _, (warned,) = fit(levelled, "-r", 3, "--max-disparity", 0.001, "--cv", folds)
    assert warned.startswith("! --max-disparity 0.001 is not met: ")
    assert "--constraint none" in warned
    assert "a larger -r" in warned


def test_a_small_group_that_steers_is_said(tmp_path):
    rng = np.random.default_rng(0)
    groups = np.repeat(["a", "b", "tiny"], [300, 300, 25])
    spreads = np.where(groups[:, None] == "tiny", [1, 1, 4, 4], [3, 3, 1, 1])
    write(tmp_path, rng.normal(size=(625, 4)) * spreads, groups)
    _, (warned,) = fit(tmp_path, "-r", 2)
    assert warned.startswith("! 'tiny' has only 25 rows and steers the projection: ")
    advice = re.search(r"Pass (--min-group-size 30) with (--small-groups ignore) to", warned)
    assert fit(tmp_path, "-r", 2, *" ".join(advice.groups()).split())[1] == []


def test_warnings_beside_a_model_on_standard_output(levelled):
    words = ["fit", "d.parquet", "-g", "g", "--no-standardize", "-r", 3, "--parity", "-o", "-"]
    done = run(*words, cwd=levelled, text=False)
    assert done.stderr.decode().startswith("fairpca: no group is better off")
    assert run(*words, "-q", cwd=levelled, text=False).stderr == b""


def test_advice_without_an_option_is_given_in_other_words():
    X, groups = open_gap()
    with pytest.warns(DualityGapWarning) as caught:
        MinMaxPCA(1).fit(X, sensitive_features=groups)
    said = [in_words_of_the_shell(str(w.message)) for w in caught]
    assert any(line.endswith(" Another -r may close it.") for line in said)
    X, groups = make_groups()
    with pytest.warns(RuntimeWarning, match="rounding of float64") as caught:
        FairPCA(1).fit(X * np.r_[1e9, np.ones(X.shape[1] - 1)], sensitive_features=groups)
    said = in_words_of_the_shell(str(caught[0].message))
    assert said.endswith("Leave out --no-standardize, or leave out this one with --drop.")
    limited = "Pass a smaller max_error_increase, or alpha=1 in its place, which is PCA."
    expected = "Pass a smaller --max-error-increase, or --alpha 1 in its place, which is PCA."
    assert in_words_of_the_shell(limited) == expected
