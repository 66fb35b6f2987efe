"""Rates of a classifier by group, with intervals, from predicted probabilities.

The only file that imports fairlearn, to hand the predictions over to its ``MetricFrame``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fairpca._typing import Array, Codes, Labels, Mask

METRICS = (
    "accuracy",
    "auc",
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "calibration",
)


class Estimate(NamedTuple):
    """A figure with its confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Outcomes:
    """Rates of one classifier by group, on rows it has not seen.

    The metrics are ``"accuracy"``, ``"auc"``, ``"selection_rate"`` (how often the positive class is
    predicted), ``"true_positive_rate"``, ``"false_positive_rate"`` and ``"calibration"`` (mean
    predicted probability less the share of positives: above zero, the group is overrated).

    Attributes
    ----------
    name : str
        What the classifier saw: ``"scores"``, ``"pca"`` or ``"features"``.
    overall : dict of str to float
        Each metric over all rows.
    by_group : dict of str to dict of label to Estimate
        Each metric of each group.
    difference : dict of str to Estimate
        Largest less smallest value of a group: 0 is parity.
    ratio : dict of str to Estimate
        Smallest over largest value of a group: 1 is parity. Not of the calibration.
    data : tuple of ndarray or None
        For each row whether it is positive, its predicted probability, and its group; None in an
        audit, which keeps no rows.
    """

    name: str
    overall: Mapping[str, float]
    by_group: Mapping[str, Mapping[Any, Estimate]]
    difference: Mapping[str, Estimate]
    ratio: Mapping[str, Estimate]
    data: tuple[NDArray[Any], Array, NDArray[Any]] | None

    def to_metric_frame(self, metrics: Any = None) -> Any:
        """The predictions as a :class:`fairlearn.metrics.MetricFrame`.

        Needs ``pip install "fairpca[outcomes]"``.

        Parameters
        ----------
        metrics : callable or dict of callables, optional
            Any metrics of true and predicted classes, 0 and 1; by default the selection rate and
            the rates of true and false positives.

        Returns
        -------
        fairlearn.metrics.MetricFrame
        """
        try:
            from fairlearn import metrics as fairlearn
        except ImportError as error:
            raise ImportError(
                "MetricFrame needs fairlearn; install it with pip install 'fairpca[outcomes]'."
            ) from error
        if self.data is None:
            raise ValueError(
                "these outcomes belong to an audit, which keeps no rows; call "
                "fairpca.metrics.classifier_outcomes for those that do."
            )
        positive, chance, groups = self.data
        names = ("selection_rate", "true_positive_rate", "false_positive_rate")
        return fairlearn.MetricFrame(
            metrics=metrics or {name: getattr(fairlearn, name) for name in names},
            y_true=positive,
            y_pred=(chance >= 0.5).astype(int),
            sensitive_features=groups,
        )


class Draws(NamedTuple):
    """How intervals are drawn."""

    n_boot: int
    levels: list[float]
    seed: int


def rates_by_group(
    name: str, positive: Mask, chance: Array, codes: Codes, labels: Labels, draws: Draws
) -> Outcomes:
    """All figures, and their intervals from samples of each group's rows."""
    members = [np.flatnonzero(codes == g) for g in range(len(labels))]
    groups = [_Rates(positive[rows], chance[rows]) for rows in members]
    table = np.array([rates.of(np.ones(rates.n)) for rates in groups])
    rng = np.random.default_rng(draws.seed)
    drawn = np.array(
        [[rates.of(_resampled(rates.n, rng)) for rates in groups] for _ in range(draws.n_boot)]
    )
    ends = np.nanquantile(drawn, draws.levels, axis=0)
    apart = _estimates(np.ptp, table, drawn, draws.levels)
    ratio = _estimates(_smallest_over_largest, table, drawn, draws.levels)
    overall = _Rates(positive, chance).of(np.ones(len(chance)))
    return Outcomes(
        name=name,
        overall=dict(zip(METRICS, overall.tolist(), strict=True)),
        by_group={
            metric: {
                label: Estimate(float(table[g, j]), float(ends[0, g, j]), float(ends[1, g, j]))
                for g, label in enumerate(labels.tolist())
            }
            for j, metric in enumerate(METRICS)
        },
        difference=dict(zip(METRICS, apart, strict=True)),
        ratio=dict(zip(METRICS[:-1], ratio, strict=False)),
        data=(positive.astype(int), chance, labels[codes]),
    )


def _resampled(n: int, rng: np.random.Generator) -> Array:
    """How often each of n rows is drawn."""
    return np.bincount(rng.integers(n, size=n), minlength=n).astype(np.float64)


class _Rates:
    """The metrics of some rows under any weights; rows are sorted once."""

    def __init__(self, positive: Mask, chance: Array) -> None:
        order = np.argsort(chance, kind="stable")
        self.n = len(order)
        self._p, self._y = chance[order], positive[order].astype(float)
        self._chosen = (self._p >= 0.5).astype(float)
        self._first = np.searchsorted(
            self._p, self._p, side="left"
        )  # of those with the same chance
        self._last = np.searchsorted(self._p, self._p, side="right")

    def of(self, weights: Array) -> Array:
        """One value for each of ``METRICS``; weights are in the order of the sorted rows."""
        w, y, chosen = weights, self._y, self._chosen
        total, up = w.sum(), w @ y
        below = np.concatenate([[0.0], np.cumsum(w * (1 - y))])
        outranked = 0.5 * (below[self._first] + below[self._last])
        with np.errstate(invalid="ignore"):  # a sample without positives has no rate of them
            return np.array(
                [
                    w @ (chosen == y) / total,
                    (w * y) @ outranked / (up * (total - up)),
                    w @ chosen / total,
                    w @ (chosen * y) / up,
                    w @ (chosen * (1 - y)) / (total - up),
                    w @ (self._p - y) / total,
                ]
            )


def _estimates(
    compare: Callable[..., Any], table: Array, drawn: Array, levels: list[float]
) -> list[Estimate]:
    """A comparison of the groups for each metric, with its interval."""
    values = compare(table, axis=0)
    low, high = np.nanquantile(compare(drawn, axis=1), levels, axis=0)
    return [Estimate(*map(float, row)) for row in zip(values, low, high, strict=True)]


def _smallest_over_largest(values: Array, axis: int) -> Array:
    largest = values.max(axis=axis)
    return np.where(largest > 0, values.min(axis=axis) / np.where(largest > 0, largest, 1.0), 1.0)
