"""The right answers, by other means than the package's solvers.

Errors of a group are ``R_g(P) = tr C_g - tr C_g P``, linear in the projection ``P``.

* Two groups: the pairs of errors of all projections of one rank have a convex lower boundary, and
  each of its points is the top eigenspace of some weighted sum of the two matrices, or lies between
  two of them where eigenvalues cross. ``TwoGroups.least`` bisects the weights.
* More groups: the least value over all averages of projections, ``0 <= P <= I``, ``tr P = r``. It
  is a lower bound of the true one.

``test_oracles.py`` compares both with a semidefinite program.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from scipy.optimize import linprog

_TIES = (4e-15, 2e-14)  # of the largest eigenvalue: surely equal, and not surely unequal
_ROUNDS = 150  # of column generation, at most
_ACCURACY = 1e-9  # at which it ends
_PENALTY = 1e4  # for each unit by which a limit is exceeded
# The program keeps rows to within 1e-10. At the highest price that would change the value by 1e-6;
# with rows as many times larger, it is 1e-10.
_MAGNIFIED = 1e4
_METHODS = (("highs-ds", 1e-10), ("highs-ipm", 1e-10), ("highs-ds", 1e-8))


def varies(variances):
    """Which groups vary; rows that are all at the overall mean differ from it by rounding."""
    return variances > 1e-24 * variances.max()


@dataclass(frozen=True)
class Moments:
    """``C_g`` about the overall mean, and the shares ``p_g`` of the groups."""

    matrices: np.ndarray
    shares: np.ndarray

    @classmethod
    def of_rows(cls, X, groups, center="overall"):
        X = X - X.mean(axis=0)
        parts = [X[groups == g] for g in np.unique(groups)]
        sizes = np.array([len(part) for part in parts])
        if center == "group":
            parts = [part - part.mean(axis=0) for part in parts]
        return cls(np.array([part.T @ part / len(part) for part in parts]), sizes / sizes.sum())

    @cached_property
    def traces(self):
        return np.trace(self.matrices, axis1=1, axis2=2)

    @property
    def scale(self):
        """The largest variance of a group, or 1 where all rows are alike."""
        return float(self.traces.max()) or 1.0

    def relative(self):
        """Errors as shares of each group's variance."""
        total = self.shares @ self.traces or 1.0
        units = np.where(varies(self.traces), self.traces, np.inf)
        return Moments(self.matrices / units[:, None, None], self.shares * self.traces / total)

    def errors(self, components):
        """``R_g`` of a projection given by orthonormal rows."""
        return self.traces - np.einsum("gij,ri,rj->g", self.matrices, components, components)

    def best(self, rank, weights, then=None, tie=_TIES[0]):
        """Errors of a projection that minimises ``weights @ errors``, and ``then @ errors`` next.

        Eigenvectors of equal eigenvalues are equally good; inside their span the second weights
        decide.
        """
        values, vectors = np.linalg.eigh(np.tensordot(weights, self.matrices, 1))
        values, vectors = values[::-1], vectors[:, ::-1]
        if then is not None:
            near = tie * np.abs(values).max()
            sure = vectors[:, values > values[rank - 1] + near]
            tied = vectors[:, np.abs(values - values[rank - 1]) <= near]
            inner = np.linalg.eigh(tied.T @ np.tensordot(then, self.matrices, 1) @ tied)[1]
            vectors = np.hstack([sure, tied @ inner[:, ::-1]])
        return self.errors(vectors[:, :rank].T)


class TwoGroups:
    """Least values of linear functions of the errors of two groups."""

    def __init__(self, moments, rank):
        self.moments, self.rank = moments, rank
        self.scale = moments.scale

    def least(self, cost, limit=None, at_most=np.inf):
        """The interval that holds the least ``cost @ errors`` with ``limit @ errors <= at_most``.

        ``(inf, inf)`` where the limit is out of reach.
        """
        cost = np.asarray(cost, float)
        if limit is None:
            value = float(cost @ self.moments.best(self.rank, cost))
            return value, value
        limit = np.asarray(limit, float)
        free = self.moments.best(self.rank, cost, then=limit)
        if limit @ free <= at_most:
            return float(cost @ free), float(cost @ free)
        tight = self.moments.best(self.rank, limit, then=cost)
        if limit @ tight > at_most:
            return np.inf, np.inf
        return self._bisect(cost, limit, at_most, free, tight)

    def _bisect(self, cost, limit, at_most, free, tight):
        """Between an end that exceeds the limit and one that keeps it."""
        low, high = 0.0, 1.0  # the weight of the limit
        bound = float(cost @ free)
        while True:
            t = 0.5 * (low + high)
            if t in (low, high):
                break
            weights = (1 - t) * cost + t * limit
            errors = self.moments.best(self.rank, weights)
            bound = max(bound, float(weights @ errors - t * at_most) / (1 - t))
            if limit @ errors > at_most:
                low, free = t, errors
            else:
                high, tight = t, errors
        over, under = limit @ free - at_most, at_most - limit @ tight
        mixed = (under * free + over * tight) / (over + under) if over + under > 0 else tight
        return min(bound, float(cost @ mixed)), float(cost @ mixed)

    def between(self, cost, limit, at_most, slack):
        """Where the value must lie if the limit is kept to within ``slack``.

        The least value may depend steeply on the limit. Where the limit can only just be kept, the
        best among the projections that keep it best must be reached.
        """
        low = self.least(cost, limit, at_most + slack)[0]
        high = self.least(cost, limit, at_most - slack)[1]
        if np.isinf(high):
            ends = [self.moments.best(self.rank, limit, then=cost, tie=tie) for tie in _TIES]
            high = max(float(cost @ errors) for errors in ends) + self._rounding(cost, limit)
        return low, high

    def _rounding(self, cost, limit):
        """The cost of rounding in the limit's matrix: the more, the closer its eigenvalues."""
        values = np.linalg.eigvalsh(np.tensordot(limit, self.moments.matrices, 1))[::-1]
        apart = np.abs(values - values[self.rank - 1]) / (np.abs(values).max() or 1.0)
        nearest = apart[apart > _TIES[1]].min(initial=1.0)
        return 1e-14 / nearest * float(np.abs(cost) @ self.moments.traces)


