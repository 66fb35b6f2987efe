"""Figures from single rows that a few unusual people cannot move, and columns that few rows decide.

A mean of squared errors hangs on its largest terms. Leaving out the rows with the largest shares in
a *difference* of means would take them all from the smaller group, so that sound findings look as
if few rows made them. Here every group loses the same share of its own rows, or nobody does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairpca._audit.record import DecidingColumn, Robust
from fairpca._audit.verdict import Thresholds
from fairpca._typing import Array, Codes, Mask

TRIMMED = (0.01, 0.05)  # shares of every group that are left out
_FEW_OF_GROUP = 0.05  # more rows of a group than this share are not few
_ROUNDING = 1e-12  # of the squared distance from the mean: such gains are none


def robust_figures(
    errors: Array, codes: Codes, weights: Array, judged: Mask, reference: int | None
) -> list[Robust | None]:
    """The robust figures of each judged group against all others or the reference; else None."""
    order = np.argsort(errors, kind="stable")
    errors, codes, weights = errors[order], codes[order], weights[order]
    trimmed = {
        share: _trimmed_sums(errors, codes, weights, len(judged), share) for share in TRIMMED
    }
    found: list[Robust | None] = []
    for g in range(len(judged)):
        if not judged[g] or g == reference:
            found.append(None)
            continue
        places = np.arange(len(judged))
        others = places != g if reference is None else places == reference
        own, rest = np.where(codes == g, weights, 0.0), np.where(others[codes], weights, 0.0)
        medians = _median(errors, own), _median(errors, rest)
        gaps = {
            share: _ratio(sums[g] / totals[g], sums[others].sum() / totals[others].sum())
            for share, (sums, totals) in trimmed.items()
        }
        found.append(Robust(medians[0], _ratio(*medians), gaps, _pairs(errors, own, rest)))
    return found


def better_off(errors: Array, distances: Array, codes: Codes, weights: Array, k: int) -> Array:
    """Share of each group whose error is smaller under the second projection, of shape (k,)."""
    gains = errors[1] < errors[0] - _ROUNDING * distances
    totals = np.bincount(codes, weights, minlength=k)
    return np.asarray(
        np.bincount(codes, weights * gains, minlength=k) / np.where(totals, totals, 1)
    )


def deciding_columns(
    X: Any,
    names: Sequence[str],
    errors: Array,
    codes: Codes,
    labels: Sequence[Any],
    judged: Mask,
    thresholds: Thresholds,
) -> list[DecidingColumn]:
    """Columns whose scale hangs on few rows, those that decide first.

    ``errors`` are the weighted squared errors of the rows under what is judged.
    """
    few = max(int(thresholds.few_rows * len(X)), 1)
    sizes, sums = np.bincount(codes, minlength=len(labels)), np.bincount(codes, errors)
    found = []
    for j, name in enumerate(names):
        x = np.asarray(X[:, j], np.float64)
        middle = float(np.median(x))
        rows, near_constant = _few_rows(x, middle, few)
        if rows is None:
            continue
        part = np.bincount(codes[rows], errors[rows], minlength=len(labels))
        few_of_group = np.bincount(codes[rows], minlength=len(labels)) <= np.maximum(
            _FEW_OF_GROUP * sizes, 1
        )
        deciding = judged & few_of_group & (part > thresholds.decides * sums)
        values, others = np.unique(x[rows]), np.delete(x, rows)
        side = (
            np.sign(values[0] - middle) if (values > middle).all() or (values < middle).all() else 0
        )
        next_value = others[(side * others if side else np.abs(others - middle)).argmax()]
        squares = (x - x.mean()) ** 2
        found.append(
            DecidingColumn(
                name=name,
                n_rows=len(rows),
                value=float(values[0]) if len(values) == 1 else None,
                next_value=float(next_value),
                share_of_variance=float(squares[rows].sum() / squares.sum()),
                near_constant=near_constant,
                decides=bool(deciding.any()),
                group=labels[int(deciding.argmax())] if deciding.any() else None,
            )
        )
    return sorted(found, key=lambda column: (not column.decides, column.n_rows))


def _few_rows(x: Array, middle: float, few: int) -> tuple[Codes | None, bool]:
    """The few rows that a column hangs on, or None; whether all other rows are equal."""
    different = np.flatnonzero(x != middle)
    if 0 < len(different) <= few:
        return different, True
    if len(different) == 0 or len(x) < 4:
        return None, False
    squares = (x - x.mean()) ** 2
    largest = np.argpartition(squares, len(x) - few)[len(x) - few :]
    largest = largest[np.argsort(-squares[largest], kind="stable")]
    reached = np.cumsum(squares[largest]) > squares.sum() / 2
    return (largest[: int(reached.argmax()) + 1], False) if reached.any() else (None, False)


def _ratio(own: float, rest: float) -> float:
    return float(own / rest - 1.0) if rest > 0 else float("nan")


def _median(errors: Array, weights: Array) -> float:
    """The weighted median of sorted errors."""
    errors, weights = errors[weights > 0], weights[weights > 0]
    below = np.cumsum(weights)
    places = [np.searchsorted(below, below[-1] / 2, side) for side in ("left", "right")]
    return float(errors[np.minimum(places, len(errors) - 1)].mean())


def _pairs(errors: Array, own: Array, rest: Array) -> float:
    """Share of pairs in which the first has the larger error; ties count half."""
    below = np.append(0.0, np.cumsum(rest))
    smaller = below[np.searchsorted(errors, errors, "left")]
    not_larger = below[np.searchsorted(errors, errors, "right")]
    return float(own @ (smaller + not_larger) / (2 * below[-1] * own.sum()))


def _trimmed_sums(
    errors: Array, codes: Codes, weights: Array, k: int, share: float
) -> tuple[Array, Array]:
    """Sums of errors and weights by group without the largest errors, ``share`` of each group."""
    sums, totals = np.zeros(k), np.zeros(k)
    for g in range(k):
        rows = np.flatnonzero(codes == g)
        below = np.cumsum(weights[rows])
        if len(rows):
            kept = rows[(below <= (1 - share + 1e-9) * below[-1]) | (rows == rows[0])]
            sums[g], totals[g] = errors[kept] @ weights[kept], weights[kept].sum()
    return sums, totals
