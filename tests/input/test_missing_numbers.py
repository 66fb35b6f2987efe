"""Medians in place of missing numbers, inside the folds."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from helpers.command import fails, run
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fairpca
from fairpca import FairPCA, GroupMoments, audit, load_model
from fairpca._audit.dealt import Dealt
from fairpca._audit.held_out import cross_fit
from fairpca._input.missing_numbers import MissingNumbers, medians_of

pd = pytest.importorskip("pandas")


@pytest.fixture
def people():
    rng = np.random.default_rng(0)
    groups = np.array(["a", "b", "b"] * 30)
    X = rng.gamma(2.0, size=(90, 4)) * [1, 2, 3, 4] * np.where(groups == "a", 2, 1)[:, None]
    X[rng.random(X.shape) < 0.2] = np.nan
    return pd.DataFrame(X, columns=list("wxyz")), groups


def test_folds_are_filled_in_by_the_rows_fitted_to(people):
    frame, groups = people
    X, codes = frame.to_numpy(), (groups == "b").astype(int)
    fold = np.arange(len(X)) % 5
    gaps = MissingNumbers(X, np.arange(len(X)), list("wxyz"))
    np.testing.assert_array_equal(gaps.values, SimpleImputer(strategy="median").fit_transform(X))
    pca = FairPCA(2, alpha=1)

    def filled_in(numbers, left_out):
        values = gaps.filled_by(numbers != left_out)
        return values, Dealt.of(values, codes, [numbers])

    dealt = Dealt.of(gaps.values, codes, [fold])
    found = cross_fit(gaps.values, codes, dealt, [pca], True, filled_in=filled_in)
    steps = SimpleImputer(strategy="median"), StandardScaler(), PCA(2)
    for k in range(5):
        train, test = fold != k, fold == k
        model = make_pipeline(*steps).fit(X[train])
        seen = model[:-1].transform(X[test])
        squares = ((seen - model[-1].inverse_transform(model.transform(X[test]))) ** 2).sum(axis=1)
        n = train.sum()  # scikit-learn divides by n, we by n - 1
        assert found.errors[0, test] * n / (n - 1) == pytest.approx(squares)


def test_audit_says_what_the_command_says(people, tmp_path):
    frame, groups = people
    frame.assign(g=groups).to_csv(tmp_path / "d.csv", index=False)
    options = ["-g", "g", "-r", 2, "--impute", "median"]
    done = run("audit", "d.csv", *options, "--held-out", "--json", "-", cwd=tmp_path)
    (found,) = json.loads(done.stdout)["pca"]
    result = audit(frame, groups, FairPCA(2, alpha=1), impute="median", n_points=2)
    assert found["group_errors"] == pytest.approx(result.cross_validation.pca.group_errors)
    filled = pd.DataFrame(SimpleImputer(strategy="median").fit_transform(frame), columns=[*"wxyz"])
    plain = audit(filled, groups, FairPCA(2, alpha=1), n_points=2)
    assert result.pca.group_errors == pytest.approx(plain.pca.group_errors)
    assert result.feature_names == ["w", "x", "y", "z"]
    n_missing = frame.isna().sum()
    said = run("audit", "d.csv", *options, cwd=tmp_path).stdout
    assert f"w ({n_missing['w']})" in said
    share = frame[groups == "a"].isna().to_numpy().mean()
    assert f"a {100 * share:.1f} %, b " in said
    run("report", "d.csv", *options, cwd=tmp_path)
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "Filled in with the median of their column" in page
    assert f"w ({n_missing['w']})" in page


@pytest.mark.parametrize("options", [[], ["--no-standardize"], ["--cv", 3, "--encode"]])
def test_new_rows_are_filled_in_as_those_fitted_to(people, tmp_path, options):
    frame, groups = people
    frame = frame.assign(ward=np.where(np.arange(90) % 4 == 0, "east", "west"))
    frame.assign(g=groups)[:60].to_csv(tmp_path / "old.csv", index=False)
    new = frame[60:]
    new.assign(g=groups[60:]).to_csv(tmp_path / "new.csv", index=False)
    run("fit", "old.csv", "-g", "g", "-r", 2, "--impute", "median", *options, "-o", "m",
        cwd=tmp_path)  # fmt: skip
    run("transform", "m", "new.csv", "-o", "s.csv", cwd=tmp_path)
    scores = pd.read_csv(tmp_path / "s.csv").to_numpy()
    model = load_model(tmp_path / "m")
    for ward in ("east", "west"):
        new = new.assign(**{f"ward={ward}": (new["ward"] == ward).astype(float)})
    new = new[model.feature_names_in_]
    assert scores == pytest.approx(model.transform(new))
    medians = frame[:60][[*"wxyz"]].median()
    assert model[0].statistics_[:4] == pytest.approx(medians)
    assert scores == pytest.approx(model.transform(new.fillna(medians)))
    judged = run("audit", "--model", "m", "new.csv", "--json", "-", cwd=tmp_path).stdout
    found = audit(new, groups[60:], model)
    (errors,) = json.loads(judged)["model"]
    assert errors["group_errors"] == pytest.approx(found.errors.group_errors)
    assert "missing values imputed" in run("inspect", "m", cwd=tmp_path).stdout


def test_a_model_without_medians_asks_for_them(people, tmp_path):
    pytest.importorskip("pyarrow")
    frame, groups = people
    frame.fillna(0).assign(g=groups).to_csv(tmp_path / "old.csv", index=False)
    frame.assign(g=groups).to_csv(tmp_path / "new.csv", index=False)
    run("fit", "old.csv", "-g", "g", "-r", 2, "-o", "m", "-q", cwd=tmp_path)
    line = fails("audit", "--model", "m", "new.csv", cwd=tmp_path)
    assert "fit the model with --impute median" in line
    assert "--drop " not in line  # it needs all its columns
    assert "fit a model that fills" in fails(
        "transform", "m", "new.csv", "-o", "s.csv", cwd=tmp_path
    )


def test_rows_of_weight_zero_have_no_part_in_medians(people):
    frame, groups = people
    weight = (np.arange(90) % 5 > 0).astype(float)
    some = weight > 0
    found = audit(frame, groups, FairPCA(1), impute="median", sample_weight=weight, n_points=2)
    same = audit(frame[some], groups[some], FairPCA(1), impute="median", n_points=2)
    assert found.fair.group_errors == pytest.approx(same.fair.group_errors)
    errors = [one.cross_validation.pca.group_errors for one in (found, same)]
    assert errors[0] == pytest.approx(errors[1])


def test_a_column_known_in_one_fold_only():
    X = np.array([[1.0, np.nan], [2.0, np.nan], [3.0, 7.0]])
    gaps = MissingNumbers(X, np.arange(3), ["a", "b"])
    filled = gaps.filled_by(np.array([True, True, False]))
    assert filled.tolist() == [[1, 7], [2, 7], [3, 7]]
    assert np.isnan(medians_of(X[:2])[1])


def test_what_cannot_be_filled_in(people, tmp_path, monkeypatch):
    frame, groups = people
    with pytest.raises(ValueError, match="contains NaN in column"):
        audit(frame, groups)
    with pytest.raises(ValueError, match="no value of column 'w' is known"):
        audit(frame.assign(w=np.nan), groups, impute="median")
    with pytest.raises(ValueError, match="impute='mean' is not known; pass 'median'"):
        audit(frame, groups, impute="mean")
    with pytest.raises(TypeError, match="X is sparse"):
        audit(sp.csr_array(np.eye(6)), [*"aabbbb"], impute="median")
    fitted = FairPCA(1).fit_moments(GroupMoments.from_data(frame.fillna(0), groups))
    with pytest.raises(ValueError, match="a fitted model is judged as it is"):
        audit(frame.fillna(0), groups, fitted, impute="median")
    pytest.importorskip("pyarrow")
    frame.assign(g=groups).to_csv(tmp_path / "d.csv", index=False)
    line = fails("audit", "d.csv", "-g", "g", "--impute", "mean", cwd=tmp_path)
    assert "'mean' is not" in line
    monkeypatch.setattr("fairpca._moments.prepare.MOST_BYTES_IN_MEMORY", 1000)
    line = fails("audit", "d.csv", "-g", "g", "--impute", "median", cwd=tmp_path)
    assert "too large to keep in memory, which medians need" in line
    assert (
        fairpca.report.read_table(str(tmp_path / "d.csv"), ["g"], impute="median")
        .data["w"]
        .null_count
        == 0
    )  # they are NaN


def test_texts_that_are_missing_in_every_row_are_named_before_medians(tmp_path):
    pytest.importorskip("pyarrow")
    rows = "".join(
        f"{'fm'[i % 2]},{i},,{'u' if i % 2 else ''},{'' if i % 2 else 'v'}\n" for i in range(30)
    )
    (tmp_path / "d.csv").write_text(f"sex,a,b,t,t2\n{rows}")
    line = fails("audit", "d.csv", "-g", "sex", "--encode", "--impute", "median", cwd=tmp_path)
    assert "30 of 30 rows of d.csv have missing values, in 't' (15), 't2' (15)" in line
