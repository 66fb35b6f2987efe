"""Which rows go to which fold, for rows that are all at hand.

Streams get their folds by a hash of the row's position (:mod:`fairpca._moments.fold_labels`).
"""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Number
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from fairpca._input.checks import check_integer
from fairpca._input.device import is_dask
from fairpca._input.labels import encode_groups
from fairpca._input.rows import as_rows
from fairpca._moments.fold_labels import NEVER
from fairpca._moments.group_moments import GroupMoments, moments_of_rows
from fairpca._moments.learn import check_grams
from fairpca._typing import Codes

_MOST_SHOWN = 100  # characters of what was passed


def learn_folds(
    X: Any, groups: Any, sample_weight: Any, cv: Any, rng: np.random.RandomState
) -> GroupMoments:
    """Moments of rows in memory with folds kept apart, so many or those of a splitter.

    A splitter whose test sets overlap, because it repeats itself, costs a pass for each repeat.
    """
    if is_dask(X):
        seed = _seed(rng)
        return GroupMoments.from_data(X, groups, sample_weight, folds=cv, fold_seed=seed)
    rows = as_rows(X)
    check_grams(rows)
    codes, _ = encode_groups(groups, rows.n_rows)
    learnt = GroupMoments()
    for repeat, folds in enumerate(fold_numbers(cv, codes, rng)):
        part = moments_of_rows(rows, groups, sample_weight, folds=folds)
        if repeat:
            part = part.relabel({c: c._replace(repeat=repeat) for c in part.groups.tolist()})
        learnt = learnt.merge(part)
    return learnt


def fold_numbers(cv: Any, codes: Codes, rng: np.random.RandomState) -> Iterator[Codes]:
    """For each repeat the fold of every row, or ``NEVER``; so many folds, or those of a splitter.

    ``codes`` are the groups, which are spread evenly.
    """
    if isinstance(cv, Number | str):
        check_integer("cv", cv, 2)
        yield deal_folds(codes, int(cv), np.random.default_rng(_seed(rng)))  # type: ignore[arg-type]
    else:
        yield from _split(cv, codes)


def deal_folds(
    codes: Codes, n_folds: int | Codes, rng: np.random.Generator, before: Codes | None = None
) -> Codes:
    """A fold for each row at random, the rows of every group spread as evenly as they can be.

    Groups may have different numbers of folds. Rows that come in blocks are spread evenly over all
    of them if ``before`` counts the rows of each group in earlier ones.
    """
    folds = np.empty(len(codes), np.intp)
    for g in np.unique(codes).tolist():
        members = rng.permutation(np.flatnonzero(codes == g))
        n_of_group = n_folds if isinstance(n_folds, int) else int(n_folds[g])
        first = rng.integers(n_of_group) if before is None else before[g]
        folds[members] = (first + np.arange(len(members))) % n_of_group
    return folds


def _seed(rng: np.random.RandomState) -> int:
    return int(rng.randint(2**31 - 1))


def _split(cv: Any, codes: Codes) -> Iterator[Codes]:
    """The folds of a splitter or of (train, test) pairs."""
    n, n_folds = len(codes), 0
    folds = np.full(n, NEVER)
    for train, test in _train_and_test(cv, codes):
        if (np.bincount(np.concatenate([train, test]), minlength=n) != 1).any():
            raise ValueError(
                f"cv={_brief(cv)} fits to {len(train)} rows and leaves out {len(test)}, but each "
                f"of the {n} rows must be one or the other, and once; pass a splitter that fits to "
                "all rows it does not leave out, such as StratifiedKFold."
            )
        if (folds[test] != NEVER).any():
            yield folds
            folds, n_folds = np.full(n, NEVER), 0
        folds[test] = n_folds
        n_folds += 1
    yield folds


def _train_and_test(cv: Any, codes: Codes) -> list[tuple[Codes, Codes]]:
    """The rows fitted to and left out, as a splitter or an iterable gives them."""
    splitter, n = _splitter(cv), len(codes)
    try:
        pairs = list(splitter.split(np.zeros((n, 1)), codes))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"cv={_brief(cv)} cannot split {n} rows by their groups alone ({error}); pass a "
            "number of folds, a splitter such as StratifiedKFold(10), or its splits: "
            "cv=list(splitter.split(X, y, groups))."
        ) from error
    if not pairs:
        raise ValueError(
            f"cv={_brief(cv)} has no splits (what can be read only once may have been read "
            "before); pass a list: cv=list(splitter.split(X, groups))."
        )
    return [_positions(cv, pair, n) for pair in pairs]


def _splitter(cv: Any) -> Any:
    try:
        return check_cv(cv)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"cv={_brief(cv)}: pass a number of folds such as 10, a splitter of scikit-learn, or a "
            "list of (train, test) pairs of row positions."
        ) from error


def _positions(cv: Any, pair: Any, n: int) -> tuple[Codes, Codes]:
    """A pair of arrays of row positions; masks are turned into positions."""
    try:
        train, test = (np.asarray(part) for part in pair)
        if train.dtype == test.dtype == bool:
            train, test = np.flatnonzero(train), np.flatnonzero(test)
        kinds = {train.dtype.kind, test.dtype.kind}
        usable = train.ndim == test.ndim == 1 and kinds <= {"i", "u"} and len(test) > 0
        usable = usable and min(train.min(), test.min()) >= 0 and max(train.max(), test.max()) < n
    except (TypeError, ValueError):
        usable = False
    if not usable:
        raise ValueError(
            f"cv={_brief(cv)} must give pairs of two arrays, the positions of rows to fit to and "
            f"of rows to leave out, from 0 to {n - 1}; pass for example "
            "cv=list(StratifiedKFold(10).split(X, groups))."
        )
    return train.astype(np.intp), test.astype(np.intp)


def _brief(cv: Any) -> str:
    """Splits may hold every row."""
    text = " ".join(repr(cv).split())
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]} ..."
