"""The problems of more than two groups, as data: linear programs in the group errors.

Every criterion for k groups is a linear program in the vector of group errors::

    minimise over U, t    c'R + q't
    subject to            A R + B t <= b          (some rows with equality)

where ``R = (R_1, ..., R_k)`` are the errors of one rank-r projection and ``t`` holds at most two
auxiliary *levels*: the largest and the smallest error. The price ``y >= 0`` of the rows (free for
equalities) gives the weights ``w = c + A'y`` of an ordinary eigenproblem, and the bound::

    min_U w'R(U) - b'y    for every y with B'y = -q,    so the weights of the levels cancel.

================  ===========================================================================
symbol            here
================  ===========================================================================
``R_g``           ``errors[g]``, average reconstruction error of group g
``p_g``           ``shares[g]``; the overall error is ``p'R``
``c``, ``q``      ``cost`` of the errors, ``level_cost``
``A``, ``B``, b   ``rows``, ``levels``, ``limits``
``y``             the price of each row; ``start`` is a strictly feasible one
================  ===========================================================================
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf

import numpy as np

from fairpca._typing import Array, Mask


@dataclass(frozen=True)
class LinearProblem:
    """A linear program in the group errors.

    A level must have at least one row in which it appears alone, and with the same sign in all of
    them: ``-1`` makes it an upper envelope of the errors, ``+1`` a lower one.
    """

    cost: Array  # shape (k,)
    rows: Array  # (n, k)
    levels: Array  # (n, l)
    limits: Array  # (n,)
    level_cost: Array  # (l,)
    equal: Mask  # (n,): rows that hold with equality; their price may have either sign
    start: Array  # (n,): prices with ``B'y = -q``, positive on the inequalities

    def weights(self, prices: Array) -> Array:
        """Weight of each group's error, ``w = c + A'y``."""
        return np.asarray(self.cost + self.rows.T @ prices)

    @cached_property
    def _envelopes(self) -> list[tuple[Mask, float]]:
        """For each level the rows in which it appears alone, and its coefficient there."""
        alone = np.count_nonzero(self.levels, axis=1) == 1
        return [(alone & (b != 0.0), float(b[alone & (b != 0.0)][0])) for b in self.levels.T]

    def best_levels(self, errors: Array) -> Array:
        """The levels that suit given errors best: their envelopes."""
        excess = self.rows @ errors - self.limits
        return np.array([-b * excess[rows].max() for rows, b in self._envelopes])

    def measure(self, errors: Array) -> tuple[float, float]:
        """Objective and largest violation at given errors, with the best levels for them.

        Examples
        --------
        >>> import numpy as np
        >>> problem = least_spread(np.ones(3) / 3, np.ones(3, dtype=bool), cap=4.0)
        >>> problem.measure(np.array([1.0, 2.0, 4.5]))
        (3.5, 0.5)
        """
        levels = self.best_levels(errors)
        excess = self.rows @ errors + self.levels @ levels - self.limits
        violation = np.where(self.equal, np.abs(excess), excess).max(initial=0.0)
        return float(self.cost @ errors + self.level_cost @ levels), float(violation)

    def in_units(self, unit: float) -> LinearProblem:
        """The same problem for errors that are divided by a unit."""
        return replace(self, limits=self.limits / unit)


_Rows = tuple[Array, list[float], Array, float]


def _build(cost: Array, level_cost: list[float], *blocks: _Rows) -> LinearProblem:
    """Stack blocks of inequalities: rows, the levels in each of them, limits, starting price."""
    repeat = np.repeat(np.arange(len(blocks)), [len(limits) for _, _, limits, _ in blocks])
    return LinearProblem(
        cost=cost,
        rows=np.vstack([rows for rows, _, _, _ in blocks]),
        levels=np.array([levels for _, levels, _, _ in blocks])[repeat],
        limits=np.concatenate([limits for _, _, limits, _ in blocks]),
        level_cost=np.array(level_cost),
        equal=np.zeros(len(repeat), dtype=bool),
        start=np.array([start for _, _, _, start in blocks])[repeat],
    )


def least_maximum(
    offsets: Array,
    compared: Mask,
    *,
    shares: Array | None = None,
    max_error: float = inf,
    cap: float | Array = inf,
) -> LinearProblem:
    """Minimise ``max_g (R_g - offsets_g)`` over the groups compared.

    The offsets are zeros for errors, ``min_V R_g(V)`` for the losses of Samadi et al. With
    ``shares`` the overall error ``p'R`` may be at most ``max_error``; no group compared may have an
    error above ``cap``, which is one number or one for each group.
    """
    errors, n = _errors_of(compared)
    blocks: list[_Rows] = [(errors, [-1.0], offsets[compared], 1.0 / n)]
    blocks += _cap(cap, compared, 1)
    if shares is not None:
        blocks.append((shares[np.newaxis], [0.0], np.array([max_error]), 1.0))
    return _build(np.zeros(len(offsets)), [1.0], *blocks)


def least_spread(
    shares: Array, compared: Mask, *, cap: float | Array = inf, max_error: float = inf
) -> LinearProblem:
    """Minimise ``max_g R_g - min_g R_g`` over the groups compared.

    None of these groups may have an error above ``cap``, and the overall error ``p'R`` may not be
    above ``max_error``.
    """
    errors, n = _errors_of(compared)
    zero, free = np.zeros(n), [0.0, 0.0]
    blocks: list[_Rows] = [
        (errors, [-1.0, 0.0], zero, 1.0 / n),
        (-errors, [0.0, 1.0], zero, 1.0 / n),
    ]
    blocks += _cap(cap, compared, 2)
    if max_error < inf:
        blocks.append((shares[np.newaxis], free, np.array([max_error]), 1.0))
    return _build(np.zeros(len(shares)), [1.0, -1.0], *blocks)


def least_error(
    shares: Array, compared: Mask, *, max_spread: float = inf, cap: float | Array = inf
) -> LinearProblem:
    """Minimise the overall error ``p'R`` subject to ``max_g R_g - min_g R_g <= max_spread``.

    The spread is that of the groups compared, and none of them may have an error above ``cap``. At
    a spread of zero the errors are equated, one signed price each: the pair of prices that two
    inequalities would need grows without limit.
    """
    errors, n = _errors_of(compared)
    zero = np.zeros(n)
    blocks: list[_Rows] = []
    if max_spread == 0.0:
        blocks = [(errors, [-1.0], zero, 0.0)]
    elif max_spread < inf:
        blocks = [
            (errors, [-1.0, 0.0], zero, 1.0 / n),
            (-errors, [0.0, 1.0], zero, 1.0 / n),
            (np.zeros((1, len(shares))), [1.0, -1.0], np.array([max_spread]), 1.0),
        ]
    n_levels = len(blocks[0][1]) if blocks else 0
    blocks += _cap(cap, compared, n_levels)
    problem = _build(shares, [0.0] * n_levels, *blocks)
    n_equal = n if max_spread == 0.0 else 0
    return replace(problem, equal=np.arange(len(problem.limits)) < n_equal)


def _cap(cap: float | Array, compared: Mask, n_levels: int) -> list[_Rows]:
    """The rows that keep errors below a cap, or none."""
    limits = np.broadcast_to(cap, compared.shape)[compared]
    if not np.isfinite(limits).all():
        return []
    return [(_errors_of(compared)[0], [0.0] * n_levels, limits, 1.0 / len(limits))]


def _errors_of(compared: Mask) -> tuple[Array, int]:
    """Rows that pick the errors of the groups compared, and how many there are."""
    return np.eye(len(compared))[compared], int(np.count_nonzero(compared))
