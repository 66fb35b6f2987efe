"""Several attributes without crossing: each row counts in one group of each of them."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from helpers.data import assert_same_moments
from scipy.sparse import csr_array

from fairpca import BlindPCA, FairPCA, FairPCACV, GroupMoments, MinMaxPCA, WelfarePCA, tradeoff_path

rng = np.random.default_rng(5)
N, D = 900, 6
PEOPLE = pd.DataFrame(
    {
        "sex": np.where(rng.random(N) < 0.3, "f", "m"),
        "age": rng.choice(["young", "middle", "old"], N, p=[0.5, 0.3, 0.2]),
    }
)
SPREAD = np.array([3, 2.5, 2, 1.5, 1, 0.5])
X = rng.normal(size=(N, D)) * SPREAD
X[PEOPLE["sex"] == "f"] *= np.array([0.5, 0.5, 1, 1, 2, 2])
X[PEOPLE["age"] == "old"] *= np.array([1, 0.4, 0.5, 2, 1, 3])
X += 0.3 * (PEOPLE["age"] == "young").to_numpy()[:, None]
WEIGHTS = rng.integers(1, 4, N) * 0.5
MARGINS = ["age = middle", "age = old", "age = young", "sex = f", "sex = m"]
ESTIMATORS = {
    "FairPCA": FairPCA(2, crossing=False),
    "standardized": FairPCA(3, crossing=False, standardize=True),
    "relative": FairPCA(2, crossing=False, relative_errors=True),
    "FairPCACV": FairPCACV(2, crossing=False, cv=5),
    "MinMaxPCA": MinMaxPCA(2, crossing=False),
    "WelfarePCA": WelfarePCA(2, crossing=False),
}


def of_margin(label):
    column, value = label.split(" = ")
    return (PEOPLE[column] == value).to_numpy()


def test_margins_are_sums_of_the_crossed_groups():
    crossed = GroupMoments.from_data(X, PEOPLE, WEIGHTS)
    margins = crossed.by_attribute()
    assert margins.groups.tolist() == MARGINS
    assert margins.n_rows == crossed.n_rows == N
    for label, of_label in margins.by_group():
        rows = of_margin(label)
        own = GroupMoments.from_data(X[rows], [label] * rows.sum(), WEIGHTS[rows])
        assert_same_moments(of_label, own)
    np.testing.assert_allclose(margins.mean, crossed.mean)
    operand, whole = margins.operand(), crossed.operand()
    np.testing.assert_allclose(operand.shares.sum(), 1)
    C = np.tensordot(operand.shares, operand.matrices, axes=1)
    np.testing.assert_allclose(C, np.tensordot(whole.shares, whole.matrices, axes=1))


@pytest.mark.parametrize("folds", [None, 4])
@pytest.mark.parametrize("most", [0, 4])
def test_margins_at_once_and_in_any_blocks(folds, most, monkeypatch):
    from fairpca._moments import group_moments

    crossed = GroupMoments.from_data(X, PEOPLE, WEIGHTS, units=np.arange(N) // 3, folds=folds)
    expected = crossed.by_attribute()
    monkeypatch.setattr(group_moments, "_MOST_CELLS", most)  # margins alone, or as sums of cells
    how = {"crossing": False, "folds": folds}
    found = GroupMoments()
    for rows in np.array_split(np.arange(N), 7):
        found.update(X[rows], PEOPLE.iloc[rows], WEIGHTS[rows], units=rows // 3, **how)
    assert found.groups.tolist() == MARGINS
    assert_same_moments(found.keep(), expected.keep())
    assert found.n_units.tolist() == expected.n_units.tolist()
    for fold in range(folds or 0):
        for ours, theirs in zip(found.split(fold), expected.split(fold), strict=True):
            assert_same_moments(ours, theirs)
    again = pickle.loads(pickle.dumps(found))
    assert again.partitions[0].tolist() == [True] * 3 + [False] * 2
    with pytest.raises(ValueError, match="same attributes"):
        found.merge(crossed)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_compare_the_groups_of_each_attribute(name):
    estimator = ESTIMATORS[name]
    fair = estimator.fit(X, sensitive_features=PEOPLE)
    assert fair.groups_.tolist() == MARGINS
    assert fair.n_samples_ == N
    errors = dict(zip(fair.groups_.tolist(), fair.group_errors_, strict=True))
    if not fair.relative_errors:
        Z = (X - fair.mean_) / fair.scale_
        squares = ((Z - Z @ fair.components_.T @ fair.components_) ** 2).sum(axis=1)
        for label, error in errors.items():
            assert error == pytest.approx(squares[of_margin(label)].mean())
        assert fair.reconstruction_error_ == pytest.approx(squares.mean())
        variances = np.var((X - fair.mean_) / fair.scale_ @ fair.components_.T, axis=0, ddof=1)
        np.testing.assert_allclose(fair.explained_variance_, variances)
    folds = 5 if isinstance(fair, FairPCACV) else None
    crossed = GroupMoments.from_data(X, PEOPLE, folds=folds)
    np.testing.assert_allclose(estimator.fit(crossed).components_, fair.components_, atol=1e-6)
    margins = GroupMoments.from_data(X, PEOPLE, folds=folds, crossing=False)
    np.testing.assert_allclose(estimator.fit(margins).components_, fair.components_, atol=1e-6)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_one_attribute_is_the_same_to_the_digit(name):
    estimator = ESTIMATORS[name]
    for groups in (PEOPLE["age"], PEOPLE[["age"]]):
        alone = estimator.fit(X, sensitive_features=groups).components_.copy()
        crossed = estimator.set_params(crossing=True).fit(X, sensitive_features=groups)
        estimator.set_params(crossing=False)
        np.testing.assert_array_equal(alone, crossed.components_)
        assert crossed.groups_.tolist() == ["middle", "old", "young"]


def test_the_worst_margin_gains():
    fair = FairPCA(2, crossing=False).fit(X, sensitive_features=PEOPLE)
    assert fair.group_errors_.max() < 0.95 * fair.pca_group_errors_.max()
    assert fair.duality_gap_ < 1e-3 * fair.group_errors_.max()
    crossed = FairPCA(2).fit(X, sensitive_features=PEOPLE)
    worst = 0.0
    Z = X - crossed.mean_
    squares = ((Z - Z @ crossed.components_.T @ crossed.components_) ** 2).sum(axis=1)
    worst = max(squares[of_margin(label)].mean() for label in MARGINS)
    assert fair.group_errors_.max() <= worst + 1e-9


def test_bound_against_an_sdp():
    """The least largest error of any projector relaxed to 0 <= P <= I, by a general solver."""
    cvxpy = pytest.importorskip("cvxpy")
    fair = FairPCA(2, crossing=False, tol=1e-8).fit(X, sensitive_features=PEOPLE)
    matrices = [np.cov(X[of_margin(label)].T, ddof=0) for label in MARGINS]
    from_mean = [X[of_margin(label)].mean(axis=0) - X.mean(axis=0) for label in MARGINS]
    P, t = cvxpy.Variable((D, D), symmetric=True), cvxpy.Variable()
    limits = [P >> 0, np.eye(D) - P >> 0, cvxpy.trace(P) == 2]
    for C, m in zip(matrices, from_mean, strict=True):
        about = C + np.outer(m, m)
        limits.append(np.trace(about) - cvxpy.trace(about @ P) <= t)
    bound = cvxpy.Problem(cvxpy.Minimize(t), limits).solve()
    largest = fair.group_errors_.max()
    assert bound <= largest + 1e-5 * largest
    assert largest - fair.duality_gap_ <= bound + 1e-5 * largest


def test_small_groups_are_merged_within_their_attribute():
    people = PEOPLE.assign(place=np.where(np.arange(N) < 4, "a", "c"))
    people.loc[4:8, "place"] = "b"
    people.loc[:2, "sex"] = "x"
    people.loc[3:9, "sex"] = "y"
    merged = FairPCA(2, crossing=False, min_group_size=8, small_groups="merge")
    fair = merged.fit(X, sensitive_features=people)
    assert fair.small_groups_ == ["place = a", "place = b", "sex = x", "sex = y"]
    sizes = dict(zip(fair.groups_.tolist(), fair.group_sizes_.tolist(), strict=True))
    assert sizes["place = rest"] == 9
    assert sizes["sex = rest"] == 10
    ignored = merged.set_params(small_groups="ignore").fit(X, sensitive_features=people)
    assert "sex = x" in ignored.groups_.tolist()
    with pytest.raises(ValueError, match="still too few"):
        merged.set_params(small_groups="merge", min_group_size=10).fit(X, sensitive_features=people)


def test_streams_and_paths():
    pa = pytest.importorskip("pyarrow")
    frame = pd.DataFrame(X, columns=list("abcdef")).join(PEOPLE)
    fair = FairPCA(2, crossing=False).fit(X, sensitive_features=PEOPLE)
    table = pa.Table.from_pandas(frame)
    named = FairPCA(2, crossing=False).fit(table.to_reader(100), sensitive_features=["sex", "age"])
    np.testing.assert_allclose(named.components_, fair.components_, atol=1e-6)
    path = tradeoff_path(
        frame, ["sex", "age"], n_components=2, n_points=3, cv=3, tol=0.1, crossing=False
    )
    assert path.groups.tolist() == MARGINS
    np.testing.assert_allclose(path.group_errors[0], fair.pca_group_errors_)
    assert path.held_out.group_errors.shape == (3, 5)
    blocks = FairPCA(2, crossing=False, tol=1e-3)
    for rows in np.array_split(np.arange(N), 3):
        blocks.partial_fit(X[rows], sensitive_features=PEOPLE.iloc[rows])
    np.testing.assert_allclose(blocks.components_, fair.components_, atol=1e-6)


def test_many_attributes_form_no_crossed_groups():
    many = pd.DataFrame({f"a{j}": rng.integers(0, 2, N) for j in range(12)})
    fair = FairPCA(2, crossing=False, tol=1e-3).fit(X, sensitive_features=many)
    assert len(fair.groups_) == 24
    assert len(fair.moments_.groups) == 24


def test_what_is_refused():
    with pytest.raises(ValueError, match="does not go with missing='available'"):
        FairPCA(2, crossing=False, missing="available").fit(X, sensitive_features=PEOPLE)
    holes = X.copy()
    holes[::7, 2] = np.nan
    crossed = GroupMoments.from_data(holes, PEOPLE, missing="available")
    with pytest.raises(ValueError, match="missing values"):
        crossed.by_attribute()
    margins = GroupMoments.from_data(X, PEOPLE, crossing=False)
    with pytest.raises(ValueError, match="groups of these moments overlap"):
        BlindPCA(2).fit(margins)
    with pytest.raises(ValueError, match=r"one group only .*age = old"):
        FairPCA(2, crossing=False).fit(X, sensitive_features=PEOPLE.assign(age="old"))
    with pytest.raises(ValueError, match="looks continuous"):
        FairPCA(2, crossing=False).fit(X, sensitive_features=PEOPLE.assign(age=np.arange(N)))
    twins = PEOPLE.rename(columns={"sex": "a", "age": "a = b"}).assign(a="b = c")
    twins.loc[::2, "a"] = "b"
    twins.loc[::3, "a = b"] = "c"
    with pytest.raises(ValueError, match="rename a column"):
        FairPCA(2, crossing=False).fit(X, sensitive_features=twins)
    with pytest.raises(ValueError, match="up to 5000 features"):
        FairPCA(2, crossing=False).fit(
            csr_array((2600, 5001)), sensitive_features=PEOPLE.sample(2600, replace=True)
        )
