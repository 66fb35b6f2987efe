"""MinMaxPCA against a semidefinite program, known figures, identities, and its certificate."""

from __future__ import annotations

import numpy as np
import pytest
from helpers.estimators import GroupsFromRows
from helpers.inside import products_only
from helpers.worst_off import CRITERIA, criterion_of, made, matrices, offsets
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from fairpca import FairPCA, GroupMoments, MinMaxPCA
from fairpca.baselines import MultiplicativeWeightsPCA
from fairpca.metrics import group_reconstruction_errors


class MinMax(GroupsFromRows, MinMaxPCA):
    """Supplies groups, for the checks that do not."""


@parametrize_with_checks([MinMax(1)])
def test_common_checks(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks([MinMax(2, center="group"), MinMax(1, criterion="error")])
def test_common_checks_of_other_configurations(estimator, check):
    check(estimator)


def semidefinite_value(C, r, criterion):
    """The relaxation 0 <= P <= I, tr P = r; tight for two groups."""
    d = len(C[0])
    cp = pytest.importorskip("cvxpy")
    P, z = cp.Variable((d, d), symmetric=True), cp.Variable()
    constraints = [P >> 0, np.eye(d) - P >> 0, cp.trace(P) == r]
    for M, b in zip(C, offsets(C, r, criterion), strict=True):
        constraints.append(z >= np.trace(M) - cp.trace(M @ P) - b)
    cp.Problem(cp.Minimize(z), constraints).solve(solver=cp.CLARABEL)
    return float(z.value)


@pytest.mark.slow
@pytest.mark.parametrize("center", ["overall", "group"])
@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_agrees_with_the_semidefinite_program(criterion, center, seed):
    X, groups = made(seed)
    C = matrices(X, groups, center)
    for r in (1, 2, 4):
        fair = MinMaxPCA(r, criterion=criterion, center=center).fit(X, sensitive_features=groups)
        value = criterion_of(C, fair, r, criterion)
        assert value == pytest.approx(semidefinite_value(C, r, criterion), abs=2e-6)
        assert abs(fair.duality_gap_) <= 1e-13 * np.trace(C[0] + C[1])


KNOWN = [  # r, least largest loss, and what ten rounds of multiplicative weights leave
    (1, 0.03138, 0.03602),
    (5, 0.05033, 0.05545),
    (12, 0.10647, 0.12165),
    (13, 0.01198, 0.01522),
]


@pytest.mark.parametrize(("r", "exact", "iterated"), KNOWN)
def test_known_losses_on_tcred(tcred_moments, r, exact, iterated):
    fair = MinMaxPCA(r, center="group").fit(tcred_moments)
    assert fair.group_losses_.round(5).tolist() == [exact, exact]
    assert abs(fair.duality_gap_) < 1e-13 * 44
    published = MultiplicativeWeightsPCA(r).fit(tcred_moments)
    assert round(published.group_losses_.max(), 5) == iterated
    # Its bound is a true one, so the gap covers the distance to the exact value.
    assert published.duality_gap_ >= iterated - exact - 1e-5


def test_least_largest_error_is_parity_while_that_improves_the_harmed_group():
    seen = set()
    for seed in range(12):
        X, groups = made(seed, d=4)
        parity = FairPCA(2, constraint="parity").fit(X, sensitive_features=groups)
        fair = MinMaxPCA(2, criterion="error", center="overall")
        fair.fit(X, sensitive_features=groups)
        seen.add(fair.status_)
        if fair.status_ == "groups equal":
            np.testing.assert_allclose(fair.group_errors_, parity.group_errors_, rtol=1e-9)
            assert fair.alpha_ == pytest.approx(parity.alpha_)
        else:
            own = GroupMoments.from_data(X, groups).second_moments()
            g = int(fair.group_errors_.argmax())
            assert fair.group_errors_[g] == pytest.approx(np.linalg.eigvalsh(own[g])[:-2].sum())
            assert fair.group_losses_[g] == pytest.approx(0, abs=1e-12)
    assert seen == {"groups equal", "one group decides"}


@pytest.mark.parametrize("criterion", CRITERIA)
def test_symmetries(criterion):
    X, groups = made(4)
    fair = MinMaxPCA(2, criterion=criterion).fit(X, sensitive_features=groups)

    def losses(X, groups, weight=None):
        again = clone(fair).fit(X, sensitive_features=groups, sample_weight=weight)
        assert abs(again.duality_gap_) < 1e-11 * max(1.0, np.var(X))
        return again.group_losses_

    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(5, 5)))[0]
    np.testing.assert_allclose(
        losses(X @ rotation, groups), fair.group_losses_, rtol=1e-9, atol=1e-11
    )
    np.testing.assert_allclose(losses(X + 1e6, groups), fair.group_losses_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(losses(3 * X, groups), 9 * fair.group_losses_, rtol=1e-9, atol=1e-11)
    swapped = np.where(groups == "majority", "z", "a")
    np.testing.assert_allclose(losses(X, swapped), fair.group_losses_[::-1], rtol=1e-9, atol=1e-11)
    # About the overall mean duplicated rows move that mean; about its own they change nothing.
    twice = np.where(groups == "minority", 2.0, 1.0)
    doubled = losses(X, groups, twice)
    np.testing.assert_allclose(doubled, fair.group_losses_, rtol=1e-9, atol=1e-11)


def test_contract():
    X, groups = made(5)
    fair = MinMaxPCA(3, center="group").fit(X, sensitive_features=groups)
    np.testing.assert_allclose(fair.components_ @ fair.components_.T, np.eye(3), atol=1e-12)
    scores = np.cov(fair.transform(X).T)
    np.testing.assert_allclose(scores, np.diag(fair.explained_variance_), atol=1e-10)
    assert (np.diff(fair.explained_variance_) <= 0).all()
    measured = group_reconstruction_errors(fair, X, groups)
    np.testing.assert_allclose(fair.group_errors_, list(measured.values()), rtol=1e-10)
    assert fair.group_weights_.sum() == pytest.approx(1)
    blocks = MinMaxPCA(3, center="group")
    for rows in np.array_split(np.arange(len(X)), 4):
        blocks.partial_fit(X[rows], sensitive_features=groups[rows])
    np.testing.assert_allclose(blocks.group_losses_, fair.group_losses_, rtol=1e-9)


def test_alpha_is_that_of_fair_pca():
    X, groups = made(6)
    fair = MinMaxPCA(2, center="overall").fit(X, sensitive_features=groups)
    moments = GroupMoments.from_data(X, groups)
    C = dict(zip(fair.groups_.tolist(), moments.second_moments(), strict=True))
    overall = np.tensordot(moments.weights / moments.weights.sum(), list(C.values()), axes=1)
    towards_parity = C[fair.harmed_group_] - C[fair.privileged_group_]
    M = fair.alpha_ * overall + (1 - fair.alpha_) * towards_parity
    U = np.linalg.eigh(M)[1][:, -2:]
    np.testing.assert_allclose(U @ U.T, fair.components_.T @ fair.components_, atol=1e-9)


def test_every_group_keeps_its_share():
    X, groups = made(7)
    fair = MinMaxPCA(0.8).fit(X, sensitive_features=groups)
    assert (fair.group_explained_variance_ratio_ >= 0.8).all()
    fewer = MinMaxPCA(fair.n_components_ - 1).fit(X, sensitive_features=groups)
    assert (fewer.group_explained_variance_ratio_ < 0.8).any()


def test_all_components_leave_nothing_to_lose():
    X, groups = made(8)
    fair = MinMaxPCA().fit(X, sensitive_features=groups)
    np.testing.assert_allclose(fair.group_losses_, 0, atol=1e-10)
    np.testing.assert_allclose(fair.group_errors_, 0, atol=1e-10)


@pytest.mark.parametrize("center", ["overall", "group"])
def test_without_matrices(monkeypatch, center):
    X, groups = made(2, d=40)
    dense = MinMaxPCA(2, center=center).fit(X, sensitive_features=groups)
    products_only(monkeypatch, above=30)
    fair = MinMaxPCA(2, center=center).fit(X, sensitive_features=groups)
    assert "moments_" not in vars(fair)
    np.testing.assert_allclose(fair.group_losses_, dense.group_losses_, atol=1e-9)
    np.testing.assert_allclose(fair.group_errors_, dense.group_errors_, rtol=1e-7)
    assert abs(fair.duality_gap_) < 1e-9


@pytest.mark.parametrize(
    ("parameters", "message"),
    [({"criterion": "fair"}, "criterion"), ({"center": "none"}, "center")],
)
def test_parameters_are_checked(parameters, message):
    X, groups = made()
    with pytest.raises(ValueError, match=message):
        MinMaxPCA(1, **parameters).fit(X, sensitive_features=groups)


def test_groups_are_asked_for_and_counted():
    X, _ = made()
    with pytest.raises(TypeError, match=r"MinMaxPCA\(...\).fit\(X, sensitive_features=groups\)"):
        MinMaxPCA(1).fit(X)
    with pytest.raises(ValueError, match="one group only"):
        MinMaxPCA(1).fit(X, sensitive_features=np.zeros(len(X)))
