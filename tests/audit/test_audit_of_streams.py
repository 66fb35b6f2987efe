"""Audits of streams: those of their moments by fold, and names of columns in place of values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import NMF, PCA, FactorAnalysis, KernelPCA
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairPCA, FairPCACV, GroupMoments, audit, audit_model
from fairpca.metrics import group_reconstruction_errors, group_separation, probe_groups

pa = pytest.importorskip("pyarrow", reason="streams need pyarrow (the extra fairpca[arrow])")
duckdb = pytest.importorskip("duckdb")
pl = pytest.importorskip("polars")

rng = np.random.default_rng(3)
SEX = np.where(rng.random(400) < 0.3, "f", "m")
X = rng.normal(size=(400, 5)) * np.where(SEX == "f", 1.0, 2.0)[:, None] ** np.arange(-2, 3)
WEIGHTS = np.arange(400) % 4 + 0.5
HOMES = np.arange(400) // 2
COLUMNS = list("abcde")
FRAME = pd.DataFrame(X, columns=COLUMNS).assign(sex=SEX, w=WEIGHTS, home=HOMES)
TABLE = pa.Table.from_pandas(FRAME, preserve_index=False)
NAMES = {"sample_weight": "w", "units": "home"}
VALUES = {"sample_weight": WEIGHTS, "units": HOMES}
QUICK = {"ranks": [1, 2], "n_points": 3}
STREAMS = {
    "duckdb": lambda: duckdb.from_arrow(TABLE),
    "reader": lambda: TABLE.to_reader(90),
    "lazy": lambda: pl.from_arrow(TABLE).lazy(),
    "batches": lambda: iter(TABLE.to_batches(max_chunksize=70)),
}


def assert_same_figures(found, expected):
    for a, b in zip(found.groups, expected.groups, strict=True):
        assert (a.label, a.n, a.n_units, a.judged) == (b.label, b.n, b.n_units, b.judged)
        assert a.baseline.error == pytest.approx(b.baseline.error)
        assert a.baseline.gap_estimate == pytest.approx(b.baseline.gap_estimate)
        assert tuple(a.change) == pytest.approx(tuple(b.change))
    assert tuple(found.overall.change) == pytest.approx(tuple(expected.overall.change))


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_audited_as_its_moments_by_fold(name):
    found = audit(FairPCA(2), STREAMS[name](), "sex", **NAMES, **QUICK)
    moments = GroupMoments.from_data(X, SEX, WEIGHTS, units=HOMES, folds=10)
    assert_same_figures(found, audit(FairPCA(2), moments, **QUICK))
    assert_same_figures(found, audit(FairPCA(2), FRAME, "sex", **NAMES, **QUICK))
    assert found.provenance.weighted
    assert list(found.provenance.feature_names) == COLUMNS
    assert list(found.provenance.group_columns) == ["sex"]


def test_figures_that_need_rows_are_named():
    found = audit(FairPCA(2), FRAME.drop(columns=["w", "home"]), "sex", **QUICK)
    assert not found.provenance.not_computed
    stream = audit(FairPCA(2), TABLE.drop(["w", "home"]).to_reader(), "sex", **QUICK)
    assert "medians and trimmed means" in stream.provenance.not_computed
    assert "medians and trimmed means" in stream.to_dict()["provenance"]["not_computed"]
    assert stream.outcomes is stream.rows is None
    assert all(row.baseline.robust is row.better_off is None for row in stream.groups)
    assert stream.leakage.baseline == pytest.approx(found.leakage.baseline)


@pytest.mark.parametrize("standardize", [False, True])
def test_a_linear_model_is_judged_by_moments(standardize):
    model = FairPCA(2, standardize=standardize).fit(X[::2], sensitive_features=SEX[::2])
    expected = audit_model(model, X, SEX, **VALUES)
    for make in STREAMS.values():
        found = audit_model(model, make(), "sex", **NAMES)
        assert_same_figures(found, expected)
        assert found.column_errors == pytest.approx(expected.column_errors)
        assert found.outside is None
        assert found.provenance.not_computed
    assert_same_figures(audit_model(model, FRAME, "sex", **NAMES), expected)


def test_rows_fitted_to_are_recognised():
    plain = TABLE.drop(["w", "home"])
    model = FairPCA(2).fit(plain.to_reader(), sensitive_features="sex")
    assert audit_model(model, plain.to_reader(), "sex").on_rows_fitted_to
    assert not audit_model(model, plain.slice(50).to_reader(), "sex").on_rows_fitted_to


def test_pipelines_of_fitted_steps_see_batch_by_batch():
    plain = FRAME.drop(columns=["w", "home"])
    model = make_pipeline(StandardScaler(), PCA(2)).fit(plain[COLUMNS])
    expected = audit_model(model, plain[COLUMNS], SEX)
    found = audit_model(model, iter([plain[:150], plain[150:]]), "sex")
    assert_same_figures(found, expected)


def halves(X):
    return np.asarray(X)[:, :2] ** 3


def back(scores):
    return np.cbrt(scores) @ np.eye(2, 5)


MODELS = {
    "no projection": lambda X: NMF(2, init="nndsvda", max_iter=2000, tol=1e-12).fit(X),
    "a pipeline": lambda X: make_pipeline(
        StandardScaler(), KernelPCA(2, kernel="rbf", fit_inverse_transform=True)
    ).fit(X),
    "functions": lambda X: (halves, back),
    "as many scores as columns": lambda X: (np.round, np.asarray),
}


@pytest.mark.parametrize("name", MODELS)
def test_any_model_is_judged_batch_by_batch(name):
    positive = FRAME.assign(**np.abs(FRAME[COLUMNS]))
    model = MODELS[name](positive[COLUMNS])
    expected = audit_model(model, positive[COLUMNS], SEX, **VALUES)
    table = pa.Table.from_pandas(positive, preserve_index=False)
    found = audit_model(model, table.to_reader(90), "sex", **NAMES)
    assert_same_figures(found, expected)
    assert found.n_components == expected.n_components
    assert found.column_errors == pytest.approx(expected.column_errors)
    assert found.leakage.baseline == pytest.approx(expected.leakage.baseline)
    assert found.provenance.not_computed


def test_what_is_refused():
    plain = TABLE.drop(["w", "home"])
    with pytest.raises(TypeError, match="rows in memory"):
        audit(make_pipeline(StandardScaler(), PCA(2)), plain.to_reader(), "sex")
    with pytest.raises(ValueError, match="needs all rows at once"):
        audit(FairPCACV(2, cv=StratifiedKFold(3)), plain.to_reader(), "sex")
    with pytest.raises(TypeError, match="sensitive_features is missing"):
        audit(FairPCA(2), plain.to_reader())
    model = FairPCA(2).fit(X, sensitive_features=SEX)
    with pytest.raises(ValueError, match="features"):
        audit_model(model, plain.drop(["a"]).to_reader(), "sex")
    with pytest.raises(TypeError, match="by least squares on all rows"):
        audit_model(FactorAnalysis(2).fit(FRAME[COLUMNS]), plain.to_reader(), "sex")
    with pytest.raises(TypeError, match="cannot be set beside them"):
        audit_model((plain.to_reader(), X), sensitive_features="sex")
    one = TABLE.filter(pa.compute.equal(TABLE["sex"], "f")).drop(["w", "home"])
    with pytest.raises(ValueError, match="group"):
        audit_model(model, one.to_reader(), "sex")


def test_metrics_take_names_of_columns():
    plain = FRAME.drop(columns=["home"])
    model = FairPCA(2).fit(plain, sensitive_features="sex", sample_weight="w")
    expected = group_reconstruction_errors(model, FRAME[COLUMNS], SEX, sample_weight=WEIGHTS)
    found = group_reconstruction_errors(model, plain, "sex", sample_weight="w")
    assert found == pytest.approx(expected)
    apart = group_separation(model, FRAME[COLUMNS], SEX, sample_weight=WEIGHTS)
    named = group_separation(model, plain, "sex", sample_weight="w")
    assert named.centroid_share == pytest.approx(apart.centroid_share)
    for reader in (TABLE.drop(["home"]).to_reader(50), pl.from_arrow(TABLE.drop(["home"])).lazy()):
        found = group_separation(model, reader, "sex", sample_weight="w")
        assert found.discriminant_auc == pytest.approx(apart.discriminant_auc)
    assert group_reconstruction_errors(
        model, TABLE.drop(["home"]).to_reader(50), "sex", sample_weight="w"
    ) == pytest.approx(expected)
    probe = probe_groups(None, plain.drop(columns="w"), "sex", cv=3, random_state=0)
    assert probe == probe_groups(None, FRAME[COLUMNS], SEX, cv=3, random_state=0)
