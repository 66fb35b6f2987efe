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

    def excess(self, errors: Array) -> tuple[Array, Array]:
        """The excess of the errors over each row's limit, at the best levels, and these levels.

        The best levels are envelopes over the rows of one level alone.
        """
        excess = self.rows @ errors - self.limits
        alone = (self.levels != 0.0).sum(axis=1) == 1
        own = [(b[alone & (b != 0.0)][0], excess[alone & (b != 0.0)]) for b in self.levels.T]
        levels = np.array([-b * values.max() for b, values in own])
        return excess + self.levels @ levels, levels

    def measure(self, errors: Array) -> tuple[float, float]:
        """Objective and largest violation at given errors, with the best levels for them.

        Examples
        --------
        >>> import numpy as np
        >>> problem = least_spread(np.ones(3) / 3, np.ones(3, dtype=bool), cap=4.0)
        >>> problem.measure(np.array([1.0, 2.0, 4.5]))
        (3.5, 0.5)
        """
        excess, levels = self.excess(errors)
        violation = np.where(self.equal, np.abs(excess), excess).max(initial=0.0)
        return float(self.cost @ errors + self.level_cost @ levels), float(violation)

    def in_units(self, unit: float) -> LinearProblem:
        """The same problem for errors that are divided by a unit."""
        return replace(self, limits=self.limits / unit)


_Rows = list[tuple[Array, list[float], Array, float]]  # rows, their levels, limits, first price


def _build(
    cost: Array,
    level_cost: list[float],
    blocks: _Rows,
    compared: Mask,
    cap: float | Array,
    n_equal: int = 0,
) -> LinearProblem:
    """Stack blocks of rows, of which the first ``n_equal`` hold with equality, and the caps."""
    caps = np.broadcast_to(cap, compared.shape)[compared]
    if np.isfinite(caps).all():
        errors = np.eye(len(compared))[compared]
        no_level = [0.0] * len(level_cost)
        blocks.append((errors, no_level, caps, 1.0 / len(caps)))
    rows, levels, limits, starts = zip(*blocks, strict=True)
    repeat = np.repeat(np.arange(len(blocks)), [len(one) for one in limits])
    return LinearProblem(
        cost=cost,
        rows=np.vstack(rows),
        levels=np.array(levels)[repeat],
        limits=np.concatenate(limits),
        level_cost=np.array(level_cost),
        equal=np.arange(len(repeat)) < n_equal,
        start=np.array(starts)[repeat],
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

    With ``shares`` the overall error ``p'R`` may be at most ``max_error``. No group compared may
    have an error above ``cap``, which is one number or one for each group.
    """
    errors = np.eye(len(compared))[compared]
    blocks: _Rows = [(errors, [-1.0], offsets[compared], 1.0 / len(errors))]
    if shares is not None:
        blocks.append((shares[np.newaxis], [0.0], np.array([max_error]), 1.0))
    return _build(np.zeros(len(offsets)), [1.0], blocks, compared, cap)


def least_spread(
    shares: Array, compared: Mask, *, cap: float | Array = inf, max_error: float = inf
) -> LinearProblem:
    """Minimise ``max_g R_g - min_g R_g`` over the groups compared.

    None of their errors may be above ``cap``, nor the overall error ``p'R`` above ``max_error``.
    """
    blocks = _between_levels(compared)
    if max_error < inf:
        blocks.append((shares[np.newaxis], [0.0, 0.0], np.array([max_error]), 1.0))
    return _build(np.zeros(len(shares)), [1.0, -1.0], blocks, compared, cap)


def least_error(
    shares: Array, compared: Mask, *, max_spread: float = inf, cap: float | Array = inf
) -> LinearProblem:
    """Minimise the overall error ``p'R`` subject to ``max_g R_g - min_g R_g <= max_spread``.

    The spread is that of the groups compared, and none of them may have an error above ``cap``. At
    a spread of zero the errors are set equal, with one signed price each, because the two prices
    of a pair of inequalities would grow without limit.
    """
    errors = np.eye(len(compared))[compared]
    n_equal = 0
    blocks: _Rows = []
    if max_spread == 0.0:
        n_equal = len(errors)
        blocks = [(errors, [-1.0], np.zeros(n_equal), 0.0)]
    elif max_spread < inf:
        width = (np.zeros((1, len(shares))), [1.0, -1.0], np.array([max_spread]), 1.0)
        blocks = [*_between_levels(compared), width]
    n_levels = 0
    if blocks:
        n_levels = len(blocks[0][1])
    return _build(shares, [0.0] * n_levels, blocks, compared, cap, n_equal)


def _between_levels(compared: Mask) -> _Rows:
    """The errors of the groups compared lie below the first level and above the second."""
    errors = np.eye(len(compared))[compared]
    n = np.count_nonzero(compared)
    upper = [-1.0, 0.0]
    lower = [0.0, 1.0]
    return [(errors, upper, np.zeros(n), 1.0 / n), (-errors, lower, np.zeros(n), 1.0 / n)]
