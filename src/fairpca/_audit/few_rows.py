"""What few rows decide: columns whose scale they make up, and figures that they cannot move."""

from __future__ import annotations

from math import nan
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from fairpca._audit.people import People
from fairpca._audit.record import DecidingColumn, Robust
from fairpca._audit.setup import LEAST, Setup
from fairpca._input.rows import dense
from fairpca._sklearn import safe_indexing
from fairpca._typing import Array, Codes, Mask

_TRIMMED = (0.01, 0.05)  # shares of each group that trimmed means leave out
_MOST_COLUMNS = 2000  # Tables with more are not searched for deciding columns.
_FEW = 0.05  # largest share of a group's rows that counts as few
_MANY_ALIKE = 0.02  # An extreme value in a larger share of the rows belongs to the column.


def robust_figures(
    errors: Array, codes: Codes, weights: Array, others: Mask, wanted: Mask
) -> list[Robust | None]:
    """Robust figures of the wanted groups against their ``others``, a mask of shape (k, k)."""
    # Trimming the rows that contribute most to a *difference* of means would take them all from the
    # smaller group. Here every group loses the same share of its own rows.
    order = np.argsort(errors, kind="stable")
    errors = errors[order]
    codes = codes[order]
    weights = weights[order]
    reached = np.empty(len(codes))  # share of its own group up to each row
    for g in np.unique(codes):
        below = np.cumsum(weights[codes == g])
        reached[codes == g] = np.append(0.0, below[1:] / below[-1])  # one row is always kept
    found: list[Robust | None] = [None] * len(wanted)
    for g in np.flatnonzero(wanted).tolist():
        both = np.array([weights * (codes == g), weights * others[g][codes]])
        median, median_of_others = (median_of(errors, own) for own in both)
        trimmed = {}
        for share in _TRIMMED:
            kept = both * (reached <= 1 - share + 1e-9)
            own, rest = kept @ errors / kept.sum(axis=1)
            trimmed[share] = _gap(own, rest)
        pairs = roc_auc_score(codes == g, errors, sample_weight=both.sum(axis=0))
        found[g] = Robust(median, _gap(median, median_of_others), trimmed, float(pairs))
    return found


def _gap(own: float, rest: float) -> float:
    if rest <= 0:
        return nan
    return float(own / rest - 1)


def median_of(errors: Array, weights: Array) -> float:
    """The weighted median of sorted errors."""
    errors = errors[weights > 0]
    below = np.cumsum(weights[weights > 0])
    places = [np.searchsorted(below, below[-1] / 2, side) for side in ("left", "right")]
    return float(errors[np.minimum(places, len(errors) - 1)].mean())


class _Held(NamedTuple):
    """Held-out rows, and what the search for deciding columns needs to know of them."""

    X: Array
    codes: Codes
    errors: Array  # weighted
    totals: Array  # by group
    sizes: Codes  # by group
    judged: Codes
    sides: Array  # the judged groups, then their others, as masks of groups


def deciding_columns(setup: Setup, rows: Codes, errors: Array) -> list[DecidingColumn]:
    """Columns whose scale depends on few rows; deciding columns come first.

    A column decides if these rows make up much of the error of a judged group, or of those whom it
    is compared with, whether they are judged or not. If one person makes up as much of a judged
    group's error, the column in which that person is most extreme is listed too.
    """
    people = setup.people
    if people is None or not len(rows) or len(people.feature_names) > _MOST_COLUMNS:
        return []
    held = _held(setup, people, rows, errors)
    thresholds = setup.origin.thresholds
    most_rows = max(int(thresholds.few_rows * len(held.X)), 1)
    hanging = {j: at for j, x in enumerate(held.X.T) if len(at := _few_rows(x, most_rows))}
    persons = people.positions[rows]
    alone = _alone(held, thresholds.decides)
    alone = {j: np.flatnonzero(np.isin(persons, persons[at])) for j, at in alone.items()}
    candidates = alone | hanging
    found = []
    fewest = np.full(len(held.X), len(held.X))  # the fewest rows by which a column decides
    for j, at in sorted(candidates.items(), key=lambda item: (len(item[1]), item[0])):
        hangs = j in hanging
        # A value that decides by itself must not accuse other columns that share its row.
        own_errors = held.errors[at] * (fewest[at] >= len(at))
        part = np.bincount(held.codes[at], own_errors, minlength=len(held.totals)).astype(float)
        group = _decided_group(held, at, part, thresholds.decides)
        label = None
        share = 0.0
        if group is not None:
            label = people.labels[group]
            share = float(part[group] / held.totals[group])
            if hangs:
                fewest[at] = np.minimum(fewest[at], len(at))
        own = DecidingColumn(
            name=people.feature_names[j],
            n_rows=len(at) // people.n_copies,
            decides=hangs and group is not None,
            group=label,
            share_of_error=share,
            **_values(held.X[:, j], at, hangs),
        )
        found.append(own)
    return sorted(found, key=lambda column: not column.decides)


