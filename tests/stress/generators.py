"""Data that make solvers of eigenproblems stumble.

Each function takes a random generator and the number of groups k, and returns rows and the group of
each row, 0 to k - 1. There are at least three features, and every group has at least one row.
"""

from __future__ import annotations

import numpy as np


def gaussian(rng, k):
    """Nothing special: groups of unlike sizes, means and covariances."""
    d = int(rng.integers(3, 9))
    parts = [
        rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d)
        for n in rng.integers(d, 4 * d, k)
    ]
    return _stack(parts)


def isotropic(rng, k):
    """The group of largest error varies alike in all directions."""
    d = int(rng.integers(3, 9))
    variances = rng.integers(0, 4, (k, d)).astype(float)
    variances[-1] = 4.0
    return _on_axes(rng, variances, rotate=True)


def tied_block(rng, k):
    """The leading variances of the last group are equal."""
    d = int(rng.integers(3, 9))
    variances = rng.integers(0, 5, (k, d)).astype(float)
    variances[-1, : int(rng.integers(2, d + 1))] = 6.0
    return _on_axes(rng, variances, rotate=bool(rng.integers(2)))


def pca_ties(rng, k):
    """All rows together have equal eigenvalues; the groups do not."""
    d = int(rng.integers(3, 9))
    total = np.sort(rng.integers(1, 3, d))[::-1] * 6.0 * k
    share = rng.integers(1, 4, (k, d)).astype(float)
    share /= share.sum(axis=0)
    return _on_axes(rng, share * total, rotate=bool(rng.integers(2)), equal_sizes=True)


def crossings(rng, k):
    """Axes in common, so eigenvalues cross and never avoid each other."""
    d = int(rng.integers(3, 9))
    variances = rng.uniform(0.1, 5.0, (k, d)) * (rng.random((k, d)) < 0.8)
    return _on_axes(rng, variances, rotate=False)


def commuting(rng, k):
    """Crossings again, in directions that no feature has, several at once."""
    d = int(rng.integers(3, 9))
    return _on_axes(rng, rng.integers(0, 6, (k, d)).astype(float), rotate=True)


def near_ties(rng, k):
    """Crossings and ties that are missed by very little."""
    X, groups = (crossings, commuting, isotropic)[rng.integers(3)](rng, k)
    return X + 10.0 ** rng.uniform(-13, -4) * rng.normal(size=X.shape), groups


def rank_deficient(rng, k):
    """Rows in a subspace, fewer of them than features, constant columns, copies of columns."""
    d, within = int(rng.integers(4, 10)), int(rng.integers(1, 4))
    directions = rng.normal(size=(within, d))
    directions[:, rng.random(d) < 0.2] = 0.0
    directions[:, -1] = directions[:, 0]
    parts = [rng.normal(size=(n, within)) @ directions for n in rng.integers(2, 7, k)]
    return _stack(parts)


def one_row(rng, k):
    """All groups but the first have a single row."""
    d = int(rng.integers(3, 9))
    parts = [rng.normal(size=(1 if g else 3 * d, d)) * (1 + g) for g in range(k)]
    return _stack(parts)


def duplicates(rng, k):
    """Few distinct rows, each many times, some of them in several groups."""
    d = int(rng.integers(3, 7))
    distinct = rng.normal(size=(int(rng.integers(2, 6)), d))
    parts = [distinct[rng.integers(0, len(distinct), n)] for n in rng.integers(2, 40, k)]
    return _stack(parts)


def integers(rng, k):
    """Answers on a scale of few steps."""
    d = int(rng.integers(3, 9))
    parts = [rng.integers(0, int(rng.integers(2, 5)), (n, d)) * 1.0 for n in rng.integers(3, 30, k)]
    return _stack(parts)


def one_hot(rng, k):
    """One categorical column, spread out."""
    d = int(rng.integers(3, 7))
    parts = [
        np.eye(d)[rng.choice(d, n, p=rng.dirichlet(np.ones(d)))] for n in rng.integers(2, 30, k)
    ]
    return _stack(parts)


def scaled(rng, k):
    """Anything of the above, at a scale of 1e-12 to 1e12."""
    X, groups = UNSCALED[list(UNSCALED)[rng.integers(len(UNSCALED))]](rng, k)
    return X * 10.0 ** rng.uniform(-12, 12), groups


def unlike_features(rng, k):
    """Features in units of one thousandth to a thousand of each other, some far from zero."""
    X, groups = gaussian(rng, k)
    d = X.shape[1]
    return (X + 1e4 * (rng.random(d) < 0.3)) * 10.0 ** rng.uniform(-3, 3, d), groups


def redundant(rng, k):
    """Half of the columns follow from the others, so that the rows span half of the space."""
    X, groups = gaussian(rng, k)
    d = X.shape[1]
    return X @ rng.normal(size=(d, 2 * d)), groups


def extreme_units(rng, k):
    """Squares near the largest and the smallest number that may be computed with."""
    X, groups = UNSCALED[list(UNSCALED)[rng.integers(len(UNSCALED))]](rng, k)
    return X * 10.0 ** rng.choice([-58, -55, 52, 58]), groups


def far_apart(rng, k):
    """Groups whose means are much further apart than their rows."""
    X, groups = gaussian(rng, k)
    return X + 10.0 ** rng.uniform(1, 3) * rng.normal(size=(k, X.shape[1]))[groups], groups


UNSCALED = {
    make.__name__: make
    for make in (
        gaussian,
        isotropic,
        tied_block,
        pca_ties,
        crossings,
        commuting,
        near_ties,
        rank_deficient,
        one_row,
        duplicates,
        integers,
        one_hot,
    )
}
KINDS = {
    **UNSCALED,
    **{
        make.__name__: make
        for make in (scaled, unlike_features, far_apart, redundant, extreme_units)
    },
}


def any_kind(rng, k=None):
    """A problem of a kind drawn at random, of two to four groups if k is not given."""
    name = list(KINDS)[rng.integers(len(KINDS))]
    return KINDS[name](rng, int(rng.integers(2, 5)) if k is None else k)


def any_rank(rng, X):
    """A number of components that leaves something out."""
    return int(rng.integers(1, min(X.shape)))


def _stack(parts):
    return np.vstack(parts), np.repeat(np.arange(len(parts)), [len(part) for part in parts])


def _on_axes(rng, variances, rotate, equal_sizes=False):
    """Rows plus and minus the axes, or orthogonal directions, with these variances exactly."""
    d = variances.shape[1]
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0] if rotate else np.eye(d)
    parts = []
    for v in variances:
        half = np.sqrt(d * v)[:, None] * axes
        copies = 1 if equal_sizes else int(rng.integers(1, 4))
        parts.append(np.tile(np.vstack([half, -half]), (copies, 1)))
    return _stack(parts)
