"""Rates of a classifier by group, with intervals, from predicted probabilities.

The only file that imports fairlearn, to hand the predictions over to its ``MetricFrame``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest

from fairpca._typing import Array, Codes, Labels, Mask
from fairpca.metrics.auc import auc_interval

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
    base_rate : float
        The share of rows that are positive, to compare with the overall selection rate.
    by_group : dict of str to dict of label to Estimate
        Each metric of each group; Wilson's interval for those that are shares of rows.
    difference : dict of str to Estimate
        Largest less smallest value of a group: 0 is parity. The interval starts at 0 unless the
        rows tell that two groups differ; it holds for all pairs of groups at once.
    ratio : dict of str to Estimate
        Smallest over largest value of a group: 1 is parity, where the interval ends unless the
        rows tell that two groups differ. Not of the calibration.
    data : tuple of ndarray or None
        For each row whether it is positive, its predicted probability, and its group; None in an
        audit, which keeps no rows.
    positive : label
        The class that counts as positive: who is predicted to be of it is selected.
    """

    name: str
    overall: Mapping[str, float]
    base_rate: float
    by_group: Mapping[str, Mapping[Any, Estimate]]
    difference: Mapping[str, Estimate]
    ratio: Mapping[str, Estimate]
    data: tuple[NDArray[Any], Array, NDArray[Any]] | None
    positive: Any = True

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
    confidence: float
    seed: int


def check_confidence(confidence: float) -> None:
    """Refuse what is no level of an interval, such as a percentage."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence}: pass a number between 0 and 1, such as 0.95.")


def rates_by_group(
    name: str, positive: Mask, chance: Array, codes: Codes, labels: Labels, draws: Draws
) -> Outcomes:
    """All figures, and their intervals.

    Resampling the rows of a group without errors gives no errors, so that rates of 0 and 1 would be
    certain. So shares of rows have Wilson's interval, and gaps between them are drawn from what the
    counts leave possible (Jeffreys' prior). AUC and calibration are resampled.
    """
    members = [np.flatnonzero(codes == g) for g in range(len(labels))]
    groups = [_Rates(positive[rows], chance[rows]) for rows in members]
    table = np.array([rates.of(np.ones(rates.n)) for rates in groups])
    rng, level = np.random.default_rng(draws.seed), draws.confidence
    drawn = np.array(
        [[rates.of(_resampled(rates.n, rng)) for rates in groups] for _ in range(draws.n_boot)]
    )
    for g, rates in enumerate(groups):
        for metric, (count, n) in rates.counts().items():
            possible = rng.beta(count + 0.5, n - count + 0.5, draws.n_boot)
            drawn[:, g, METRICS.index(metric)] = possible
    own = [rates.estimates(table[g], drawn[:, g], level) for g, rates in enumerate(groups)]
    sizes = np.array([rates.n for rates in groups])
    overall = _Rates(positive, chance).of(np.ones(len(chance)))
    return Outcomes(
        name=name,
        overall=dict(zip(METRICS, overall.tolist(), strict=True)),
        base_rate=float(positive.mean()),
        by_group={
            metric: {label: own[g][metric] for g, label in enumerate(labels.tolist())}
            for metric in METRICS
        },
        difference={
            metric: gap_estimate(table[:, j], drawn[:, :, j], level)
            for j, metric in enumerate(METRICS)
        },
        ratio={
            metric: ratio_estimate(table[:, j], drawn[:, :, j], sizes, level)
            for j, metric in enumerate(METRICS[:-1])
        },
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

    def counts(self) -> dict[str, tuple[int, int]]:
        """Metrics that are shares of rows: how many rows, out of how many."""
        y, chosen = self._y, self._chosen
        up, n = int(y.sum()), self.n
        return {
            "accuracy": (int(np.sum(chosen == y)), n),
            "selection_rate": (int(chosen.sum()), n),
            "true_positive_rate": (int(chosen @ y), up),
            "false_positive_rate": (int(chosen @ (1 - y)), n - up),
        }

    def estimates(self, values: Array, drawn: Array, confidence: float) -> dict[str, Estimate]:
        """Each metric with its interval."""
        ends = np.nanquantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0)
        found = {
            metric: Estimate(*map(float, (values[j], ends[0, j], ends[1, j])))
            for j, metric in enumerate(METRICS)
        }
        for metric, (count, n) in self.counts().items():
            if n:
                low, high = binomtest(count, n).proportion_ci(confidence, method="wilson")
                found[metric] = Estimate(count / n, float(low), float(high))
        auc, up = found["auc"].value, int(self._y.sum())
        error = float(np.nanstd(drawn[:, METRICS.index("auc")]))
        fewest = max(min(up, self.n - up), 1)
        found["auc"] = Estimate(auc, *auc_interval(auc, error, fewest, confidence))
        return found


def gap_estimate(values: Array, drawn: Array, confidence: float) -> Estimate:
    """Largest less smallest value of a group, with its interval.

    The differences of all pairs get simultaneous intervals, whose half-widths are a common multiple
    of the pairs' standard errors. The gap lies between the largest lower and the largest upper end:
    a difference whose sign is not known has the lower end 0.
    """
    first, second = np.triu_indices(len(values), 1)
    differences = values[first] - values[second]
    departures = np.abs(drawn[:, first] - drawn[:, second] - differences)
    errors = np.sqrt(np.nanmean(departures**2, axis=0))
    largest = np.fmax.reduce(departures / np.where(errors > 0, errors, 1.0), axis=1)
    widths = float(np.nanquantile(largest, confidence)) * errors
    apart = np.abs(differences)
    low, high = float((apart - widths).max()), float((apart + widths).max())
    return Estimate(float(apart.max()), max(low, 0.0), high)


def ratio_estimate(values: Array, drawn: Array, sizes: Array, confidence: float) -> Estimate:
    """Smallest over largest value of a group, with its interval: a gap of logarithms."""
    # A rate of 0 counts as half a row, for it has no logarithm; what is drawn may be less.
    logs = np.log(np.maximum(values, 0.5 / sizes)), np.log(np.maximum(drawn, 0.1 / sizes))
    _, low, high = gap_estimate(*logs, confidence)
    if values.min() > 0:
        value = float(values.min() / values.max())
        return Estimate(value, min(float(np.exp(-high)), value), max(float(np.exp(-low)), value))
    if values.max() > 0:
        return Estimate(0.0, 0.0, float(np.exp(-low)))
    return Estimate(1.0, 0.0, 1.0)  # nobody is counted in any group: parity, and nothing is known
