"""BlindPCA and FairPLS hide what they say, and BlindPCA keeps the most variance that leaves."""

from __future__ import annotations

import numpy as np
import pytest
from stress.checks import ROUNDING, fit
from stress.generators import KINDS
from stress.oracles import Moments

from fairpca import BlindPCA, FairPLS

pytestmark = pytest.mark.stress


def means_of(X, groups):
    """Group means about the overall one, in units of the spread of the rows."""
    centred = X - X.mean(axis=0)
    size = np.sqrt(np.square(centred).sum(axis=1).mean())
    return np.array([centred[groups == g].mean(axis=0) for g in np.unique(groups)]) / size


def problem(rng, kind):
    """Rows with more features than hiding takes, and means that clearly differ or do not."""
    k = int(rng.integers(2, 4))
    X, groups = KINDS[kind](rng, k)
    sizes = np.linalg.svd(means_of(X, groups))[1]
    unclear = (sizes > 1e-14) & (sizes < 1e-5)
    if unclear.any() or np.linalg.matrix_rank(X - X.mean(0), tol=1e-6 * np.abs(X).max()) <= k:
        return problem(rng, "gaussian")
    return X, groups


def means_apart(fair, X, groups):
    """The largest distance of a group's mean score from the overall one, as a variance."""
    scores = (X - X.mean(axis=0)) @ fair.components_.T
    return max(np.square(scores[groups == g].mean(axis=0)).sum() for g in np.unique(groups))


@pytest.mark.parametrize("kind", KINDS)
def test_means_are_hidden(kind, rng, within):
    X, groups = problem(rng, kind)
    moments = Moments.of_rows(X, groups)
    scale = moments.scale
    fair = fit(BlindPCA(1), X, groups)
    within("means that are not hidden", means_apart(fair, X, groups) / scale, ROUNDING)

    _, sizes, directions = np.linalg.svd(means_of(X, groups))
    left = directions[np.count_nonzero(sizes > 1e-9) :]
    C = np.tensordot(moments.shares, moments.matrices, 1)
    most = np.linalg.eigvalsh(left @ C @ left.T)[-1]
    kept = float(fair.components_[0] @ C @ fair.components_[0])
    within("variance kept with means hidden", (most - kept) / scale, ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
def test_budgets_of_means(kind, rng, within):
    """The larger the budget the more variance; within it always."""
    X, groups = problem(rng, kind)
    scale = Moments.of_rows(X, groups).scale
    least = fit(BlindPCA(1), X, groups)
    errors = [least.reconstruction_error_]
    for share in np.sort(rng.random(3)):
        budget = float(share * least.pca_mean_gap_)
        fair = fit(BlindPCA(1, max_mean_gap=budget), X, groups)
        within("mean gap above its budget", (fair.mean_gap_ - budget) / scale, ROUNDING)
        within("gap of a mean budget", fair.duality_gap_ / scale, ROUNDING)
        errors.append(fair.reconstruction_error_)
    within("error that rises with the mean budget", np.diff(errors).max() / scale, ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
def test_components_for_a_target(kind, rng, within):
    X, groups = problem(rng, kind)
    target = X @ rng.normal(size=X.shape[1]) + 0.1 * X.std() * rng.normal(size=len(X))
    fair = fit(FairPLS(1, notion="demographic_parity"), X, groups, y=target)
    scale = Moments.of_rows(X, groups).scale
    within("means that are not hidden", means_apart(fair, X, groups) / scale, ROUNDING)