def _held(setup: Setup, people: People, rows: Codes, errors: Array) -> _Held:
    k = len(people.labels)
    codes = people.codes[rows]
    weighted = errors * people.weights[rows]
    judged = np.flatnonzero(setup.judged)
    return _Held(
        X=dense(safe_indexing(people.values, rows)),
        codes=codes,
        errors=weighted,
        totals=np.bincount(codes, weighted, minlength=k).astype(float),
        sizes=np.bincount(codes, minlength=k),
        judged=judged,
        sides=np.concatenate([np.eye(k)[judged], setup.others[judged]]),
    )


def _alone(held: _Held, decides: float) -> dict[int, Codes]:
    """By column, the person who is most extreme in it and makes up much of a group's error."""
    alone = {}
    for g in held.judged.tolist():
        row = int(np.where(held.codes == g, held.errors, -1.0).argmax())
        if held.errors[row] > decides * held.totals[g]:
            X = held.X
            far = np.abs(X[row] - X.mean(axis=0)) / np.maximum(X.std(axis=0), LEAST)
            alone[int(far.argmax())] = np.array([row])
    return alone


def _decided_group(held: _Held, at: Codes, part: Array, decides: float) -> int | None:
    """The group whose error these rows make up, given how much of each group's; None if none.

    If the rows are among those whom a group is compared with, the group with most of their error.
    """
    n_rows = held.sides @ np.bincount(held.codes[at], minlength=len(held.totals))
    is_few = n_rows <= np.maximum(_FEW * held.sides @ held.sizes, 1)
    much = held.sides @ part > decides * held.sides @ held.totals
    deciding = np.flatnonzero(is_few & much)
    if not len(deciding):
        return None
    first = int(deciding[0])
    if first < len(held.judged):
        return int(held.judged[first])
    return int(part.argmax())


def _values(x: Array, at: Codes, hangs: bool) -> dict[str, Any]:
    """How these rows of a column differ from all others."""
    values = np.unique(x[at])
    others = np.delete(x, at)
    middle = np.median(x)
    side = np.sign(values[[0, -1]] - middle).sum() / 2  # 0 if these rows lie on both sides
    far = side * others
    if side == 0:
        far = np.abs(others - middle)
    next_value = others[far.argmax()]
    squares = (x - x.mean()) ** 2
    value = None
    if hangs and len(values) == 1:
        value = float(values[0])
    return {
        "value": value,
        "next_value": float(next_value),
        "share_of_variance": float(squares[at].sum() / squares.sum()),
        "near_constant": bool(np.ptp(others) == 0),
    }


def _few_rows(x: Array, most: int) -> Codes:
    """The few rows that the scale of a column depends on; empty if there are none.

    They are the only ones that differ from the median, or make up half of the variance, or share an
    extreme value that makes up a quarter of it, such as a 0 that stands for a missing value.
    """
    different = np.flatnonzero(x != np.median(x))
    if len(different) <= most:
        return different
    squares = (x - x.mean()) ** 2
    largest = np.argpartition(-squares, most)[:most]
    largest = largest[np.argsort(-squares[largest], kind="stable")]
    reached = np.cumsum(squares[largest]) > squares.sum() / 2
    if reached.any():
        alike = np.flatnonzero(squares >= squares[largest[int(reached.argmax())]])
        if len(alike) <= most:
            return alike
    extreme = x == x[squares.argmax()]
    shared = extreme.sum() <= _MANY_ALIKE * len(x) and np.ptp(x[~extreme]) > 0
    return np.flatnonzero(extreme & (shared and squares[extreme].sum() > squares.sum() / 4))
