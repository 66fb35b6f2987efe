"""Audits of rows with missing values."""

import numpy as np
import polars as pl
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, FairPCACV, GroupMoments, audit, audit_model
from fairpca.datasets import load_checkup
from fairpca.report.sentences import left_out


def table(n=1600, harm=1.0, seed=0):
    """Two groups of unlike size; columns of group b vary ``harm`` times as much."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(["a", "b"], n, p=[0.7, 0.3])
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, 6)) + 0.5 * rng.normal(size=(n, 6))
    X[groups == "b"] += (harm - 1) * rng.normal(size=(np.sum(groups == "b"), 6))
    return X, groups


def with_holes(X, groups, of_b=0.4, of_a=0.05, seed=1):
    rng = np.random.default_rng(seed)
    shares = np.where(groups == "b", of_b, of_a)[:, None]
    return np.where(rng.random(X.shape) < shares, np.nan, X)


def figures(result):
    return np.array(
        [[g.baseline.error, g.baseline.gap.value, g.change.value] for g in result.groups]
    )


def test_complete_rows_are_audited_as_without_it():
    X, groups = table()
    fair = FairPCACV(2)
    plain = audit(fair, X, groups)
    available = audit(fair, X, groups, missing="available")
    np.testing.assert_array_equal(figures(available), figures(plain))
    assert available.groups[0].better_off == plain.groups[0].better_off


def test_missing_values_are_refused_by_default():
    X, groups = table()
    holes = with_holes(X, groups)
    with pytest.raises(ValueError, match="missing='available'"):
        audit(FairPCACV(2), holes, groups)
    with pytest.raises(ValueError, match="missing='available'"):
        audit_model(PCA(2).fit(X), holes, groups)


def test_rows_and_moments_agree():
    X, groups = table(harm=1.6)
    holes = with_holes(X, groups)
    frame = pl.DataFrame({f"x{j}": holes[:, j] for j in range(6)} | {"g": groups})
    nulls = frame.with_columns(pl.selectors.numeric().fill_nan(None))
    rows = audit(FairPCA(2), holes, groups, missing="available")
    moments = GroupMoments.from_data(holes, groups, folds=10, missing="available")
    batches = iter(nulls.to_arrow().to_batches(300))
    streamed = audit(FairPCA(2), batches, "g", missing="available")
    for other in (audit(FairPCA(2, missing="available"), moments), streamed):
        errors = [[g.baseline.error, g.alternative.error] for g in other.groups]
        expected = [[g.baseline.error, g.alternative.error] for g in rows.groups]
        np.testing.assert_allclose(errors, expected, rtol=1e-8)


def test_a_gap_that_filling_in_hides_is_shown():
    """The check-up table, of which the gap is known, with many values of older people deleted."""
    people = load_checkup()
    X = np.asarray(people.data, float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    groups = np.asarray(people.sensitive_features)
    old = "75 and older"
    truth = audit(FairPCA(5), X, groups).group(old).baseline.gap.value
    shown = []
    hidden = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        shares = np.where(groups == old, 0.3, 0.05)[:, None]
        holes = np.where(rng.random(X.shape) < shares, np.nan, X)
        result = audit(FairPCA(5), holes, groups, missing="available")
        shown.append(result.group(old).baseline.gap.value)
        filled = np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes)
        hidden.append(audit(FairPCA(5), filled, groups).group(old).baseline.gap.value)
    assert np.mean(shown) == pytest.approx(truth, abs=0.06)
    assert np.mean(hidden) < truth - 0.1


def test_a_fixed_model_is_judged_by_the_values_that_are_there():
    X, groups = table(3000, harm=1.6)
    model = make_pipeline(StandardScaler(), PCA(2)).fit(X)
    whole = audit_model(model, X, groups)
    errors = []
    for seed in range(12):
        holes = with_holes(X, groups, seed=seed)
        result = audit_model(model, holes, groups, missing="available")
        assert result.verdict.case == whole.verdict.case
        errors.append([g.baseline.error for g in result.groups])
    expected = [g.baseline.error for g in whole.groups]
    np.testing.assert_allclose(np.mean(errors, axis=0), expected, rtol=0.04)


def test_medians_are_those_of_complete_rows():
    X, groups = table()
    holes = with_holes(X, groups, of_b=0.3)
    complete = np.isfinite(holes).all(axis=1)
    model = PCA(2).fit(X)
    available = audit_model(model, holes, groups, missing="available")
    alone = audit_model(model, X[complete], groups[complete])
    for one, other in zip(available.groups, alone.groups, strict=True):
        assert one.baseline.robust.median == pytest.approx(other.baseline.robust.median)
    nobody = with_holes(X, groups, of_b=0.7, of_a=0.05)
    assert audit_model(model, nobody, groups, missing="available").groups[0].better_off is None


def test_what_is_missing_is_said_for_each_group():
    X, groups = table()
    holes = with_holes(X, groups)
    result = audit(FairPCA(2), holes, groups, missing="available")
    shares = {g.label: g.share_missing for g in result.groups}
    expected = {g: np.isnan(holes[groups == g]).mean() for g in ("a", "b")}
    assert shares == pytest.approx(expected)
    assert result.provenance.n_complete == np.isfinite(holes).all(axis=1).sum()
    assert f"{expected['b']:.1%} of those of b" in " ".join(left_out(result))


def test_models_that_are_not_linear_need_complete_rows():
    X, groups = table()
    holes = with_holes(X, groups)
    pair = (lambda rows: rows[:, :2], lambda scores: np.zeros((len(scores), 6)))
    with pytest.raises(ValueError, match="linear projections only"):
        audit_model(pair, holes, groups, missing="available")
