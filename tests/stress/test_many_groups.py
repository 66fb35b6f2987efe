"""FairPCA of three to twelve groups keeps its limits, and its gap bounds what can be gained.

Groups that are ignored count in the overall error only. The oracle is the relaxation to averages of
projections: no projection is better than its value, and no bound may exceed it.
"""

from __future__ import annotations

import numpy as np
import pytest
from stress.checks import check_figures, check_pca, fit
from stress.generators import KINDS, any_rank
from stress.oracles import Moments, Relaxation

from fairpca import FairPCA
from fairpca.exceptions import DualityGapWarning

pytestmark = pytest.mark.stress

CONSTRAINTS = ("efficient", "no_worse", "parity")
_EQUAL = 1e-8  # of the largest variance: errors that count as equal
_SOLVED = 1e-7  # how well a value is known


class Judge:
    """Fits to one problem, and the relaxation's opinion of them in units of the variance."""

    def __init__(self, rng, kind, within, ignores=False):
        k = int(rng.choice([3, 3, 4, 4, 5, 6, 8, 12]))
        self.X, self.groups = KINDS[kind](rng, k)
        self.rank, self.relative_errors = any_rank(rng, self.X), bool(rng.integers(4) == 0)
        sizes = np.bincount(self.groups)
        self.least_size = 1
        if ignores:  # at least two groups stay
            self.least_size = int(rng.integers(1, np.sort(sizes)[-2] + 1))
        self.compared = sizes >= self.least_size
        moments = Moments.of_rows(self.X, self.groups)
        self.moments = moments.relative() if self.relative_errors else moments
        self.relaxed = Relaxation(self.moments, self.rank, compared=self.compared)
        self.scale = self.relaxed.scale
        self._within = within

    def fit(self, **options):
        options |= {"min_group_size": self.least_size, "small_groups": "ignore"}
        estimator = FairPCA(self.rank, relative_errors=self.relative_errors, **options)
        self.fair = fit(estimator, self.X, self.groups)
        check_figures(self.fair, self.X, self.groups, self.moments, self._within)
        check_pca(self.fair, self.moments, self._within, self.compared)
        if self.fair.duality_gap_ > estimator.tol * self.scale * 1.001:
            assert DualityGapWarning in self.fair.heard_
        return self.fair

    def within(self, what, discrepancy, allowed):
        self._within(what, discrepancy / self.scale, allowed)

    def check(self, max_disparity=0.0, max_error=np.inf, max_increase=np.inf):
        """The status must be true, as far as the relaxation can tell."""
        fair, relaxed, compared = self.fair, self.relaxed, self.compared
        worst, pareto = float(fair.group_errors_[compared].max()), fair.constraint == "efficient"
        budget = [] if np.isinf(max_error) else [(relaxed.overall, max_error)]
        cap = float(fair.pca_group_errors_[compared].max())
        limits = [*budget, (relaxed.worst, cap)] if fair.constraint == "no_worse" else budget
        if np.isfinite(max_increase):
            at_most = (1 + max_increase) * fair.pca_group_errors_
            functionals = np.eye(len(at_most), len(at_most) + 2)[compared]
            limits += zip(functionals, at_most[compared], strict=True)
        self.keeps(limits)
        match fair.status_:
            case "already fair":
                self.within("spread of PCA called fair", fair.disparity_ - max_disparity, _EQUAL)
            case "parity reached" | "disparity budget met" if not pareto:
                self.within("spread off its aim", fair.disparity_ - max_disparity, _EQUAL)
                limits.append((relaxed.spread, max_disparity))
                self.least(fair.reconstruction_error_, relaxed.overall, limits, "error")
            case "disparity budget met":
                # The walk ends at the first such spread, not at the cheapest one.
                self.within("spread off its aim", fair.disparity_ - max_disparity, _EQUAL)
                limits = [(relaxed.worst, worst)]
                self.least(fair.reconstruction_error_, relaxed.overall, limits, "error")
            case (
                "parity reached"
                | "error budget spent"
                | "group limit reached"
                | "worst-off group at its best"
            ) if pareto:
                if fair.status_ == "parity reached":
                    self.within("spread off its aim", fair.disparity_ - max_disparity, _EQUAL)
                self.least(worst, relaxed.worst, limits, "largest error")
                limits.append((relaxed.worst, worst))
                least = relaxed.least(relaxed.overall, *limits)[1]
                error, gap = fair.reconstruction_error_ / self.scale, fair.error_gap_ / self.scale
                self._within(
                    "bound of the error above the relaxation's", error - gap - least, _SOLVED
                )
            case (
                "error budget spent"
                | "group limit reached"
                | "capped"
                | "least disparity found, not proven"
            ):
                self.least(fair.disparity_, relaxed.spread, limits, "spread")
            case "parity infeasible at this rank":
                self.least(fair.disparity_, relaxed.spread, limits, "spread")
                assert relaxed.least(relaxed.spread)[1] > max_disparity / self.scale
            case other:
                pytest.fail(other)

    def keeps(self, limits):
        errors = self.fair.group_errors_
        own = errors[self.compared]
        found = np.append(errors, [own.max(), own.min()])
        for functional, at_most in limits:
            self.within("limit exceeded", functional @ found - at_most, _EQUAL)

    def least(self, value, objective, limits, what):
        """Assert that nothing is better than the relaxation's value, and no bound above it."""

        def relaxation(slack):
            kept = [(functional, at_most + slack * self.scale) for functional, at_most in limits]
            return self.relaxed.least(objective, *kept)

        low, high = relaxation(_EQUAL)[0], relaxation(0.0)[1]
        value, gap = value / self.scale, self.fair.duality_gap_ / self.scale
        self._within(f"{what} below the relaxation's", low - value, _SOLVED)
        self._within("bound above the relaxation's", value - gap - high, _SOLVED)


@pytest.fixture(params=[False, True], ids=["all", "some"])
def judge(request, rng, kind, within):
    """A problem in which all groups are compared, or some of them."""
    return Judge(rng, kind, within, ignores=request.param)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_parity(constraint, judge):
    judge.fit(constraint=constraint)
    judge.check()


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_budgets(constraint, rng, judge):
    pca = judge.fit(alpha=1.0)
    budget = float(rng.random() * np.ptp(pca.pca_group_errors_[judge.compared]))
    judge.fit(constraint=constraint, max_disparity=budget)
    judge.check(max_disparity=budget)
    increase = float(rng.choice([0.0, 10.0 ** rng.uniform(-6, 0)]))
    judge.fit(constraint=constraint, max_error_increase=increase)
    judge.check(max_error=(1 + increase) * pca.pca_reconstruction_error_)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("kind", KINDS)
def test_limits_of_groups(constraint, rng, judge):
    increase = float(10.0 ** rng.uniform(-4, 0))
    judge.fit(constraint=constraint, max_group_increase=increase)
    judge.check(max_increase=increase)
