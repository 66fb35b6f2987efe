"""What scores keep and what they reveal, measured as Lee et al. do in both of their studies.

The published figures of a classifier are those of an RBF support vector machine that was trained on
the scores of the *test* rows and then judged on the same rows. That flatters: it is no forecast for
anybody else. The honest figure trains on the scores of the training rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import cdist, pdist
from sklearn.svm import SVC
from sklearn.utils import Bunch

from reproduction.tools import Array, Mask


class Revealed(NamedTuple):
    """Measures of one projection on one split."""

    explained_variance: float  # percent of the variance of the test rows
    mmd2: float
    accuracy: float  # in sample, as published
    parity_gap: float
    held_out_accuracy: float
    held_out_parity_gap: float


def width_of_kernel(scores: Array) -> float:
    """The squared sigma of the Gaussian kernel: half the median squared distance."""
    return float(np.median(pdist(scores, "sqeuclidean"))) / 2


def mmd2_of(first: Array, second: Array, width: float) -> float:
    """Squared maximum mean discrepancy of two samples."""

    def mean(a: Array, b: Array) -> float:
        return float(np.exp(-cdist(a, b, "sqeuclidean") / (2 * width)).mean())

    return mean(first, first) + mean(second, second) - 2 * mean(first, second)


def measure(split: Bunch, basis: Array, width: float, classify: bool = True) -> Revealed:
    """All measures of the projection onto the columns of ``basis``."""
    scores, test_scores = split.data @ basis, split.test_data @ basis
    C = np.cov(split.test_data.T)
    explained = 100 * float(np.trace(basis.T @ C @ basis) / np.trace(C))
    in_first = split.test_sensitive_features == split.groups[0]
    mmd2 = mmd2_of(test_scores[in_first], test_scores[~in_first], width)
    if not classify:
        return Revealed(explained, mmd2, *[np.nan] * 4)
    published = _classified(test_scores, split.test_target, test_scores, split, in_first)
    honest = _classified(scores, split.target, test_scores, split, in_first)
    return Revealed(explained, mmd2, *published, *honest)


def _classified(
    scores: Array, target: Array, test_scores: Array, split: Bunch, in_first: Mask
) -> tuple[float, float]:
    """Accuracy, and difference of selection rates, on the test rows."""
    predicted = SVC(gamma=1).fit(scores, target).predict(test_scores)
    gap = abs(predicted[in_first].mean() - predicted[~in_first].mean())
    return float((predicted == split.test_target).mean()), float(gap)
