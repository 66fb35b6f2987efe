"""``audit_model``: a fitted model as it is, beside plain PCA."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.decomposition import PCA, IncrementalPCA, KernelPCA, TruncatedSVD
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairColumns, FairPCA, audit_model
from fairpca.metrics import group_reconstruction_errors

SPREADS = {"few": np.array([1, 1, 2.5, 2, 0.5]), "many": np.array([3, 2.5, 1, 1, 0.5])}


def people(n=(300, 1200), seed=0):
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(["few", "many"], n))
    X = rng.normal(size=(len(groups), 5)) * np.array([SPREADS[g] for g in groups])
    return X + 0.2 * (groups == "few")[:, None], groups


def test_errors_are_those_of_the_metrics():
    X, _groups = people()
    new, new_groups = people(seed=1)
    model = make_pipeline(StandardScaler(), PCA(2)).fit(X)
    result = audit_model(model, new, new_groups)
    errors = group_reconstruction_errors(model, new, new_groups)
    shares = group_reconstruction_errors(model, new, new_groups, relative_errors=True)
    for row in result.groups:
        assert row.baseline.error == pytest.approx(errors[row.label])
        assert row.baseline.share == pytest.approx(shares[row.label])
    gap = result.group("few").baseline.gap
    assert gap.value == pytest.approx(errors["few"] / errors["many"] - 1)
    assert gap.low < gap.value < gap.high
    assert result.column_errors.sum(axis=1) == pytest.approx(list(errors.values()))
    assert result.overall.error == pytest.approx(np.mean([errors[g] for g in new_groups]))


def test_a_gap_is_a_gap_and_no_remedy_is_tried():
    X, groups = people()
    result = audit_model(PCA(2).fit(X), X, groups)
    assert (result.verdict.case.name, result.verdict.group) == ("GAP", "few")
    assert result.verdict.remedy.name == "NOT_TRIED"
    assert not result.provenance.fitted_here
    assert result.provenance.judged == "PCA(n_components=2)"


def test_pca_stands_beside_a_fair_model():
    X, groups = people()
    fair = FairPCA(2).fit(X, sensitive_features=groups)
    result = audit_model(fair, X, groups)
    assert result.verdict.case.name == "NO_GAP"
    assert result.group("few").change.low > 0  # PCA would be worse for them
    assert result.group("many").change.high < 0
    assert audit_model(PCA(2).fit(X), X, groups).group("few").change.direction == 0


def test_rows_of_the_fit_and_rows_far_from_it_are_told():
    X, groups = people()
    new, new_groups = people(seed=1)
    for model in (PCA(2).fit(X), FairPCA(2).fit(X, sensitive_features=groups)):
        assert audit_model(model, X, groups).on_rows_fitted_to
        other = audit_model(model, new, new_groups)
        assert not other.on_rows_fitted_to
        assert other.outside == 0
        new[:30, 1] = 500
        assert audit_model(model, new, new_groups).outside == pytest.approx(0.02)
        new, new_groups = people(seed=1)
    assert audit_model(TruncatedSVD(2).fit(X), X, groups).outside is None


@pytest.mark.parametrize("standardize", [False, True])
def test_kept_columns_are_judged_by_what_they_rebuild(standardize):
    X, groups = people()
    new, new_groups = people(seed=1)
    model = FairColumns(2, standardize=standardize).fit(X, sensitive_features=groups)
    result = audit_model(model, new, new_groups)
    rest = (new - model.inverse_transform(model.transform(new))) / model.scale_
    errors = (rest**2).sum(axis=1)
    for row in result.groups:
        assert row.baseline.error == pytest.approx(errors[new_groups == row.label].mean())
    assert result.overall.change.value < 0  # PCA of this rank loses less overall
    assert result.provenance.standardized == standardize
    by_group = [row.baseline.error for row in result.groups]
    assert result.column_errors.sum(axis=1) == pytest.approx(by_group)
    with pytest.raises(NotFittedError):
        audit_model(FairColumns(2), new, new_groups)
    with pytest.raises(ValueError, match="features"):
        audit_model(model, new[:, :4], new_groups)


def test_all_components_are_no_pass():
    X, groups = people()
    result = audit_model(PCA().fit(X), X, groups)
    assert result.verdict.case.name == "CANNOT_JUDGE"
    assert result.verdict.reason.name == "NOTHING_COMPRESSED"


def test_intervals_shrink_with_more_rows():
    X, _groups = people()
    model = IncrementalPCA(2).fit(X)
    small = audit_model(model, *people((75, 300), seed=2)).verdict.gap
    large = audit_model(model, *people((1200, 4800), seed=2)).verdict.gap
    ratio = (np.log1p(small.high) - np.log1p(small.low)) / (
        np.log1p(large.high) - np.log1p(large.low)
    )
    assert ratio == pytest.approx(4, rel=0.35)


def test_weights_and_probes_and_outcomes():
    X, groups = people()
    y, weights = (X[:, 0] > 0).astype(int), np.ones(len(X))
    weights[::5] = 0
    model = make_pipeline(StandardScaler(), PCA(2), LogisticRegression()).fit(X, y)
    result = audit_model(model, X, groups, sample_weight=weights, y=y)
    assert [one.name for one in result.outcomes] == ["scores", "pca", "features"]
    assert len(result.leakage.baseline_probes) == 2
    assert result.left_out[0].n_rows == 300
    without = audit_model(model, X[weights > 0], groups[weights > 0])
    assert without.verdict.gap == pytest.approx(result.verdict.gap)
    assert not without.leakage.baseline_probes
    plain = result.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_what_cannot_be_judged_is_refused():
    X, groups = people()
    with pytest.raises(TypeError, match="sensitive_features is missing"):
        audit_model(PCA(2).fit(X), X)
    with pytest.raises(TypeError, match="KernelPCA has no components_ and mean_"):
        audit_model(KernelPCA(2).fit(X[:50]), X, groups)
    with pytest.raises((TypeError, ValueError), match="not fitted"):
        audit_model(PCA(2), X, groups)
    with pytest.raises(ValueError, match="same columns"):
        audit_model(PCA(2).fit(X), X[:, :3], groups)


def test_a_model_that_standardises_is_said_to():
    X, groups = people()
    for standardize in (False, True):
        model = FairPCA(2, standardize=standardize).fit(X, sensitive_features=groups)
        assert audit_model(model, X, groups).provenance.standardized == standardize