class Relaxation:
    """Least values for any number of groups, over the convex hull of all projections' errors.

    Errors there are averages of errors of projections, so a linear program finds the best average
    of the projections seen so far, and its prices are the weights whose top eigenspace to add next
    (column generation). The program's value bounds the answer from above, the eigenvalues bound it
    from below.

    A *functional* is a vector of k + 2 numbers: factors of the errors of the k groups, of the
    largest error and of the smallest one. Of these two the groups that are not ``compared`` are no
    part.
    """

    def __init__(self, moments, rank, offsets=0.0, compared=None):
        self.moments, self.rank = moments, rank
        self.scale = moments.scale
        k = len(moments.shares)
        self._offsets = np.broadcast_to(offsets, k) / self.scale
        self.overall = np.append(moments.shares, [0.0, 0.0])
        self.worst, least = np.eye(k + 2)[-2:]
        self.spread = self.worst - least
        one = np.eye(k, k + 2)[slice(None) if compared is None else compared]
        self._levels = np.vstack(
            [one - self.worst, least - one]
        )  # at most the largest, at least ...
        self._columns = []
        for weights in (moments.shares, *np.eye(k)):
            self._add(weights)

    def least(self, objective, *limits):
        """The interval, in units of ``scale``, that holds the least value of a functional.

        Each limit is a functional and what it may be at most, in the units of the data. Exceeding a
        limit costs much, so there is an answer always; where a limit had to be exceeded, the upper
        end is infinite.
        """
        rows = np.array([*self._levels, *(functional for functional, _ in limits)])
        right = np.zeros(len(rows))
        right[len(self._levels) :] = [at_most / self.scale for _, at_most in limits]
        k, bound = len(self.moments.shares), -np.inf
        for _ in range(_ROUNDS):
            value, excess, prices = self._program(objective, rows, right)
            weights = objective[:k] + prices @ rows[:, :k]
            bound = max(bound, float(weights @ self._add(weights) - prices @ right))
            if value - bound <= _ACCURACY:
                break
        return min(bound, value), value if excess <= _ACCURACY / _PENALTY else np.inf

    def _program(self, objective, rows, right):
        """The best average of the columns: value, excess, and the price of each row."""
        k, columns = len(self.moments.shares), np.array(self._columns).T
        n = columns.shape[1]
        excess = np.zeros((len(rows), 1))
        excess[len(self._levels) :] = -1.0
        program = {
            "c": np.concatenate([objective[:k] @ columns, objective[k:], [_PENALTY]]),
            "A_ub": _MAGNIFIED * np.hstack([rows[:, :k] @ columns, rows[:, k:], excess]),
            "b_ub": _MAGNIFIED * right,
            "A_eq": np.concatenate([np.ones(n), np.zeros(3)])[None],
            "b_eq": [1.0],
            "bounds": [(0, None)] * n + [(None, None)] * 2 + [(0, None)],
        }
        for presolve, (method, tolerance) in product((True, False), _METHODS):
            options = {
                "presolve": presolve,
                "primal_feasibility_tolerance": tolerance,
                "dual_feasibility_tolerance": tolerance,
            }
            answer = linprog(**program, method=method, options=options)
            if answer.status == 0:
                prices = -_MAGNIFIED * answer.ineqlin.marginals
                return float(answer.fun), float(answer.x[-1]), prices
        raise ArithmeticError(answer.message)

    def _add(self, weights):
        errors = self.moments.best(self.rank, weights) / self.scale - self._offsets
        self._columns.append(errors)
        return errors
