"""Checks of what users pass in, and the wording of the errors they get back.

Every message says what was passed, what is allowed, and the call that fixes it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._input.device import library_of, on_host
from fairpca._typing import Array, Labels
from fairpca.exceptions import NotEnoughRows

_LARGEST_WEIGHT = 1e250  # sums of larger weights, or of their inverses, leave the range of float64
MOST_GROUPS = 50  # more different numbers are measurements, not groups
FEW_ROWS = 50  # with so few rows or fewer, every row may be its own group
_MOST_ALONE = 10  # so few groups of one row may be rare groups, even if most groups are


def forgotten_groups(estimator: object, method: str, y: Any, needs_y: bool) -> TypeError:
    """The error for a call without groups."""
    name = type(estimator).__name__
    rows = "X"
    if needs_y:
        rows = "X, y"
    problem = f"sensitive_features is missing: {name}.{method} needs one group label per row."
    routing = "metadata routing, sklearn.set_config(enable_metadata_routing=True)"
    call = f"{name}(...).{method}({rows}, sensitive_features=groups)"
    piped = f"pipeline.fit({rows}, {name.lower()}__sensitive_features=groups)"
    hint = f" In a pipeline pass {piped}, with the name of the step in front, or enable {routing}."
    if y is not None and not needs_y:
        hint += " If the labels passed as y are the groups, pass sensitive_features=y."
    return TypeError(f"{problem} Pass {call}.{hint}")


def refuse_unknown_arguments(estimator: object, method: str, unknown: Iterable[str]) -> None:
    """Refuse arguments that ``fit`` does not have, perhaps groups under another name."""
    for name in unknown:
        raise TypeError(
            f"{type(estimator).__name__}.{method} has no argument {name!r}; pass the group of each "
            "row as sensitive_features, and if you like sample_weight and units."
        )


def refuse_beside_moments(estimator: object, **given: Any) -> None:
    """Refuse groups, weights and the like beside moments, which hold those of their rows."""
    for name, value in given.items():
        if value is not None:
            problem = f"X is GroupMoments, which hold the {name} of their rows"
            raise ValueError(f"{problem}; pass {type(estimator).__name__}(...).fit(moments).")


def check_same_order(X: Any, **columns: Any) -> None:
    """Refuse pandas objects with the index of X in another order: columns are taken by position."""
    if library_of(X) != "pandas":
        return
    for name, values in columns.items():
        index = None
        if library_of(values) == "pandas":
            index = getattr(values, "index", None)
        if index is None or len(index) != len(X) or X.index.equals(index):
            continue
        if Counter(X.index) == Counter(index):  # sorting fails for labels of several types
            problem = f"{name} has the index of X in another order, and rows go by position"
            remedy = f"{name}.loc[X.index], or {name}.to_numpy() if their positions are right"
            raise ValueError(f"{problem}; pass {remedy}.")


def refuse_continuous(labels: Labels, counts: NDArray[Any], least: int = 1) -> None:
    """Refuse numbers that are not groups: many different ones, or mostly rows with their own.

    Numbers of fewer than ``least`` rows are not compared, and may be as many as they like.
    """
    if labels.dtype.kind not in "iuf":
        return
    n = int(counts.sum())
    many = int((counts >= least).sum()) > MOST_GROUPS
    alone = n > FEW_ROWS and 2 * int((counts == 1).sum()) > n
    if many or alone:
        raise ValueError(
            f"sensitive_features holds {len(labels)} different numbers in {n} rows, from "
            f"{labels[0]} to {labels[-1]}, and looks continuous; make bands, for example "
            "pd.cut(age, [0, 30, 45, 60, 120]), or pass strings to compare them all, for example "
            "np.asarray(groups).astype(str)."
        )


def refuse_ids(labels: Labels, counts: NDArray[Any], least: int = 1) -> None:
    """Refuse labels most of which name a single row, unless these are not compared."""
    n = int(counts.sum())
    alone = labels[counts == 1].tolist()
    if n > FEW_ROWS and least == 1 and len(alone) > max(_MOST_ALONE, len(labels) / 2):
        raise NotEnoughRows(
            f"sensitive_features holds {len(labels)} different labels in {n} rows, and most of "
            f"them occur once ({alone[:3]} and so on), as names of rows do; pass labels that rows "
            "share, or min_group_size=2 with small_groups='merge' or 'ignore'."
        )


def check_integer(name: str, value: Any, least: int) -> None:
    """Refuse what is not an integer, or less than the least allowed; booleans are not integers."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ValueError(f"{name}={value!r}: pass an integer of at least {least}.")


