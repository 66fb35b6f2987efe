"""Data that break the arithmetic of a careless solver: scales, one-hot rows, ties, LAPACK."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from helpers.families import family, sampled
from helpers.inside import (
    Eigenspaces,
    FairProblem,
    Operand,
    Status,
    Workspace,
    descent,
    eigen,
    follow,
    least_error,
    recovery,
    solve_pareto,
    solve_spread,
    solve_worst,
)

from fairpca import FairPCA, MinMaxPCA
from fairpca.exceptions import DualityGapWarning, LevellingDownWarning

QUIET = pytest.mark.filterwarnings("ignore::UserWarning")


def groups_of(X, codes):
    X = X - X.mean(axis=0)
    return [X[codes == g].T @ X[codes == g] / (codes == g).sum() for g in np.unique(codes)]


def scaled_features(seed):
    """464 Gaussian rows in three groups; 25 features with scales from 1e-3 to 1e3."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(464, 25)) * 10.0 ** rng.uniform(-3, 3, 25)
    return X, rng.integers(0, 3, 464)


@pytest.mark.parametrize("constraint", ["parity", "no_worse", "efficient"])
@pytest.mark.parametrize("seed", [2, 6])
def test_features_of_very_different_scales(seed, constraint):
    X, codes = scaled_features(seed)
    fair = FairPCA(12, constraint=constraint).fit(X, sensitive_features=codes)
    if constraint != "efficient":
        assert fair.status_ == "parity reached"
        assert abs(fair.disparity_) <= 1e-8
    assert fair.duality_gap_ <= 1e-6 * fair.reconstruction_error_
    # A million times the variance is kept by every sensible projection.
    assert fair.reconstruction_error_ < 1.2 * fair.pca_reconstruction_error_


@pytest.mark.parametrize("factor", [1e3, 1e6])
def test_a_dominant_feature_changes_nothing(factor):
    plain = sampled(5, 3, 6, 2)
    k, d = len(plain.matrices), plain.n_features
    matrices = np.zeros((k, d + 1, d + 1))
    matrices[:, :d, :d] = plain.matrices
    matrices[:, d, d] = factor * plain.traces.max() * np.array([1.0, 1.1, 0.9])
    dominated = family(matrices, 3, plain.shares)
    for criterion in ("error", "loss"):
        alone, beside = (solve_worst(fam, criterion, 1e-6) for fam in (plain, dominated))
        assert beside.value == pytest.approx(alone.value, rel=1e-5)
        assert beside.gap <= 2e-6 * beside.value


def test_a_gap_that_is_small_beside_the_variance_is_warned_of():
    # The relaxation is not tight; the other feature is kept whatever happens.
    fam = sampled(4, 4, 5, 2)
    rng = np.random.default_rng(0)
    rows, codes = [], []
    for g, C in enumerate(fam.matrices):
        half = np.linalg.cholesky(C).T * np.sqrt(len(C))
        block = np.hstack([np.vstack([half, -half]), 1e4 * rng.choice([-1, 1], (10, 1))])
        block[5:, -1] = -block[:5, -1]
        rows.append(block)
        codes += [g] * len(block)
    with pytest.warns(DualityGapWarning, match="tol = 1e-06"):
        MinMaxPCA(3, criterion="error").fit(np.vstack(rows), sensitive_features=codes)


def test_the_gap_is_that_of_the_claim():
    rng = np.random.default_rng(16)
    X, codes = np.eye(3)[rng.integers(0, 3, 60)], rng.integers(0, 5, 60)
    shares = np.bincount(codes) / 60
    fam = family(groups_of(X, codes), 1, shares)
    found = solve_spread(fam, FairProblem(), 1e-6)
    assert found.status is Status.PARITY
    assert found.objective == "error"
    assert found.value == pytest.approx(shares @ found.errors)
    problem = least_error(shares, np.ones(5, dtype=bool), max_spread=0.0)
    work = Workspace(fam)
    relaxed = follow(work, problem.in_units(work.unit), 1e-6)[2].bound * work.unit
    assert found.bound <= relaxed + 1e-6
    assert found.gap > 0.1
    with pytest.warns(DualityGapWarning), pytest.warns(LevellingDownWarning):
        FairPCA(1, constraint="parity").fit(X, sensitive_features=codes)


@QUIET
@pytest.mark.parametrize("rank", [1, 2])
def test_no_error_is_allowed_but_equality_costs_none(rank):
    X, codes = 2.0 * np.vstack([np.eye(3), -np.eye(3)]), [0, 1, 2, 0, 1, 2]
    for constraint in ("parity", "no_worse", "efficient"):
        fair = FairPCA(rank, constraint=constraint, max_error_increase=0.0)
        fair.fit(X, sensitive_features=codes)
        assert fair.status_ == "parity reached"
        assert fair.disparity_ == pytest.approx(0.0, abs=1e-9)
        assert fair.reconstruction_error_ == pytest.approx(fair.pca_reconstruction_error_)


def test_ties_among_many_features():
    # More features than a span holds from the start; the last component may be any of three axes.
    tied = [np.diag(np.r_[9.0, np.full(76, 0.01), np.eye(3)[g]]) for g in range(3)]
    for constraint in ("parity", "efficient"):
        problem = FairProblem(constraint=constraint, max_error_increase=0.0)
        solve = solve_spread if constraint is None else solve_pareto
        found = solve(family(tied, 2, np.ones(3) / 3), problem, 1e-6)
        assert np.ptp(found.errors) < 1e-9


