"""The rows that an audit judges, dealt into folds: pairs of moments to fit to and to judge by.

The moments outside a fold are those of all rows minus those of the fold. A pipeline fits its first
steps without the fold, so every fold has a space of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from fairpca._audit.record import LeftOut
from fairpca._cv.split import fold_numbers
from fairpca._input import checks, labels
from fairpca._input.folds import FoldRule
from fairpca._input.rows import as_rows, dense, numeric_columns
from fairpca._input.stream import Input
from fairpca._input.units import NumberedUnits, Units, encode_units, hashed, repeats_among
from fairpca._linear_map import FittedMap, flattened
from fairpca._moments.expected_values import completed_rows
from fairpca._moments.group_differences import positive_class
from fairpca._moments.group_moments import NEVER, GroupMoments, moments_of_rows
from fairpca._sklearn import num_samples, safe_indexing
from fairpca._typing import Array, Codes, Labels, Mask
from fairpca.exceptions import warn

_OTHER_SALTS = (1_000_003, 2_000_003)  # for other folds of the same rows
_FEWEST_COMPLETE = 10  # complete rows of each group that single rows are looked at for
_FEW_ANSWERS = 50  # A column of more different values is not a scale of answers.
_LOOKED_AT = 20_000  # rows that tell this


def entries_of(values: Any, rows: Any) -> Any:
    """The entries of some rows, of an array that may be None."""
    if values is None:
        return None
    return values[rows]


class Pair(NamedTuple):
    """Moments to fit to and moments to judge by, and the rows behind the latter.

    ``rows`` are positions, and ``values`` these rows as they enter the projection; None where
    moments are all that is known.
    """

    fit_to: GroupMoments
    judge: GroupMoments
    rows: Codes
    values: Any


class Folds:
    """Folds of data that are known by moments alone; :class:`People` has the rows too."""

    #: Figures that need rows.
    not_computed: tuple[str, ...] = (
        "medians and trimmed means",
        "columns that few rows decide",
        "shares of people who are better off",
        "scores of single people",
        "what classifiers make of the scores",
    )

    def __init__(self, moments: GroupMoments, feature_names: Sequence[str] | None) -> None:
        self.moments = moments.about_one_origin()
        self.labels = moments.groups.tolist()
        self.feature_names = list(feature_names or (f"x{j}" for j in range(moments.n_features)))
        self.group_columns: list[str] = []
        self.left_out: list[LeftOut] = []

    def __iter__(self) -> Iterator[Pair]:
        for fold in self.moments.fold_sizes():
            fit_to, judge = self.moments.split(fold)
            yield Pair(fit_to, judge, np.arange(0), None)


@dataclass(frozen=True)
class Kept:
    """The rows of positive weight."""

    X: Any
    n_left_out: int
    positions: Codes  # among all rows
    groups: Labels  # the label of each row
    codes: Codes  # its place among the labels that are present
    n_groups: int
    weights: Array
    units: Units | None  # the number of each row's unit; None: every row is one
    classes: Labels | None  # the class of each row, with y
    pos_label: Any
    feature_names: list[str] | None
    may_miss: bool
    margins: dict[Any, dict[str, str]]  # of crossed groups that are to be taken apart; see Groups

    @property
    def attributes(self) -> dict[Any, str]:
        """The attribute of each group, where groups of several attributes overlap."""
        return {label: name for own in self.margins.values() for name, label in own.items()}

    def by_attribute(self) -> Kept:
        """The rows once for each attribute, with the group that they have there."""
        present = np.unique(self.groups)
        coded = labels.Groups(self.codes, present, self.margins)
        (codes, known, _), m = coded.side_by_side()
        rows = np.tile(np.arange(len(self.codes)), m)
        return replace(
            self,
            X=safe_indexing(self.X, rows),
            positions=self.positions[rows],
            groups=known[codes],
            codes=codes,
            n_groups=len(known),
            weights=self.weights[rows],
            units=entries_of(self.units, rows),
            classes=entries_of(self.classes, rows),
        )


class People(Folds):
    """Rows in memory, without those of weight zero; once for each attribute if groups overlap.

    ``cv`` is a rule for folds, or a splitter whose first repeat is used. ``before`` holds the
    unfitted steps before the projection: the first one takes X, and ``values`` are the rows as
    they enter the projection. ``with_y`` fits it to y as well.
    """

    not_computed: tuple[str, ...] = ()

    def __init__(self, kept: Kept, cv: Any, before: Pipeline | None, with_y: bool = False) -> None:
        folds = _dealt(kept, cv)
        self._attributes = kept.attributes
        self.n_copies = len(set(self._attributes.values())) or 1
        if self._attributes:
            self.not_computed = ("what classifiers make of the scores",)
            kept = kept.by_attribute()
            folds = np.tile(folds, self.n_copies)
        self.X = kept.X
        self.positions = kept.positions
        self.groups = kept.groups
        self.codes = kept.codes
        self.weights = kept.weights
        self.units = kept.units
        self.classes = kept.classes
        self.pos_label = kept.pos_label
        self._target = None
        if with_y:
            self._target = kept.classes
        self._may_miss = kept.may_miss
        self._rule = cv
        self.fold_of_rows = folds
        numbers = np.unique(folds).tolist()
        self.rows_of_folds = [np.flatnonzero(folds == f) for f in numbers if f != NEVER]
        self.values = kept.X
        names = kept.feature_names
        if before is not None:
            self.values, names = self._entering(before, np.arange(len(self.codes)))
        super().__init__(self.moments_of(self.values, folds), names)
        self.observed = self.moments.observed  # how often each group has each pair of columns
        self.looked_at = self._looked_at()
        self._own_spaces: list[Pair] = []
        if before is not None:
            self._own_spaces = [self._own_space(before, rows) for rows in self.rows_of_folds]
        if kept.n_left_out:
            self.left_out = [LeftOut("rows", "", kept.n_left_out, "weight zero")]

    def __iter__(self) -> Iterator[Pair]:
        if self._own_spaces:
            yield from self._own_spaces
            return
        for fold, rows in zip(self.moments.fold_sizes(), self.rows_of_folds, strict=True):
            fit_to, judge = self.moments.split(fold)
            yield Pair(fit_to, judge, rows, safe_indexing(self.values, rows))

    def moments_of(
        self, values: Any, folds: Any, rows: Any = slice(None), *, may_miss: bool = False
    ) -> GroupMoments:
        """Moments by fold of all or some rows; ``values`` holds all rows after the first steps."""
        target = entries_of(self._target, rows)
        units = self.units_of(rows)
        values = as_rows(safe_indexing(values, rows))
        given = Input(values, self.groups[rows], self.weights[rows], target, units)
        given = given._replace(may_miss=may_miss or self._may_miss)
        return moments_of_rows(given, folds).of_attributes(self._attributes)

    def _looked_at(self) -> Mask:
        """The rows whose own errors are figures: the complete ones, if each group has some."""
        complete = np.ones(len(self.codes), bool)
        if self.observed is None:
            return complete
        complete &= np.isfinite(dense(self.values)).all(axis=1)
        sizes = np.bincount(self.codes)
        found = np.bincount(self.codes[complete], minlength=len(sizes))
        return complete & bool((found >= np.minimum(sizes, _FEWEST_COMPLETE)).all())

    def filled(self, rows: Codes) -> Any:
        """Some rows as they enter the projection, with expected values for missing ones."""
        values = safe_indexing(self.values, rows)
        if self.observed is None:
            return values
        return completed_rows(dense(values), self.moments.mean, self.moments.covariance)

    @cached_property
    def dealt_again(self) -> list[Folds]:
        """The moments of the same rows in other folds; none where the folds are given."""
        rule = self._rule
        if not isinstance(rule, FoldRule) or self._own_spaces or self.n_copies > 1:
            return []
        found = []
        for salt in _OTHER_SALTS:
            other = FoldRule(rule.n_folds, rule.salt + salt)
            if self.units is not None:
                folds = other.folds_of_units(self.units)
            else:
                folds = other.folds_of(self.codes, np.zeros(len(self.labels), np.intp))
            found.append(Folds(self.moments_of(self.values, folds), None))
        return found

    def filled_in(self) -> Mask | None:
        """Which values the steps before the projection filled in; None if that is not known."""
        if not self._own_spaces:
            return None
        try:
            missing = np.isnan(np.asarray(self.X, np.float64))
        except (TypeError, ValueError):  # columns of text
            return None
        if missing.shape != self.values.shape or not missing.any():
            return None
        return missing

    def units_of(self, rows: Any) -> NumberedUnits | None:
        """Whose rows these are; None if every row is a unit by itself."""
        if self.units is None:
            return None
        return NumberedUnits(self.units[rows])

    def by_unit(self, rows: Codes, figures: Array) -> tuple[Codes, Array, Array]:
        """Groups, weights and mean figures, (m, n), of the units that these rows belong to.

        A unit counts once, with the mean weight of its rows, in each group that it has rows in.
        """
        codes = self.codes[rows]
        weights = self.weights[rows]
        if self.units is None:
            return codes, weights, figures
        pairs = np.stack([codes.astype(np.uint64), self.units[rows]])
        cells, places = np.unique(pairs, axis=1, return_inverse=True)
        places = places.ravel()
        total = np.bincount(places, weights)
        means = np.array([np.bincount(places, weights * own) / total for own in figures])
        return cells[0].astype(np.intp), total / np.bincount(places), means

    def _own_space(self, before: Pipeline, rows: Codes) -> Pair:
        """One fold, in the space of the first steps fitted without it."""
        inside = np.full(len(self.codes), NEVER)
        inside[rows] = 0
        values, _ = self._entering(before, np.flatnonzero(inside == NEVER))
        fit_to, judge = self.moments_of(values, inside).split(0)
        return Pair(fit_to, judge, rows, safe_indexing(values, rows))

    def _entering(self, before: Pipeline, fitted_to: Codes) -> tuple[Any, list[str] | None]:
        """All rows after the first steps, which are fitted to some rows, and the column names."""
        target = entries_of(self._target, fitted_to)
        takes = any(has_fit_parameter(step, "sensitive_features") for step in flattened(before))
        groups = {}
        if takes:
            groups["sensitive_features"] = self.groups[fitted_to]
        with config_context(enable_metadata_routing=takes):  # so that the step gets the groups
            fitted = clone(before).fit(safe_indexing(self.X, fitted_to), target, **groups)
        try:
            values = fitted.transform(self.X)
        except ValueError as error:
            raise ValueError(
                f"the steps before the projection fail for rows they were not fitted to: {error} "
                "An encoder, for example, needs OneHotEncoder(handle_unknown='ignore')."
            ) from error
        try:
            return values, [str(name) for name in fitted.get_feature_names_out()]
        except (AttributeError, ValueError, TypeError):  # a step cannot name its columns
            return values, None


def people(
    opened: Input, pos_label: Any, cv: Any, before: Pipeline | None = None, *, with_y: bool = False
) -> People:
    """The people of a table in memory."""
    _refuse_forgotten(opened.sensitive_features)
    found = People(_kept(opened, pos_label, before is not None), cv, before, with_y)
    found.group_columns = _column_names(opened.sensitive_features)
    if found.units is None:
        _warn_of_repeats(found.values, found.codes)
    return found


def _warn_of_repeats(values: Any, codes: Codes) -> None:
    """Warn of rows that repeat others, unless most columns are scales of few answers."""
    if not isinstance(values, np.ndarray):
        return
    fine = sum(len(np.unique(column)) > _FEW_ANSWERS for column in values[:_LOOKED_AT].T)
    if 2 * fine < values.shape[1]:
        return
    if fact := repeats_among(hashed(values, codes)):
        warn(
            f"{fact} in all columns and the group: if they are of the same people, intervals are "
            "too narrow; pass units=person, or one row of each.",
            UserWarning,
        )


def folds_of_stream(opened: Input, rule: FoldRule, fitted: FittedMap | None = None) -> Folds:
    """The folds of rows that are read once, as they arrive at a fitted map if there is one."""
    _refuse_forgotten(opened.sensitive_features)
    if fitted is None:
        return folds_of(GroupMoments().add(opened, rule), opened)
    moments = fitted.moments(opened, "audit_model", rule).divided(fitted.map.units)
    return folds_of(moments, opened)


def folds_of(moments: GroupMoments, opened: Input) -> Folds:
    """The folds of moments of rows that were read once."""
    _refuse_forgotten(opened.sensitive_features)
    checks.refuse_continuous(moments.groups, moments.counts)
    checks.check_several_groups(moments.groups.tolist(), moments.n_rows)
    found = Folds(moments, moments.feature_names)
    found.group_columns = _column_names(opened.sensitive_features)
    return found


def _refuse_forgotten(groups: Any) -> None:
    if groups is None:
        raise TypeError(
            "sensitive_features is missing: pass sensitive_features=groups, one label per row."
        )


def _column_names(groups: Any) -> list[str]:
    """The names of the columns that hold the groups, where they have names."""
    if isinstance(groups, tuple):  # of a stream
        return list(groups)
    name = getattr(groups, "name", None)
    named = [name]
    if name is None:
        named = []
    return [str(column) for column in getattr(groups, "columns", named)]


def _kept(given: Input, pos_label: Any, raw: bool) -> Kept:
    """The rows of positive weight; ``raw`` rows may hold anything that a pipeline takes."""
    X = given.X
    groups = given.sensitive_features
    names = None
    table: Any
    if raw:
        table = numeric_columns(X)
    else:
        table = as_rows(X)
        names = table.feature_names
        X = X.tocsr() if hasattr(X, "tocsr") else dense(X)
    n = num_samples(X)
    coded = labels.encode_groups(groups, n)
    codes, known, margins = coded
    if given.crossing or not margins:
        margins = {}
        checks.refuse_continuous(known, np.bincount(codes))
    else:
        labels.refuse_unlike_groups(groups, coded, 1, given.crossing)
    if table is not None and table.feature_names is not None:
        labels.warn_of_group_columns(table, groups)
    weights = checks.check_sample_weight(given.sample_weight, n)
    if weights is None:
        weights = np.ones(n)
    units = given.units
    if units is not None:
        units = encode_units(units, n)
    classes = given.y
    if classes is not None:
        classes = _classes(classes, pos_label, n)
    kept = np.flatnonzero(weights)
    if len(kept) < n:
        X = safe_indexing(X, kept)
    present, own_codes = np.unique(codes[kept], return_inverse=True)
    checks.check_several_groups(known[present].tolist(), len(kept))
    return Kept(
        X=X,
        n_left_out=n - len(kept),
        positions=kept,
        groups=known[codes[kept]],
        codes=own_codes,
        n_groups=len(present),
        weights=weights[kept],
        units=entries_of(units, kept),
        classes=entries_of(classes, kept),
        pos_label=pos_label,
        feature_names=names,
        margins=margins,
        may_miss=given.may_miss,
    )


def _classes(y: Any, pos_label: Any, n: int) -> Labels:
    """The class of each row."""
    outcomes, classes = labels.encode_outcomes(y, n)
    labels.refuse_counts(classes.tolist(), "pass classes, for example y > threshold")
    positive_class(classes.tolist(), pos_label)  # needed for more than two classes
    return classes[outcomes]


def _dealt(kept: Kept, cv: Any) -> Codes:
    """The fold of each row."""
    if isinstance(cv, FoldRule) and kept.units is not None:
        folds = cv.folds_of_units(kept.units)
    elif isinstance(cv, FoldRule):
        folds = cv.folds_of(kept.codes, np.zeros(kept.n_groups, np.intp))
    else:
        folds = next(fold_numbers(cv, kept.codes, kept.units))
    if np.count_nonzero(np.unique(folds) != NEVER) < 2:
        raise ValueError(
            f"none of the {kept.n_groups} groups has two rows, but an audit fits without a part "
            "of the rows and judges that part; pass groups of two rows or more."
        )
    return folds
