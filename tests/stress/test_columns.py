"""FairColumns against all subsets, each rebuilt by orthogonalised columns of the rows."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from stress.checks import ROUNDING, fit
from stress.generators import KINDS
from stress.oracles import Moments, varies

from fairpca import FairColumns, FairPCA

pytestmark = pytest.mark.stress

_REDUNDANT = 1e-12  # share of a column's variance that the others do not tell: nothing


class Rows:
    """Errors of the groups when some columns rebuild all, from rows about their mean."""

    def __init__(self, X, groups, relative_errors):
        self.X = X - X.mean(axis=0)
        self.members = [groups == g for g in np.unique(groups)]
        moments, self.units = Moments.of_rows(X, groups), np.ones(len(self.members))
        if relative_errors:  # rows are divided by the deviation of their group
            self.units = np.where(varies(moments.traces), moments.traces, np.inf)
            moments = moments.relative()
        self.shares, self.scale = moments.shares, moments.scale
        self.root = np.empty(len(X))
        for own, share, unit in zip(self.members, self.shares, self.units, strict=True):
            self.root[own] = np.sqrt(share / own.sum() / unit)

    def errors(self, kept):
        weighted, basis = self.root[:, None] * self.X, []
        for j in kept:
            rest = weighted[:, j]
            for _ in range(2):
                for q in basis:
                    rest = rest - (q @ rest) * q
            if rest @ rest > _REDUNDANT * (weighted[:, j] @ weighted[:, j]):
                basis.append(rest / np.linalg.norm(rest))
        Q = np.array(basis).reshape(-1, len(self.X))
        left = weighted - Q.T @ (Q @ weighted)
        squares = np.square(left).sum(axis=1) / np.where(self.root > 0, self.root, 1.0) ** 2
        return np.array([squares[own].mean() for own in self.members]) / self.units


def problem(rng, kind):
    """Rows of few columns, none of which is nearly told by others but not quite."""
    X, groups = KINDS[kind](rng, int(rng.integers(2, 5)))
    Z = X - X.mean(axis=0)
    sizes = np.linalg.svd(Z / np.maximum(np.linalg.norm(Z, axis=0), 1e-300))[1]
    if ((sizes > 1e-9) & (sizes < 1e-4)).any():
        return problem(rng, "gaussian")
    return X, groups


@pytest.mark.parametrize("kind", KINDS)
def test_no_subset_is_better(kind, rng, within):
    X, groups = problem(rng, kind)
    d, relative_errors = X.shape[1], bool(rng.integers(4) == 0)
    r, rows = int(rng.integers(1, d)), Rows(X, groups, relative_errors)
    fair = fit(FairColumns(r, relative_errors=relative_errors), X, groups)
    errors = np.array([rows.errors(kept) for kept in combinations(range(d), r)])
    own = rows.errors(np.sort(fair.columns_))
    within("errors of columns", np.abs(fair.group_errors_ - own).max() / rows.scale, 1e-8)
    best = errors.max(axis=1).min()
    within("largest error of columns", (own.max() - best) / rows.scale, 1e-8)
    usual = rows.shares @ rows.errors(np.sort(fair.baseline_columns_))
    within("usual choice of columns", (usual - (errors @ rows.shares).min()) / rows.scale, 1e-8)
    within("bound above the best subset", (fair.lower_bound_ - best) / rows.scale, ROUNDING)

    found = fit(FairColumns(r, relative_errors=relative_errors, max_subsets=0), X, groups)
    excess = found.group_errors_.max() - best
    within("columns of a search beyond their gap", (excess - found.duality_gap_) / rows.scale, 1e-8)
    within("columns better than all subsets", -excess / rows.scale, 1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_rebuild_rows(kind, rng, within):
    """transform and inverse_transform give back the errors; FairPCA of this rank does better."""
    X, groups = problem(rng, kind)
    r = int(rng.integers(1, min(X.shape)))
    fair, scale = fit(FairColumns(r), X, groups), Moments.of_rows(X, groups).scale
    lost = np.square(X - fair.inverse_transform(fair.transform(X))).sum(axis=1)
    errors = np.array([lost[groups == g].mean() for g in fair.groups_])
    within("errors of rebuilt rows", np.abs(errors - fair.group_errors_).max() / scale, 1e-8)
    pca = fit(FairPCA(r), X, groups)
    least = pca.group_errors_.max() - pca.duality_gap_
    within("columns better than components", (least - errors.max()) / scale, 1e-8)