def test_what_costs_nothing_keeps_the_cap():
    # Both axes are PCA; the spread is smaller on the second, but its largest error is larger.
    tied = [np.diag(variances) for variances in ([1.2 + 1e-9, 0.0], [1.2, 3.0], [3.6, 3.0])]
    problem = FairProblem(constraint="no_worse", max_error_increase=0.0)
    found = solve_spread(family(tied, 1, np.ones(3) / 3), problem, 1e-6)
    np.testing.assert_allclose(found.pca.errors, [0.0, 3.0, 3.0], atol=1e-12)
    assert found.status is Status.CAPPED
    assert found.errors.max() <= 3.0 + 1e-9
    assert found.gap <= 1e-6


def test_a_cap_that_a_near_tie_makes_steep_is_kept():
    # The first two axes are equally good for the last group, but for a ten-millionth.
    kept = np.array([[2, 2, 3], [4, 4, 0], [4, 1, 1], [4, 0, 0], [5, 5, 0]])
    matrices = [np.diag(variances) * 1.0 for variances in kept]
    matrices[-1][:2, :2] += 1e-7 * np.array([[1.0, 1.0], [1.0, -1.0]])
    found = solve_spread(family(matrices, 1, np.ones(5) / 5), FairProblem("no_worse"), 1e-6)
    assert found.status is Status.CAPPED
    assert found.errors.max() <= found.pca.errors.max() + 1e-10
    assert found.bound <= found.value < 1.6  # 5 under PCA


def test_a_path_that_rounding_ends_early_leads_to_the_answer():
    # Four axes are tied, but for rounding, and the budget is next to nothing.
    parts = np.array(
        [
            [3, 1, 2, 2, 1, 1, 1],
            [2, 3, 1, 1, 1, 1, 3],
            [3, 1, 2, 1, 3, 1, 2],
            [3, 1, 1, 2, 1, 3, 1],
            [3, 2, 2, 1, 1, 1, 3],
        ]
    )
    variances = parts / parts.sum(axis=0) * [60, 60, 60, 30 + 3e-11, 30, 30, 30]
    problem = FairProblem("no_worse", max_error_increase=1.2565e-6)
    fam = family([np.diag(v) for v in variances], 4, np.ones(5) / 5)
    found = solve_spread(fam, problem, 1e-6)
    assert found.errors.max() <= found.pca.errors.max() + 1e-9
    assert found.gap <= 1e-4 * found.value


def test_prices_on_which_next_to_nothing_depends_are_kept_in_range():
    # The last group is isotropic, but for rounding, and the budget is next to nothing.
    rng = np.random.default_rng(18)
    rank = int(rng.integers(1, 6))
    variances = np.vstack([rng.integers(0, 5, (4, 6))[:3], np.full(6, 4)])
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    noise = rng.normal(size=(4, 6, 6)) * 10.0 ** -rng.integers(5, 12)
    matrices = (variances[:, None] * axes) @ axes.T + noise @ noise.swapaxes(1, 2)
    problem = FairProblem(max_error_increase=10.0 ** -rng.integers(4, 8))
    found = solve_spread(family(matrices, rank, np.ones(4) / 4), problem, 1e-6)  # not a warning
    assert np.isfinite(found.bound)


def test_another_driver_where_lapack_fails(monkeypatch):
    fam = sampled(1, 3, 8, 3)
    expected = solve_worst(fam, "error")

    def fails(*args, **kwargs):
        raise np.linalg.LinAlgError("Eigenvalues did not converge")

    monkeypatch.setattr(np.linalg, "eigh", fails)
    found = solve_worst(Eigenspaces(Operand(fam.matrices, fam.shares), 3), "error")
    assert found.value == pytest.approx(expected.value, rel=1e-9)


def test_a_clear_error_where_every_driver_fails():
    with pytest.raises(ArithmeticError, match="StandardScaler"):
        eigen(np.full((3, 3), np.nan))


def test_a_projection_even_where_the_multipliers_fail(monkeypatch):
    def fails(*args, **kwargs):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(descent, "nnls", fails)
    fam = sampled(1, 3, 8, 3)
    found = solve_worst(fam, "error")
    assert found.bound <= found.value <= fam.top(fam.shares).errors.max()


def test_starts_agree_on_the_best_optimum_only(monkeypatch):
    """Three starts that end at a worse optimum say nothing about the better one found later."""
    ends = iter([2.0, 2.0, 2.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 0.0])

    def end(value):
        return descent.Candidate(np.eye(4, 2), np.zeros(3), value, 0.0, np.zeros(3))

    monkeypatch.setattr(recovery, "descend", lambda *_: end(next(ends)))
    work = SimpleNamespace(rank=2, kept=1e-12)
    centre = SimpleNamespace(occupations=np.array([0.0, 0.5, 0.5, 1.0]), vectors=np.eye(4))
    best = recovery.search_elsewhere(work, None, centre, None, end(2.0), target=-1.0)
    assert best.value == 1.0
    assert list(ends) == [0.0]
