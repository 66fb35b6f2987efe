"""``audit_model``: a fitted model as it is, beside plain PCA."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import (
    NMF,
    PCA,
    FactorAnalysis,
    FastICA,
    IncrementalPCA,
    KernelPCA,
    TruncatedSVD,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.manifold import Isomap
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

from fairpca import FairColumns, FairPCA, audit, audit_model
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
    with pytest.raises(NotFittedError, match="fit_inverse_transform"):
        audit_model(KernelPCA(2).fit(X[:50]), X, groups)
    with pytest.raises(TypeError, match=r"Isomap has no inverse_transform.*\(encode, decode\)"):
        audit_model(Isomap(n_components=2).fit(X[:50]), X, groups)
    with pytest.raises(TypeError, match="the pair holds X already"):
        audit_model((X, X), X, groups)
    for rebuilt, said in ((X[:, :3], "shape"), (np.full(X.shape, np.nan), "NaN")):
        with pytest.raises(ValueError, match=said):
            audit_model((X, rebuilt), sensitive_features=groups)
    with pytest.raises((TypeError, ValueError), match="not fitted"):
        audit_model(PCA(2), X, groups)
    with pytest.raises(ValueError, match="same columns"):
        audit_model(PCA(2).fit(X), X[:, :3], groups)


def test_a_model_that_standardises_is_said_to():
    X, groups = people()
    for standardize in (False, True):
        model = FairPCA(2, standardize=standardize).fit(X, sensitive_features=groups)
        assert audit_model(model, X, groups).provenance.standardized == standardize


ANYBODYS = {
    "KernelPCA": KernelPCA(2, kernel="rbf", fit_inverse_transform=True),
    "FastICA": FastICA(2, random_state=0),
    "PLS": PLSRegression(2, scale=False),
    "NMF": make_pipeline(MinMaxScaler(clip=True), NMF(2, max_iter=2000)),
}


@pytest.mark.parametrize("name", ANYBODYS)
def test_anybodys_model_is_judged_by_what_it_rebuilds(name):
    X, _groups = people((60, 140))
    new, groups = people((60, 140), seed=1)
    model = clone(ANYBODYS[name]).fit(X, X[:, 0])
    scaler, step = (model[0], model[-1]) if name == "NMF" else (FunctionTransformer(), model)
    seen = scaler.transform(new)
    rebuilt = step.inverse_transform(step.transform(seen))
    squares = (seen - rebuilt) ** 2
    result = audit_model(model, new, groups, y=new[:, 0] > 0)
    for g, row in enumerate(result.groups):
        own = squares[groups == row.label]
        assert row.baseline.error == pytest.approx(own.sum(axis=1).mean())
        assert result.column_errors[g] == pytest.approx(own.mean(axis=0))
    assert result.n_components == 2
    assert result.loadings is None
    assert result.outside is None
    assert len(result.outcomes) == 3
    pair = audit_model((seen, rebuilt), sensitive_features=groups)
    assert pair.groups[0].baseline == result.groups[0].baseline
    functions = (step.transform, step.inverse_transform)
    assert audit_model(functions, seen, groups).groups == result.groups


def test_a_pair_says_what_the_model_does():
    X, groups = people()
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    model = PCA(2).fit(X)
    data = {"sensitive_features": groups, "sample_weight": weights}
    rebuilt = model.inverse_transform(model.transform(X))
    expected = audit_model(model, X, **data)
    for table in (X, pd.DataFrame(X)):
        result = audit_model((table, rebuilt), **data)
        # PCA loses as much with two components as this model.
        assert result.n_components == 2
        assert result.verdict.gap == pytest.approx(expected.verdict.gap)
        assert result.column_errors == pytest.approx(expected.column_errors)
        assert result.group("few").change == pytest.approx(expected.group("few").change)
    nothing = audit_model((X, X.copy()), sensitive_features=groups)
    assert nothing.verdict.reason.name == "NOTHING_COMPRESSED"


def test_scores_alone_are_rebuilt_without_the_rows_that_judge():
    X, groups = people((600, 1200))
    whole = PCA(2, whiten=True).fit(X)
    expected = audit_model(whole, X, groups)
    for model in (
        make_union(PCA(1), FunctionTransformer(lambda X: whole.transform(X)[:, 1:])),
        make_union(FastICA(2, random_state=0)),
    ):
        result = audit_model(model.fit(X), X, groups)
        for row, other in zip(result.groups, expected.groups, strict=True):
            # Scores of PCA span what PCA spans; they are rebuilt by nine tenths of the rows.
            assert row.baseline.error == pytest.approx(other.baseline.error, rel=0.01)
        assert result.overall.error > expected.overall.error
    factors = FactorAnalysis(2).fit(X)
    rebuilt = LinearRegression().fit(factors.transform(X), X).predict(factors.transform(X))
    result = audit_model(factors, X, groups)
    assert result.overall.error == pytest.approx(((X - rebuilt) ** 2).sum(axis=1).mean(), rel=0.01)


def test_a_model_with_a_gap_for_one_group_only_is_found_and_a_fair_one_passes():
    X, groups = people()
    rng = np.random.default_rng(0)
    noise = rng.normal(size=X.shape) * np.array([1.0, 2.0])[(groups == "few").astype(int)][:, None]
    harm = audit_model((X, X + noise), sensitive_features=groups)
    assert (harm.verdict.case.name, harm.verdict.group) == ("GAP", "few")
    assert harm.verdict.gap.value == pytest.approx(3, rel=0.2)
    even = audit_model((X, X + rng.normal(size=X.shape)), sensitive_features=groups)
    assert even.verdict.case.name == "NO_GAP"


def test_columns_named_by_integers():
    X, groups = people((60, 140))
    pipeline = make_pipeline(StandardScaler(), PCA(2))
    result = audit(pipeline, pd.DataFrame(X), groups, ranks=[2], n_points=2)
    assert list(result.provenance.feature_names) == ["x0", "x1", "x2", "x3", "x4"]
    expected = audit(pipeline, X, groups, ranks=[2], n_points=2)
    assert result.verdict.gap == pytest.approx(expected.verdict.gap)


@pytest.mark.parametrize("rates", [(0.05, 0.3), (0.2, 0.2)])
def test_the_headline_says_who_is_selected_less(rates):
    X, groups = people()
    X = np.random.default_rng(1).normal(size=X.shape)
    counts = {"few": round(300 * rates[0]), "many": round(1200 * rates[1])}
    y = np.zeros(len(X), int)
    for label, count in counts.items():
        y[np.flatnonzero(groups == label)[:count]] = 1
    result = audit_model(PCA(2).fit(X), X, groups, y=y)
    ratio = result.selected.impact_ratios["few"]
    assert ratio.value == pytest.approx(rates[0] / rates[1])
    headline = repr(result).splitlines()[0]
    assert "No gap beyond chance" in headline
    assert ("“few” is selected (“1”) 0.167 times as often" in headline) == (rates[0] < rates[1])
    assert (
        json.loads(json.dumps(result.to_dict()))["selected"]["impact_ratios"]["many"]["value"] == 1
    )
    nobody = audit_model(PCA(2).fit(X), X, groups, y=np.where(groups == "few", 0, y))
    assert nobody.outcomes is None  # no classifier can learn whom to select among the few
    assert nobody.selected.less == ["few"]
