"""What fitting again adds to the variance of held-out means.

Held-out errors are not independent: row i is measured under a projection that row j helped to fit,
and the other way round. Write ``b_ij / n`` for what row j, as one of the n rows fitted to, does to
the error of row i, beyond what it does to all rows of that group on average. Then the mean of m
held-out errors has, besides the variance of independent rows, a part

    var( sum_ij b_ij ) / (m n)^2

of which the spread among the rows shows one half: it sees each b_ij, but not that b_ij and b_ji go
together. The whole of it can be seen fold by fold. Leaving out fold f changes the errors of its own
rows by the b_ij of pairs inside the fold, beyond what it changes those of the rows outside:

    effect_f = mean over rows in f of e(-f) - e    minus    the same mean over rows not in f

with ``e(-f)`` the errors under the projection fitted without the fold and ``e`` those under the
projection fitted to all rows. There are as many pairs in a fold, for its number of rows, as in the
data, so these effects vary from fold to fold as much as that part of the mean does. One half of
their variance is what is missing (:func:`refit_variance`). It costs no further fit and no further
pass: errors of a projection are a function of the moments of the fold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from fairpca._audit.dealt import Dealt, FoldKey, groups_alone
from fairpca._moments.group_moments import GroupMoments
from fairpca._typing import Array

if TYPE_CHECKING:
    from fairpca._audit.held_out import FoldFit


def refit_effects(dealt: Dealt, fits: Mapping[FoldKey, FoldFit], whole: FoldFit) -> Array:
    """What leaving out each fold does to its rows, of shape (n_estimators, n_folds, n_groups).

    ``fits`` are the projections fitted without each fold, ``whole`` those fitted to all rows. A
    group that is not in a fold has no effect.
    """
    everything = groups_alone(reduce(GroupMoments.merge, dealt.of_repeat(0).values()))
    k = int(everything.groups.max()) + 1
    total = _weights(everything, k)
    *anywhere, fitted = _group_errors(everything, [*fits.values(), whole], k)
    effects = np.zeros((len(fits), *fitted.shape))
    for f, (key, fit) in enumerate(fits.items()):
        part = groups_alone(dealt.parts[key])
        without, within = _group_errors(part, [fit, whole], k)
        inside, weights = without - within, _weights(part, k)
        rest = total - weights
        outside = (total * (anywhere[f] - fitted) - weights * inside) / np.where(rest > 0, rest, 1)
        effects[f] = np.where((weights > 0) & (rest > 0), inside - outside, 0.0)
    return effects.swapaxes(0, 1)


def refit_variance(effects: Array) -> Any:
    """The variance that the spread among rows does not show; folds along the first axis.

    Examples
    --------
    >>> import numpy as np
    >>> float(refit_variance(np.array([1.0, 3.0])))
    1.0
    """
    return 0.5 * effects.var(axis=0, ddof=1)


def _group_errors(moments: GroupMoments, fits: Sequence[FoldFit], k: int) -> Array:
    """Average squared errors of shape (n_fits, n_estimators, k); 0 for a group without rows."""
    operand, mean = moments.operand(), moments.mean
    errors = np.zeros((len(fits), len(fits[0].projections) - 1, k))
    for f, fit in enumerate(fits):
        scale = np.ones(len(mean)) if fit.scale is None else fit.scale
        variances, to_groups = operand.diagonals / scale**2, (moments.means - mean) / scale
        for i, fitted in enumerate(fit.projections[:-1]):
            U, shift = fitted.components_, fitted.mean_ - mean / scale
            across = shift - (shift @ U.T) @ U
            scaled = (U / scale).T
            captured = np.einsum("kir,ir->k", operand.products(scaled), scaled)
            spread = variances.sum(axis=1) - captured
            errors[f, i, moments.groups] = spread - 2 * to_groups @ across + shift @ across
    return errors


def _weights(moments: GroupMoments, k: int) -> Array:
    weights = np.zeros(k)
    weights[moments.groups] = moments.weights
    return weights
