"""FairPCA of two groups is exact: errors, status and gap, by bisection on the weights."""

from __future__ import annotations

import numpy as np
import pytest
from stress.checks import ROUNDING, check_figures, check_pca, fit
from stress.generators import KINDS, any_rank
from stress.oracles import Moments, TwoGroups

from fairpca import FairPCA
from fairpca.exceptions import DualityGapWarning

pytestmark = pytest.mark.stress

_SLACK = 1e-11  # of the largest variance: how far a limit may be exceeded by rounding
_ALIKE = 1e-9  # share of PCA's largest error: groups that differ by less are treated alike
CONSTRAINTS = ("efficient", "no_worse", "parity")


class Judge:
    """Fits to one problem, and the oracle's opinion of them in units of the largest variance."""

    def __init__(self, rng, kind, within):
        self.X, self.groups = KINDS[kind](rng, 2)
        self.rank, self.relative_errors = any_rank(rng, self.X), bool(rng.integers(4) == 0)
        moments = Moments.of_rows(self.X, self.groups)
        self.moments = moments.relative() if self.relative_errors else moments
        self.oracle = TwoGroups(self.moments, self.rank)
        self.scale, self.shares = self.oracle.scale, self.moments.shares
        self._within = within

    def fit(self, **options):
        estimator = FairPCA(self.rank, relative_errors=self.relative_errors, **options)
        self.fair = fit(estimator, self.X, self.groups)
        check_figures(self.fair, self.X, self.groups, self.moments, self._within)
        check_pca(self.fair, self.moments, self._within)
        self.harmed = (self.fair.groups_ == self.fair.harmed_group_).astype(float)
        self.disparity = 2 * self.harmed - 1  # weights of the errors: D = R_B - R_A
        return self.fair

    def within(self, what, discrepancy, allowed=ROUNDING):
        self._within(what, discrepancy / self.scale, allowed)

    def value(self, weights):
        return float(weights @ self.fair.group_errors_)

    def check(self, max_disparity=0.0, max_error=np.inf):
        """The status must be true, to rounding."""
        D, cap = self.value(self.disparity), float(self.fair.pca_group_errors_.max())
        match self.fair.status_:
            case "already fair":
                over = D - max(max_disparity, _ALIKE * cap)
                self.within("disparity of PCA called fair", over, _SLACK)
                loss = self.fair.reconstruction_error_ - self.fair.pca_reconstruction_error_
                self.within("error above that of PCA called fair", loss)
            case "parity reached" | "disparity budget met":
                self.within("disparity off its aim", abs(D - max_disparity), _SLACK)
                self.least(self.shares, self.disparity, max_disparity, "error")
            case "error budget spent":
                self.least(self.disparity, self.shares, max_error, "disparity at an error budget")
            case "capped":
                self.least(self.disparity, self.harmed, cap, "disparity at a cap")
            case "worst-off group at its best":
                best = self.oracle.least(self.harmed)[0]
                self.within("error of the harmed group", self.value(self.harmed) - best)
                slack = _SLACK * self.scale
                high = self.oracle.between(self.shares, self.harmed, best, slack)[1]
                self.within("error at the harmed group's best", self.value(self.shares) - high)
                self.within("gap", self.fair.duality_gap_)
            case "parity infeasible at this rank":
                best = self.oracle.least(self.disparity)[0]
                assert best > max_disparity
                self.within("least disparity", D - best)
                self.within("gap", self.fair.duality_gap_)

    def least(self, cost, limit, at_most, what):
        """Assert that the cost is the least at this limit, and that the gap bounds it."""
        self.within("limit exceeded", self.value(limit) - at_most, _SLACK)
        low, high = self.oracle.between(cost, limit, at_most, _SLACK * self.scale)
        value, gap = self.value(cost), self.fair.duality_gap_
        self.within(f"{what}, above the least", value - high)
        self.within(f"{what}, below the least", low - value)
        self.within("bound above the least", value - gap - high)
        if DualityGapWarning in self.fair.heard_:  # a near-tie, whose rounding the bound allows for
            self.within("gap that is warned of", gap, 1e-3)
        else:
            self.within("gap", gap, self.fair.tol if self.fair.status_ == "capped" else ROUNDING)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_parity(kind, constraint, rng, within):
    judge = Judge(rng, kind, within)
    fair = judge.fit(constraint=constraint)
    judge.check()
    ends = {"already fair", "parity reached"} | {
        "efficient": {"worst-off group at its best"},
        "no_worse": {"capped", "parity infeasible at this rank"},
        "parity": {"parity infeasible at this rank"},
    }[constraint]
    assert fair.status_ in ends
    if constraint != "parity":
        worst = float(fair.group_errors_.max() - fair.pca_group_errors_.max())
        judge.within("worse than the harmed group under PCA", worst, _SLACK)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_budgets_of_disparity(kind, constraint, rng, within):
    """The larger the budget the smaller the error."""
    judge, errors = Judge(rng, kind, within), []
    pca = float(np.ptp(judge.fit(alpha=1.0).pca_group_errors_))
    for share in (0.0, *np.sort(rng.random(2)), 1.0):
        fair = judge.fit(constraint=constraint, max_disparity=share * pca)
        judge.check(max_disparity=share * pca)
        errors.append(fair.reconstruction_error_)
    judge.within("error that rises with the budget", np.diff(errors).max())


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_budgets_of_error(kind, constraint, rng, within):
    """The larger the budget the smaller the disparity; nothing to pay may still buy something."""
    judge, disparities = Judge(rng, kind, within), []
    pca = judge.fit(alpha=1.0).pca_reconstruction_error_
    for increase in (0.0, *np.sort(10.0 ** rng.uniform(-8, 0, 2))):
        fair = judge.fit(constraint=constraint, max_error_increase=increase)
        judge.check(max_error=(1 + increase) * pca)
        disparities.append(fair.disparity_)
    judge.within("disparity that rises with the budget", np.diff(disparities).max())


@pytest.mark.parametrize("kind", KINDS)
def test_fixed_alpha(kind, rng, within):
    """Theorem 1: the least ``alpha R + (1 - alpha) D``."""
    judge = Judge(rng, kind, within)
    for alpha in (0.0, float(rng.random()), 1.0):
        judge.fit(alpha=alpha)
        weights = alpha * judge.shares + (1 - alpha) * judge.disparity
        excess = judge.value(weights) - judge.oracle.least(weights)[0]
        judge.within("weighted sum above the least", abs(excess))


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_limits_of_groups(kind, constraint, rng, within):
    """No group pays more than its limit, and nothing fairer keeps the limit that binds."""
    judge, disparities = Judge(rng, kind, within), []
    for increase in (0.0, *np.sort(10.0 ** rng.uniform(-6, 0, 2))):
        fair = judge.fit(constraint=constraint, max_group_increase=increase)
        limits = (1 + increase) * fair.pca_group_errors_
        left = limits - fair.group_errors_
        judge.within("limit of a group exceeded", -left.min(), _SLACK)
        if fair.status_ == "group limit reached":
            wide = limits + _SLACK * judge.scale  # rounding may put PCA's own error out of reach
            ends = [judge.oracle.least(judge.disparity, g, g @ wide)[0] for g in np.eye(2)]
            binding = np.eye(2)[np.argmax(ends)]
            judge.least(judge.disparity, binding, binding @ limits, "disparity at a group's limit")
        else:
            judge.check()
        disparities.append(abs(fair.disparity_))
    judge.within("disparity that rises with the limit", np.diff(disparities).max())