def check_sample_weight(sample_weight: Any, n_rows: int, may_be_zero: bool = False) -> Array | None:
    """Weights as float64, or None; ``may_be_zero`` allows zeros in all rows."""
    if sample_weight is None:
        return None
    try:
        values = np.asarray(on_host(sample_weight))
        if np.iscomplexobj(values) or np.ma.is_masked(sample_weight):
            raise TypeError("some are masked or complex")
        weights = values.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        problem = f"sample_weight must be numbers, but could not be read: {error}"
        raise TypeError(f"{problem}; pass one number per row of X.") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.ndim != 1 or len(weights) != n_rows:
        problem = f"sample_weight has shape {weights.shape} but X has {n_rows} rows"
        raise ValueError(f"{problem}; pass one non-negative weight per row, or sample_weight=None.")
    bad = np.flatnonzero(~(weights >= 0) | np.isinf(weights))
    if len(bad):
        found = f"row {bad[0]} has {weights[bad[0]]}; give rows that should not count the weight 0"
        raise ValueError(f"sample_weight must be finite and non-negative, but {found}.")
    if not may_be_zero and not weights.any():
        remedy = "give a row of each group a positive weight, or pass sample_weight=None"
        raise ValueError(f"sample_weight is zero in every row; {remedy}.")
    largest = float(weights.max(initial=0.0))
    if largest and not 1 / _LARGEST_WEIGHT < largest < _LARGEST_WEIGHT:
        problem = f"the largest sample_weight is {largest:.3g}, out of the range of float64"
        raise ValueError(f"{problem}; pass sample_weight / sample_weight.max().")
    return weights


def check_group_weights(labels: Labels, weights: NDArray[Any]) -> None:
    """Refuse groups without weight, which have no average."""
    weightless = labels[~(weights > 0)].tolist()
    if weightless:
        remedy = "give at least one of their rows a positive sample_weight, or leave them out"
        raise NotEnoughRows(f"groups {weightless} have total weight zero; {remedy}.")


def check_feature_names(
    known: Sequence[str] | None, given: Sequence[str] | None, method: str
) -> None:
    """Refuse a block whose columns have other names, or another order, than those before."""
    if known is None or given is None or list(known) == list(given):
        return
    unseen = [name for name in given if name not in known]
    lacking = [name for name in known if name not in given]
    detail = "the same names in another order"
    if unseen or lacking:
        detail = f"unexpected: {unseen[:5]}, missing: {lacking[:5]}"
    problem = f"{method} got columns that differ from those seen before ({detail})"
    raise ValueError(f"{problem}; pass {list(known)[:5]}{'...' * (len(known) > 5)} in this order.")


def check_n_features(known: int, given: int, method: str) -> None:
    """Refuse a block with another number of columns than those before."""
    if known != given:
        problem = f"{method} got X with {given} features, but the rows before had {known}"
        raise ValueError(f"{problem}; pass the same columns each time, or start with a new object.")


def check_several_groups(
    labels: Sequence[Any], n_samples: int, otherwise: str = ", or use sklearn.decomposition.PCA"
) -> None:
    """Refuse a single group: there is nothing to compare it with."""
    if len(labels) < 2:
        held = "no group large enough ("
        if labels:
            held = f"one group only ({labels[0]!r}, "
        problem = f"sensitive_features holds {held}n_samples = {n_samples}), nothing to compare"
        raise NotEnoughRows(f"{problem}; pass labels of two groups or more{otherwise}.")


def check_two_groups(labels: Sequence[Any], what: str) -> None:
    """Refuse more than two groups, for methods that compare two."""
    if len(labels) > 2:
        held = f"sensitive_features holds {len(labels)}: {labels[:5]}{'...' * (len(labels) > 5)}"
        problem = f"{what} compares two groups, but {held}"
        remedy = f"compare one with the rest, sensitive_features=(groups == {labels[0]!r})"
        raise ValueError(f"{problem}; {remedy}, or use FairPCA(n_components).")


def refuse_unknown_columns(named: Sequence[str], columns: Sequence[str]) -> None:
    """Refuse names of columns that X does not have."""
    for name in named:
        if name not in columns:
            close = get_close_matches(name, columns, n=3) or list(columns)[:8]
            raise ValueError(f"X has no column {name!r}; pass a name such as {close}.")


def refuse_twins(names: Sequence[str]) -> None:
    """Refuse two columns of one name."""
    twins = [name for name, times in Counter(names).items() if times > 1]
    if twins:
        raise ValueError(f"X has two columns named {twins[0]!r}; rename one of them.")
