"""Splitters of scikit-learn and iterables of splits, for rows in memory.

A number of folds needs no splitter: :class:`fairpca._input.folds.FoldRule` assigns the rows.
"""

import warnings
from collections.abc import Iterable, Iterator
from numbers import Integral
from textwrap import shorten
from typing import Any, cast

import numpy as np
from sklearn.model_selection import check_cv

from fairpca._input.folds import FoldRule
from fairpca._input.labels import encode_groups
from fairpca._input.rows import as_rows
from fairpca._input.stream import Input, in_memory
from fairpca._input.units import NumberedUnits, Units, encode_units
from fairpca._moments.group_moments import NEVER, GroupMoments
from fairpca._moments.implicit import learn
from fairpca._typing import Codes

Seed = int | np.random.RandomState | None


def learn_repeats(given: Input, cv: Any, random_state: Seed) -> list[GroupMoments]:
    """The moments by fold, once for each repeat of a splitter; a number of folds has one repeat."""
    repeats: Iterable[FoldRule | Codes]
    if isinstance(cv, Integral):
        repeats = [fold_rule(cv, random_state)]
    elif in_memory(given.X):
        n_rows = as_rows(given.X).n_rows
        codes = encode_groups(given.sensitive_features, n_rows).codes
        units = None
        if given.units is not None:
            units = encode_units(given.units, n_rows)
            given = given._replace(units=NumberedUnits(units))
        repeats = fold_numbers(cv, codes, units)
    else:
        raise needs_all_rows(cv)
    moments = [learn(given, folds) for folds in repeats]
    return cast(list[GroupMoments], moments)  # folds are refused where there are no moments


def fold_rule(cv: Any, random_state: Seed) -> FoldRule:
    """The rule for a number of folds; its salt is the seed, by default 0."""
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31 - 1)
    return FoldRule(int(cv), int(random_state or 0))


def needs_all_rows(cv: Any) -> ValueError:
    """The error for a splitter where rows are read as a stream."""
    return ValueError(
        f"cv={_brief(cv)} needs all rows at once, but these are read as a stream; pass a number of "
        "folds, for example cv=10, or call fit with rows in memory."
    )


def fold_numbers(cv: Any, codes: Codes, units: Units | None = None) -> Iterator[Codes]:
    """Yield, for each repeat of a splitter, the fold of every row, or ``NEVER``.

    The splitter gets ``codes``, the number of each row's group, as y, and the units as its groups.
    """
    repeats: list[Codes] = []
    for test in _left_out(cv, codes, units):
        if units is not None:
            _refuse_torn(cv, test, units)
        if not repeats or (repeats[-1][test] != NEVER).any():
            repeats.append(np.full(len(codes), NEVER))
        repeats[-1][test] = repeats[-1].max() + 1
    for folds in repeats:
        if folds.max() == 0:  # a fold is judged at the stop that the others of its repeat choose
            raise ValueError(
                f"cv={_brief(cv)} must leave out two folds or more before it leaves any row out "
                "again; pass a splitter whose folds do not overlap, such as StratifiedKFold(10) or "
                "RepeatedStratifiedKFold(n_splits=5, n_repeats=4)."
            )
        yield folds


def _refuse_torn(cv: Any, test: Codes, units: Units) -> None:
    """Refuse a split that leaves out some rows of a unit and fits to others."""
    inside = np.zeros(len(units), bool)
    inside[test] = True
    torn = np.isin(units[~inside], units[test])
    if torn.any():
        raise ValueError(
            f"cv={_brief(cv)} puts {np.unique(units[~inside][torn]).size} units on both sides of a "
            "split, so that they would judge a fit that knows them; pass a splitter that keeps "
            "them together, such as GroupKFold(10), or a number of folds."
        )


def _left_out(cv: Any, codes: Codes, units: Units | None) -> list[Codes]:
    """The rows that each split of a splitter or an iterable leaves out."""
    n = len(codes)
    left_out = []
    try:
        with warnings.catch_warnings():  # splitters that need no groups complain of them
            warnings.filterwarnings("ignore", "The groups parameter is ignored")
            pairs = list(check_cv(cv).split(np.zeros((n, 1)), codes, units))
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"cv={_brief(cv)} cannot split {n} rows by their groups alone ({error}); pass a number "
            "of folds such as 10, a splitter such as StratifiedKFold(10), or its pairs (train, "
            "test) of row positions: cv=list(splitter.split(X, y, groups))."
        ) from error
    if not pairs:
        raise ValueError(
            f"cv={_brief(cv)} has no splits (what can be read only once may have been read "
            "before); pass a list: cv=list(splitter.split(X, groups))."
        )
    for pair in pairs:
        try:
            parts = [np.asarray(part) for part in pair]
            train, test = (np.flatnonzero(p) if p.dtype == bool else p for p in parts)
            times = np.bincount(np.concatenate([train, test]), minlength=n)
            usable = len(times) == n and (times == 1).all() and 0 < len(test) < n
        except (TypeError, ValueError):  # not two arrays of positions
            usable = False
        if not usable:
            raise ValueError(
                f"cv={_brief(cv)} must give pairs of arrays, the positions of rows to fit to and "
                f"of rows to leave out: each of the {n} rows must be one or the other, and once; "
                "pass for example cv=list(StratifiedKFold(10).split(X, groups))."
            )
        left_out.append(test.astype(np.intp))
    return left_out


def _brief(cv: Any) -> str:
    """The argument as text, shortened because splits may hold every row."""
    return shorten(repr(cv), 100, placeholder=" ...")
