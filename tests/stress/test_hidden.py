"""BlindPCA, FairPLS and GroupEraser hide what they say, and keep or change what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from stress.checks import ROUNDING, fit
from stress.generators import KINDS, gaussian
from stress.oracles import Moments

from fairpca import BlindPCA, FairPLS, GroupEraser
from fairpca.exceptions import quietly

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
    fair = fit(FairPLS(1, notion="demographic_parity", target_type="numbers"), X, groups, y=target)
    scale = Moments.of_rows(X, groups).scale
    within("means that are not hidden", means_apart(fair, X, groups) / scale, ROUNDING)


@pytest.mark.parametrize("make", [BlindPCA, FairPLS])
def test_redundant_columns_and_names_of_groups(make, rng, within):
    """Columns that follow from the others, and other names, change no score."""
    X, groups = gaussian(rng, int(rng.integers(2, 5)))
    y = X @ rng.normal(size=X.shape[1]) + X.std() * rng.normal(size=len(X))
    turned = np.linalg.qr(rng.normal(size=(2 * X.shape[1], 2 * X.shape[1])))[0][: X.shape[1]]
    names = rng.permutation(groups.max() + 1)
    r = int(rng.integers(1, X.shape[1]))
    plain = make(r, max_mean_gap=1e300).fit(X, y, sensitive_features=groups)
    budget = float(plain.mean_gap_ * rng.uniform(0.5, 1.0))
    fair = make(r, max_mean_gap=budget)
    try:
        expected = clone(fair).fit(X, y, sensitive_features=groups)
    except ValueError:  # so small a gap is out of reach
        return
    fair.fit(X @ turned, y, sensitive_features=names[groups])
    Q = expected.components_ @ turned
    apart = fair.components_.T @ fair.components_ - Q.T @ Q
    within("redundant columns or names that matter", np.abs(apart).max(), 1e-4)
    for name in ("mean_gap_", "reconstruction_error_"):
        off = abs(getattr(fair, name) - getattr(expected, name)) / X.var(axis=0).sum()
        within("redundant columns or names that matter", off, 1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_erased_by_least_squares(kind, rng, within):
    """LEACE: without what the guesses of the groups, linear in the rows, tell about the rows."""
    X, groups = problem(rng, kind)
    Z = X - X.mean(axis=0)
    Z = Z[:, np.ptp(X, axis=0) > 0]
    sizes = np.linalg.svd(Z / Z.std(axis=0))[1] / np.sqrt(len(X))
    if ((sizes > 1e-10) & (sizes < 1e-4)).any():
        X, groups = problem(rng, "gaussian")
        Z = X - X.mean(axis=0)
    labels = np.unique(groups)
    scale, told = Z.std(axis=0), (groups[:, None] == labels).astype(float)
    U, sizes, _ = np.linalg.svd(Z / scale, full_matrices=False)
    U = U[:, sizes > 1e-7 * sizes[0]]
    guessed = U @ (U.T @ (told - told.mean(axis=0)))
    Q, sizes, _ = np.linalg.svd(guessed, full_matrices=False)
    Q = Q[:, sizes > 1e-7]
    left = (Z - Q @ (Q.T @ Z)) / scale
    strength = float(rng.random())
    with quietly():
        whole = GroupEraser().fit(X, sensitive_features=groups)
        part = GroupEraser(strength=strength).fit(X, sensitive_features=groups)
    varying = np.ptp(X, axis=0) > 0
    for eraser, wanted in ((whole, left), (part, strength * left + (1 - strength) * Z / scale)):
        found = ((eraser.transform(X) - X.mean(axis=0))[:, varying]) / scale
        within("rows that are not erased as by least squares", np.abs(found - wanted).max(), 1e-6)
        means = [found[groups == g].mean(axis=0) for g in labels]
        gap = np.square(means).sum(axis=1) @ told.mean(axis=0)
        within("means that are not erased", abs(gap - eraser.mean_gap_), 1e-7)
        change = np.square(found - Z / scale).sum(axis=1).mean() / Z.shape[1]
        within("change of erased rows", abs(change - eraser.change_), 1e-7)
