"""A report on rows that are not kept in memory says what one on rows in memory says."""

from __future__ import annotations

import json

import numpy as np
import pytest
from helpers.marks import slow_case

pa = pytest.importorskip("pyarrow", reason="files need pyarrow")
import pyarrow.parquet as pq  # noqa: E402
from helpers.command import run  # noqa: E402

from fairpca import FairPCA  # noqa: E402
from fairpca._audit.rows import rows_of  # noqa: E402
from fairpca._audit.run import AuditSettings, run_audit  # noqa: E402
from fairpca._moments import prepare as _preparation  # noqa: E402
from fairpca._moments.prepare import prepare_table  # noqa: E402
from fairpca._tables import table as files_module  # noqa: E402
from fairpca._tables.choices import Choices  # noqa: E402

N = 9000


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(files_module, "_BATCH_ROWS", 700)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Sorted by group: neighbouring rows are alike, as they often are in files."""
    rng = np.random.default_rng(0)
    sex = np.sort(rng.choice(["a", "b", "c"], N, p=[0.6, 0.3, 0.1]))
    X = rng.normal(size=(N, 5)) * np.where(sex == "b", 2, 1)[:, None] * [3, 2, 1, 1, 1]
    X = X @ rng.normal(size=(5, 5))
    columns = {f"x{j}": X[:, j] for j in range(5)}
    table = pa.table({**columns, "sex": sex, "ward": rng.choice(["u", "v"], N)})
    file = tmp_path_factory.mktemp("data") / "d.parquet"
    pq.write_table(table, file)
    return file


def audited(path, choices, estimator, *, streamed, seed=0, **settings):
    prepared = prepare_table(path, choices, rows_up_to=1e5 if streamed else 1e9)
    assert prepared.streamed == streamed
    settings = AuditSettings(n_points=3, random_state=seed, **settings)
    return run_audit(rows_of(prepared, seed), estimator, settings)


@pytest.mark.parametrize(
    ("groups", "options"),
    [
        (["sex"], {}),
        slow_case(["sex"], {"normalize": True}),
        slow_case(["sex", "ward"], {"min_group_size": 600, "small_groups": "merge"}),
    ],
)
def test_streamed_audit_is_that_of_rows_in_memory(path, groups, options):
    choices, model = Choices(groups, encode=True), FairPCA(2, **options)
    kept, streamed = (audited(path, choices, model, streamed=how) for how in (False, True))
    assert streamed.groups == kept.groups
    assert streamed.group_sizes == kept.group_sizes
    np.testing.assert_allclose(streamed.pca.group_errors, kept.pca.group_errors, rtol=1e-10)
    np.testing.assert_allclose(streamed.fair.group_errors, kept.fair.group_errors, rtol=1e-10)
    np.testing.assert_allclose(streamed.ranks.fair, kept.ranks.fair, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(streamed.loadings.fair, kept.loadings.fair, atol=1e-7)
    a, b = streamed.cross_validation, kept.cross_validation  # other folds: another seed's numbers
    np.testing.assert_allclose(a.pca.group_errors, b.pca.group_errors, rtol=0.01)
    np.testing.assert_allclose(a.fair.group_errors, b.fair.group_errors, rtol=0.04)
    found, expected = streamed.influence.pca, kept.influence.pca
    assert found.left_out.tolist() == expected.left_out.tolist()
    assert found.n_half == pytest.approx(expected.n_half, rel=0.05)
    np.testing.assert_allclose(found.disparity, expected.disparity, rtol=0.02)
    assert len(set(found.rows[:20]) & set(expected.rows[:25])) >= 15
    width = np.ptp(kept.bootstrap.pca)
    np.testing.assert_allclose(streamed.bootstrap.pca, kept.bootstrap.pca, atol=0.1 * width)


def test_sampled_scores_are_those_of_their_rows(path):
    choices, model = Choices(["sex"], columns=[f"x{j}" for j in range(5)]), FairPCA(2)
    streamed = audited(path, choices, model, streamed=True, n_folds=2, n_resamples=20)
    whole = prepare_table(path, choices, rows_up_to=1e9)
    moments, scale = whole.moments.standardize()
    X = np.column_stack([column.to_numpy() for column in whole.X.columns]) / scale
    model.fit_moments(moments)
    rows = streamed.scores.rows
    expected = (X[rows] - model.mean_) @ model.components_.T
    np.testing.assert_allclose(streamed.scores.fair, expected, atol=1e-8)
    labels = np.array(streamed.groups)[streamed.scores.group]
    assert labels.tolist() == whole.groups[rows].tolist()
    assert np.bincount(streamed.scores.group).tolist() == [200, 200, 200]
    inside = rows[streamed.scores.group == 0] / streamed.group_sizes[0]
    assert 0.4 < inside.mean() < 0.6


def test_seed_decides_everything(path):
    quick = {"streamed": True, "n_folds": 3, "n_resamples": 20, "ranks": [2]}
    model = FairPCA(2, max_error_increase=0.02, cv=3)
    first, again, other = (
        audited(path, Choices(["ward"]), model, seed=seed, **quick) for seed in (1, 1, 2)
    )
    assert first.status == "stopped by cross-validation"
    assert first.to_dict() == again.to_dict()
    assert first.bootstrap.pca != other.bootstrap.pca


@pytest.mark.slow
def test_report_on_more_rows_than_are_kept(path, tmp_path, monkeypatch):
    pytest.importorskip("altair")
    arguments = [
        "report",
        str(path),
        "-g",
        "ward",
        "--drop",
        "sex",
        "-r",
        "2",
        "--json",
        "out.json",
        "-q",
    ]
    found = []
    for limit in (1e9, 1e5):
        monkeypatch.setattr(_preparation, "MOST_BYTES_IN_MEMORY", limit)
        run(*arguments, cwd=tmp_path)
        found.append(json.loads((tmp_path / "out.json").read_text("utf-8")))
        said = "Too many rows for memory" in (tmp_path / "report.html").read_text("utf-8")
        assert said == (limit < 1e6) == found[-1]["data"]["streamed"]
    kept, streamed = found
    assert streamed["pca"]["group_errors"] == pytest.approx(kept["pca"]["group_errors"])
    assert streamed["data"]["code"].startswith("# Reads all rows into memory")
