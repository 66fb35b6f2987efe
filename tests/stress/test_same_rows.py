"""The same rows give the same answer: in another order, turned, in other units, by other names."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from stress.checks import fit
from stress.estimators import EVERY, FOR_TWO_GROUPS
from stress.generators import far_apart, gaussian, integers, one_row, unlike_features
from stress.oracles import Moments

pytestmark = pytest.mark.stress

UNIQUE = (gaussian, integers, one_row, unlike_features, far_apart)  # data with one answer only
INEXACT = ("golden", "weights")  # end where they end
SIZED = [name for name in EVERY if name != "robust"]  # whose radius is in units, and counts rows


def rows(rng, name):
    k = 2 if name in FOR_TWO_GROUPS else int(rng.choice([2, 2, 3, 4]))
    X, groups = UNIQUE[rng.integers(len(UNIQUE))](rng, k)
    values = np.linalg.eigvalsh(np.cov(X.T))
    if X.shape[1] < 4 or values[-2] - values[-3] < 1e-3 * values[-1]:
        return rows(rng, name)
    return X, groups


def variance(X, groups):
    return Moments.of_rows(X, groups).scale


def unchanged(groups):
    return {g: g for g in np.unique(groups).tolist()}


def compare(name, first, second, labels, within, scale=1.0, unit=1.0):
    """Both fits must agree.

    Group g of the first is ``labels[g]`` in the second. Errors are measured in units of ``scale``,
    and those of the second in units that are ``unit`` times as large.
    """
    if first.relative_errors:
        scale = unit = 1.0
    found = dict(zip(second.groups_.tolist(), second.group_errors_ / unit, strict=True))
    errors = np.array([found[labels[g]] for g in first.groups_.tolist()])
    assert second.harmed_group_ == labels[first.harmed_group_]
    if name == "robust":  # flat where it is least, so its place is known less well
        off = abs(second.robust_error_ / unit - first.robust_error_)
        within("same rows: robust error", off / scale, 1e-10)
        assert second.status_ == first.status_
        return
    if len(labels) == 2 and name not in INEXACT:
        off = np.abs(errors - first.group_errors_).max()
        within(f"same rows, two groups: {name}", off / scale, 1e-7)
        assert second.status_ == first.status_
        return
    # More groups are solved to their gap; the searches for comparison say nothing about theirs.
    gap = np.nan_to_num(max(first.duality_gap_, second.duality_gap_ / unit))
    pairs = [(first.pca_reconstruction_error_, second.pca_reconstruction_error_)]
    if name not in INEXACT:
        pairs.append((first.disparity_, second.disparity_))
        pairs.append((first.reconstruction_error_, second.reconstruction_error_))
    for a, b in pairs:
        within(f"same rows, more groups: {name}", (abs(a - b / unit) - 2 * gap) / scale, 1e-4)


@pytest.mark.parametrize("name", EVERY)
def test_order_of_rows_and_columns(name, rng, within):
    X, groups = rows(rng, name)
    order, columns = rng.permutation(len(X)), rng.permutation(X.shape[1])
    first = fit(clone(EVERY[name]), X, groups)
    second = fit(clone(EVERY[name]), X[order][:, columns], groups[order])
    compare(name, first, second, unchanged(groups), within, variance(X, groups))


@pytest.mark.parametrize("name", SIZED)
def test_turned_moved_and_in_other_units(name, rng, within):
    X, groups = rows(rng, name)
    d = X.shape[1]
    Q, size = np.linalg.qr(rng.normal(size=(d, d)))[0], 10.0 ** rng.uniform(-9, 9)
    first = fit(clone(EVERY[name]), X, groups)
    second = fit(clone(EVERY[name]), size * (X @ Q + X.std() * rng.normal(size=d)), groups)
    compare(name, first, second, unchanged(groups), within, variance(X, groups), size**2)


@pytest.mark.parametrize("name", SIZED)
def test_weights_are_copies(name, rng, within):
    X, groups = rows(rng, name)
    copies = rng.integers(1, 4, len(X))
    weighted = fit(clone(EVERY[name]), X, groups, sample_weight=copies)
    copied = fit(clone(EVERY[name]), X.repeat(copies, axis=0), groups.repeat(copies))
    compare(name, weighted, copied, unchanged(groups), within, variance(X, groups))


LABELS = {
    "text": lambda g: np.array([f"group {x}" for x in g]),
    "numbers that sort otherwise": lambda g: 10 - g,
    "fractions": lambda g: g / 8 - 0.25,
    "objects": lambda g: np.array([f"ä{x}" for x in g], dtype=object),
    "categories": lambda g: pd.Categorical([f"c{9 - x}" for x in g]),
    "a list": lambda g: [f"{x}" for x in g],
    "small integers": lambda g: g.astype(np.int8),
}


@pytest.mark.parametrize("kind", LABELS)
def test_kinds_of_labels(kind, rng, within):
    name = list(EVERY)[rng.integers(len(EVERY))]
    X, groups = rows(rng, name)
    labels = LABELS[kind](groups)
    called = dict(zip(groups.tolist(), np.asarray(labels).tolist(), strict=True))
    first = fit(clone(EVERY[name]), X, groups)
    second = fit(clone(EVERY[name]), X, labels)
    compare(name, first, second, called, within, variance(X, groups))
