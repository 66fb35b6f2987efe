"""Per-group moments: all that the library ever learns from the data.

Moments are kept per *cell*: a fold, an outcome and a group. Folds and outcomes are axes that a
caller may not need; then they are summed away. Without folds and outcomes a cell is a group.

Methods under "axes" are for the other layers of this package, not for users: ``_folds`` and
``_split`` are the protocol of cross-validation, ``_renamed`` and ``_group_sums`` that of groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpca._input.checks import (
    check_feature_names,
    check_group_weights,
    check_n_features,
    check_sample_weight,
    refuse_continuous,
    refuse_ids,
)
from fairpca._input.device import is_dask
from fairpca._input.folds import FoldRule, check_folds
from fairpca._input.labels import (
    cross_codes,
    encode_few_groups,
    encode_groups,
    encode_outcomes,
    label_vector,
    sort_labels,
    union,
)
from fairpca._input.rows import NumericTarget, Rows, as_rows, join_targets
from fairpca._input.stream import Stream, open_input
from fairpca._input.units import Units, encode_units, how_many, smallest
from fairpca._moments.accumulate import accumulate
from fairpca._moments.few_rows import FewRows, are_few, combined
from fairpca._moments.operand import Operand
from fairpca._moments.sums import Sums
from fairpca._typing import Array, Center, Codes, Label, Labels, Mask
from fairpca.exceptions import NotEnoughRows

_NOTHING = Sums.combined(0, 0, [])
NEVER = -1  # the fold of rows that are never left out
_FOLD, _OUTCOME, _GROUP = range(3)  # the rows of a table of cells


class GroupMoments:
    """Counts, means and second moments of each group, accumulated in one pass.

    Everything the estimators need is in here, so nothing touches X again. Accumulate anywhere, in
    any order, and :meth:`merge`: the result is that of one pass over all rows, up to rounding.
    Build one with :meth:`from_data`, or fill an empty one, ``GroupMoments()``, by :meth:`update`.

    Attributes
    ----------
    groups : ndarray of shape (k,)
        The group labels, sorted.
    outcomes : ndarray or None
        The classes of the target, sorted, where moments are kept by outcome.
    n_features, n_targets : int
        Number of columns, 0 while empty; the last ``n_targets`` are targets of :class:`FairPLS`.
    feature_names : list of str or None
        Column names, when the rows came from data frames or files.
    n_units : ndarray of shape (k,)
        The number of units of each group; their rows, where no units were passed.
    n_dropped : int
        Number of rows left out because of missing values, where that was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 9.0]])
    >>> moments = GroupMoments.from_data(X, ["a", "a", "b"])
    >>> moments
    GroupMoments({'a': 2, 'b': 1}, n_features=2)
    >>> moments.means
    array([[1., 2.],
           [4., 9.]])
    >>> GroupMoments.from_data(X[:1], ["a"]).merge(GroupMoments.from_data(X[1:], ["a", "b"]))
    GroupMoments({'a': 2, 'b': 1}, n_features=2)
    """

    def __init__(self) -> None:
        self.groups: Labels = np.empty(0, dtype=object)
        self.outcomes: Labels | None = None
        self.n_features: int = 0
        self.feature_names: list[str] | None = None
        self.n_dropped: int = 0
        self.n_targets: int = 0
        self._sums: Sums | FewRows = _NOTHING  # one entry per cell
        self._cells: Codes = np.empty((3, 0), np.intp)  # fold, outcome and group of each entry
        self._rule: FoldRule | None = None
        self._seen = Counter[Label]()  # rows of each group that the rule has counted
        self._units: dict[Label, Units] | None = None  # of each group; None: rows are the units

    @classmethod
    def from_data(
        cls,
        X: Any,
        sensitive_features: Any,
        sample_weight: Any = None,
        target: Any = None,
        *,
        units: Any = None,
        folds: int | ArrayLike | None = None,
        fold_seed: int = 0,
    ) -> GroupMoments:
        """Moments of the rows of X.

        Parameters
        ----------
        X : array, memory map, sparse matrix or data frame of shape (n_samples, n_features)
            Real numbers without missing values, never modified. Dask collections are reduced where
            their blocks are, arrays of torch, CuPy and the like on their device.
        sensitive_features : array-like of shape (n_samples,) or (n_samples, n_columns)
            The group of each row; several columns are crossed.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights; a row of weight 2 counts twice.
        target : array-like of shape (n_samples,), optional
            The class of each row, for moments by outcome (:class:`BlindPCA`, :class:`FairPLS`).
        units : array-like of shape (n_samples,), optional
            Whose row each is: rows with the same label belong to one person, say, and stay in one
            fold. A row without a label is a unit by itself. By default every row is.
        folds : int or array-like of shape (n_samples,), optional
            The number of folds, or the fold of each row, for moments by fold (:class:`FairPCACV`).
        fold_seed : int, default=0
            Another seed gives other folds.

        Numbers that look continuous, and labels that mostly name a single row, are refused;
        :meth:`update` takes any.
        """
        rule = check_folds(folds, fold_seed)
        given = open_input(X, sensitive_features, sample_weight, target, units)
        if isinstance(given.X, Stream) or is_dask(given.X) or is_dask(given.sensitive_features):
            moments = cls().update(*given[:4], units=given.units, folds=rule)
            refuse_continuous(moments.groups, moments.counts)
            refuse_ids(moments.groups, moments.counts)
            return moments
        rows = as_rows(given.X)
        groups = encode_few_groups(given.sensitive_features, rows)
        return moments_of_rows(rows, groups, given.sample_weight, given.y, rule, units=given.units)

    @classmethod
    def from_files(
        cls,
        data: Any,
        *,
        sensitive_features: str | Sequence[str],
        features: Sequence[str] | None = None,
        sample_weight: str | None = None,
        target: str | None = None,
        drop: str | Sequence[str] = (),
        drop_missing: bool = False,
        query: str | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
        header: bool = True,
        sheet: str | None = None,
        missing_values: str | Sequence[str] = (),
        progress: Callable[[float], object] | None = None,
        folds: int | None = None,
        fold_seed: int = 0,
    ) -> GroupMoments:
        """Moments of the rows of files or of a query, read once in constant memory.

        Needs the extra ``fairpca[files]``.

        Parameters
        ----------
        data : str, path or list of them
            CSV, TSV, Parquet or Arrow (IPC, Feather) files, or a folder or pattern of one of these
            kinds, whose ``key=value`` subfolders are columns of text; a DuckDB database; or a
            query, a text that begins with SELECT, WITH or FROM.
        sensitive_features : str or list of str
            The column of group labels; several are crossed. In text files every label is text, so
            01 and 1 are two groups.
        features : list of str, optional
            The features, numbers or booleans. By default all numeric columns without another role;
            row numbers, and columns called ``id`` or the like, are left out with a warning.
        sample_weight, target : str, optional
            Columns of non-negative weights, and of outcomes, which are classes.
        drop_missing : bool, default=False
            Leave out rows with missing values; by default an error says where they are.
        drop, query, encoding, decimal, header, sheet, missing_values
            As for :func:`~fairpca.read_table`.
        progress : callable, optional
            Called with the fraction done, rising to 1.
        folds, fold_seed : int, optional
            As for :meth:`from_data`.
        """
        from fairpca.cli.columns.prepare import moments_of_table

        columns: dict[str, Any] = {"sensitive_features": sensitive_features, "features": features}
        columns |= {"sample_weight": sample_weight, "target": target, "drop_missing": drop_missing}
        reading: dict[str, Any] = {"query": query, "encoding": encoding, "decimal": decimal}
        reading |= {"header": header, "sheet": sheet, "missing_values": missing_values}
        rule = None if folds is None else FoldRule(folds, fold_seed)
        return moments_of_table(data, reading, progress, rule, drop=drop, **columns)

    @classmethod
    def from_spark(
        cls,
        frame: Any,
        *,
        sensitive_features: str | Sequence[str],
        features: Sequence[str] | None = None,
        sample_weight: str | None = None,
        target: str | None = None,
        drop_missing: bool = False,
        folds: int | None = None,
        fold_seed: int = 0,
    ) -> GroupMoments:
        """Moments of the rows of a Spark data frame; only moments reach the driver.

        Needs the extra ``fairpca[spark]``, and fairpca and pyarrow where the workers run. Workers
        use the Python that ``PYSPARK_PYTHON`` names: on one machine, ``sys.executable``.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
        sensitive_features, features, sample_weight, target, drop_missing, folds, fold_seed
            As for :meth:`from_files`; for folds, rows are counted in each partition.
        """
        from fairpca._tables.spark import moments_of_spark

        columns: dict[str, Any] = {"sensitive_features": sensitive_features, "features": features}
        columns |= {"sample_weight": sample_weight, "target": target, "drop_missing": drop_missing}
        rule = None if folds is None else FoldRule(folds, fold_seed)
        return moments_of_spark(frame, folds=rule, **columns)

    def update(
        self,
        X: Any,
        sensitive_features: Any,
        sample_weight: Any = None,
        target: Any = None,
        *,
        units: Any = None,
        folds: int | FoldRule | ArrayLike | None = None,
        fold_seed: int = 0,
    ) -> GroupMoments:
        """Add the rows of X, in place, and return self; arguments as in :meth:`from_data`.

        When the rows are refused (missing values, wrong columns) nothing has been added.
        """
        rule = check_folds(folds, fold_seed)
        given = open_input(X, sensitive_features, sample_weight, target, units)
        if isinstance(given.X, Stream):
            vars(self).update(vars(moments_of_stream(given.X, rule, before=self)))
            return self
        if is_dask(given.X):
            from fairpca._tables.dask import moments_of_dask

            part = moments_of_dask(*given[:4], rule)
        else:
            rows = as_rows(given.X)
            groups, weights = given.sensitive_features, given.sample_weight
            part = moments_of_rows(rows, groups, weights, given.y, rule, self, units=given.units)
        vars(self).update(vars(self.merge(part)))  # one step that an interrupt cannot divide
        return self

    def merge(self, other: GroupMoments) -> GroupMoments:
        """Moments of both sets of rows together, as a new object; neither operand changes."""
        if not isinstance(other, GroupMoments):
            raise TypeError(
                f"merge needs GroupMoments, got {type(other).__name__}; add rows with "
                "update(X, groups)."
            )
        merged = copy(self if self.n_features else other)
        if self.n_features and other.n_features:
            self._check_alike(other)
            merged.feature_names = self.feature_names or other.feature_names
            merged.groups = union(self.groups, other.groups)
            if self.outcomes is not None and other.outcomes is not None:
                merged.outcomes = union(self.outcomes, other.outcomes)
            merged._add_up([(m._sums, m._cells_among(merged)) for m in (self, other)])
            merged._seen = self._seen + other._seen
            if self._units is not None and other._units is not None:
                merged._units = _united([*self._units.items(), *other._units.items()])
        merged.n_dropped = self.n_dropped + other.n_dropped
        return merged

    def _check_alike(self, other: GroupMoments) -> None:
        """Refuse to merge moments with different columns, targets, folds or outcomes."""
        check_n_features(self.n_features, other.n_features, "GroupMoments")
        check_feature_names(self.feature_names, other.feature_names, "GroupMoments")
        both = self, other
        for what, kinds in {
            "number of targets": [str(m.n_targets) for m in both],
            "outcomes": ["none" if m.outcomes is None else "classes" for m in both],
            "units": ["none" if m._units is None else "labels" for m in both],
            "folds": [str(m._rule or ("numbered folds" if m.n_folds else "none")) for m in both],
        }.items():
            if kinds[0] != kinds[1]:
                raise ValueError(
                    f"merge needs moments with the same {what}, got {kinds[0]} and {kinds[1]}; "
                    "pass the same kind of y (or target), units, folds and fold_seed each time."
                )

    @property
    def n_folds(self) -> int:
        """Number of folds; 0 if there are none."""
        if self._rule is not None:
            return self._rule.n_folds
        return int(self._cells[_FOLD].max(initial=NEVER)) + 1

    # -- axes --------------------------------------------------------------------------------------

    def _add_axes(
        self,
        codes: Codes,
        target: Any,
        folds: FoldRule | Codes | None,
        seen: Counter[Label],
        units: Units | None = None,
    ) -> Codes:
        """Make a cell of each fold, outcome and group that occur; returns the cell of each row."""
        n, outcomes, numbers = len(codes), np.zeros(len(codes), np.intp), np.full(len(codes), NEVER)
        if target is not None:
            outcomes, self.outcomes = encode_outcomes(target, n)
        if isinstance(folds, FoldRule) and units is not None:
            self._rule = replace(folds, by_unit=True)
            numbers = self._rule.folds_of_units(units)
        elif isinstance(folds, FoldRule):
            labels = self.groups.tolist()
            before = np.array([seen[label] for label in labels], np.intp)
            numbers, self._rule = folds.folds_of(codes, before), folds
            counts = np.bincount(codes, minlength=len(labels))
            self._seen = Counter(dict(zip(labels, counts.tolist(), strict=True)))
        elif folds is not None:
            if len(folds) != n:
                problem = f"folds has {len(folds)} numbers but X has {n} rows"
                raise ValueError(
                    f"{problem}; pass one number per row, or how many folds there are."
                )
            numbers = folds
        cell_of, cells = cross_codes([numbers - NEVER, outcomes, codes])
        self._cells = np.array(cells)
        self._cells[_FOLD] += NEVER
        return cell_of

    def _add_up(self, parts: Sequence[tuple[Sums | FewRows, Codes]]) -> None:
        """Set the sums to those of parts, each with the fold, outcome and group of its cells."""
        cells = np.concatenate([cells for _, cells in parts], axis=1)
        self._cells, places = np.unique(cells, axis=1, return_inverse=True)
        ends = np.cumsum([cells.shape[1] for _, cells in parts])[:-1]
        where = np.split(places.ravel(), ends)
        sums = [(part, at.tolist()) for (part, _), at in zip(parts, where, strict=True)]
        self._sums = combined(self._cells.shape[1], self.n_features, sums)

    def _cells_among(self, merged: GroupMoments) -> Codes:
        """The cells, with groups and outcomes numbered as in moments that have them all."""
        cells = self._cells.copy()
        cells[_GROUP] = _places(self.groups, merged.groups)[cells[_GROUP]]
        if self.outcomes is not None and merged.outcomes is not None:
            cells[_OUTCOME] = _places(self.outcomes, merged.outcomes)[cells[_OUTCOME]]
        return cells

    def _keep(self, *, folds: bool = False, outcomes: bool = False) -> GroupMoments:
        """Moments of the same rows, with all other axes summed away; targets go with outcomes."""
        if self.n_targets and not outcomes:
            return self.select(range(self.n_features - self.n_targets))._keep(folds=folds)
        if (folds or not self.n_folds) and (outcomes or self.outcomes is None):
            return self
        kept, cells = copy(self), self._cells.copy()
        if not folds:
            cells[_FOLD], kept._rule, kept._seen = NEVER, None, Counter()
        if not outcomes:
            cells[_OUTCOME], kept.outcomes = 0, None
        kept._add_up([(self._sums, cells)])
        return kept

    def _take(self, cells: Mask) -> GroupMoments:
        """Moments of some of the cells; all groups stay, with no rows if need be."""
        taken, at = copy(self), np.flatnonzero(cells).tolist()
        taken._sums, taken._cells = self._sums.take(at), self._cells[:, at]
        return taken

    def _by_outcome(self) -> tuple[GroupMoments, Codes, Codes]:
        """Moments of each pair of an outcome and a group, and which outcome and group that is."""
        kept = self._keep(outcomes=True)
        flat = kept._take(kept._sums.weights > 0)
        folds, outcomes, groups = flat._cells
        if kept.outcomes is not None:
            pairs = zip(kept.groups[groups].tolist(), kept.outcomes[outcomes].tolist(), strict=True)
            flat.groups, flat.outcomes = label_vector(list(pairs)), None
            flat._cells = np.stack([folds, np.zeros_like(groups), np.arange(len(groups))])
        return flat, outcomes, groups

    def _split(self, fold: int) -> tuple[GroupMoments, GroupMoments]:
        """The moments of all rows that are not in a fold, and of those that are, by outcome."""
        inside = self._cells[_FOLD] == fold
        rest, left_out = self._take(~inside), self._take(inside)
        return rest._keep(outcomes=True), left_out._keep(outcomes=True)

    def _sums_by_fold(self) -> list[Sums | FewRows]:
        """The sums by group of rows that are never left out, and then of each fold that has any."""
        folds = self._cells[_FOLD]
        return [self._take(folds == fold)._group_sums() for fold in [NEVER, *self._folds()]]

    def _folds(self) -> dict[int, Array]:
        """For each fold that holds rows, the number and the total weight of each group's rows."""
        folds, _, groups = self._cells
        rows, weights, k, sizes = self._sums.rows, self._sums.weights, len(self.groups), {}
        for fold in np.unique(folds[folds != NEVER]).tolist():
            here = folds == fold
            both = rows[here], weights[here]
            sizes[fold] = np.array([np.bincount(groups[here], each, k) for each in both])
        return sizes

    def _group_sums(self) -> Sums | FewRows:
        """The sums of all groups; zeros for a group without rows."""
        places = self._cells[_GROUP].tolist()
        if places == list(range(len(self.groups))):
            return self._sums
        return combined(len(self.groups), self.n_features, [(self._sums, places)])

    def _renamed(self, names: Mapping[Label, Label]) -> GroupMoments:
        """Moments of the same rows with some groups renamed; groups of one name become one."""
        if not names:
            return self
        labels = [names.get(label, label) for label in self.groups.tolist()]
        renamed, cells = copy(self), self._cells.copy()
        renamed.groups = label_vector(sort_labels(list(dict.fromkeys(labels))))
        cells[_GROUP] = _places(label_vector(labels), renamed.groups)[cells[_GROUP]]
        renamed._seen = Counter()
        for label, n in self._seen.items():
            renamed._seen[names.get(label, label)] += n
        if self._units is not None:
            own = [(names.get(label, label), units) for label, units in self._units.items()]
            renamed._units = _united(own)
        renamed._add_up([(self._sums, cells)])
        return renamed

    # -- columns -----------------------------------------------------------------------------------

    def select(self, columns: Sequence[int], n_targets: int = 0) -> GroupMoments:
        """Moments of some of the columns, in this order; the last ``n_targets`` are targets."""
        picked = copy(self)
        picked._sums = self._sums.select(list(columns))
        picked.n_features, picked.n_targets = len(columns), n_targets
        if self.feature_names is not None:
            picked.feature_names = [self.feature_names[j] for j in columns]
        return picked

    def _divided(self, scale: Array) -> GroupMoments:
        """Moments of the rows with each column divided by its scale."""
        scaled = copy(self)
        scaled._sums = self._sums.divided(scale)
        return scaled

    # -- figures -----------------------------------------------------------------------------------

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows of each group with a positive weight."""
        rows = np.bincount(self._cells[_GROUP], self._sums.rows, minlength=len(self.groups))
        return rows.astype(np.int64)

    @property
    def n_units(self) -> NDArray[np.int64]:
        """Number of units of each group, exact up to some thousands; see ``units``."""
        if self._units is None:
            return self.counts
        sizes = [how_many(self._units[label]) for label in self.groups.tolist()]
        return np.array(sizes, np.int64)

    @property
    def weights(self) -> Array:
        """Total weight of each group; equal to ``counts`` when nothing is weighted."""
        weights = np.bincount(self._cells[_GROUP], self._sums.weights, minlength=len(self.groups))
        return weights.astype(np.float64)

    @property
    def means(self) -> Array:
        """Weighted mean of each group, of shape (k, n_features)."""
        total = self._weighted()
        return total.shifts + total.from_shifts

    @property
    def mean(self) -> Array:
        """Weighted mean over all rows."""
        return self._weighted().mean

    @property
    def from_mean(self) -> Array:
        """Group means relative to the overall mean, so that a large offset costs no digits."""
        return self._weighted().from_mean.copy()

    def second_moments(self, center: Center = "overall") -> Array:
        """``C_g`` of every group, of shape (k, n_features, n_features).

        Parameters
        ----------
        center : {"overall", "group", "balanced"}
            About the overall mean, each group's own mean, or the mean of the group means.
        """
        return self._weighted(center).second_moments(center)

    def operand(self, center: Center = "overall", compared: Mask | None = None) -> Operand:
        """The second moments as a solver wants them, and which groups it is to compare."""
        # Groups of one row do not vary about their own mean: an error only if they are compared.
        total = self._weighted("overall" if compared is None else center)
        return total.operand(center, compared)

    def variances(self) -> tuple[Array, Array]:
        """Variances of the columns about the group means, and of the group means about the mean."""
        return self._weighted().variances()

    def _weighted(self, center: Center = "overall") -> Sums | FewRows:
        """The sums of the groups; refuses groups without weight or variance about the centre."""
        if not self.n_features:
            raise ValueError("these GroupMoments are empty; add rows with update(X, groups).")
        if center not in get_args(Center):
            raise ValueError(f"center={center!r}: pass 'overall', 'group' or 'balanced'.")
        total = self._group_sums()
        check_group_weights(self.groups, total.weights)
        alone = total.rows == 1
        if center == "group" and alone.any():
            problem = f"groups {self.groups[alone].tolist()} have a single row, so no variance here"
            merged = "use center='overall', or merge them with other groups"
            raise NotEnoughRows(f"{problem}; {merged}.")
        return total

    def __copy__(self) -> GroupMoments:
        """Another object with the same sums, which are never changed in place."""
        twin = type(self)()
        vars(twin).update(vars(self))
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle: sums, but no rows."""
        total = self._sums
        return vars(self) | {"_sums": total.mixed() if isinstance(total, FewRows) else total}

    def __repr__(self) -> str:
        sizes = dict(zip(self.groups.tolist(), self.counts.tolist(), strict=True))
        return f"GroupMoments({sizes}, n_features={self.n_features})"


def moments_of_rows(
    rows: Rows,
    groups: Any,
    sample_weight: Any,
    target: Any,
    folds: FoldRule | Codes | None,
    before: GroupMoments | None = None,
    part: bool = False,
    units: Any = None,
) -> GroupMoments:
    """Moments of all rows in one pass; ``before`` are those of the rows that came before.

    A ``part`` of the data may have no row of positive weight.
    """
    before = before or GroupMoments()
    may_be_zero = part or before.n_features > 0
    if isinstance(target, NumericTarget):
        rows, target = join_targets(rows, target), None
    weights = check_sample_weight(sample_weight, rows.n_rows, may_be_zero)
    codes, labels = encode_groups(groups, rows.n_rows)
    numbers = None
    if units is not None:
        numbers = encode_units(units, rows.n_rows, before=int(before.counts.sum()))
    moments = GroupMoments()
    moments.groups, moments.n_features = labels, rows.n_features
    moments.feature_names, moments.n_targets = rows.feature_names, rows.n_targets
    k = len(labels)
    moments._cells = np.stack([np.full(k, NEVER), np.zeros(k, np.intp), np.arange(k)])
    cells = codes
    if target is not None or folds is not None:
        cells = moments._add_axes(codes, target, folds, before._seen, numbers)
    if numbers is not None:
        counted = weights is None or weights > 0
        of_groups = [numbers[(codes == g) & counted] for g in range(k)]
        moments._units = _united(list(zip(labels.tolist(), of_groups, strict=True)))
    sum_up = FewRows.of if are_few(rows.n_rows, rows.n_features) else accumulate
    moments._sums = sum_up(rows, cells, moments._cells.shape[1], weights)
    return moments


def _united(parts: Sequence[tuple[Label, Units]]) -> dict[Label, Units]:
    """What is kept of the units of each group, which may occur in several parts."""
    of_groups: dict[Label, list[Units]] = {}
    for label, units in parts:
        of_groups.setdefault(label, []).append(units)
    return {label: smallest(np.concatenate(units)) for label, units in of_groups.items()}


def moments_of_stream(
    stream: Stream,
    folds: FoldRule | Codes | None = None,
    target: Callable[[Any, GroupMoments], Any] = lambda y, before: y,
    before: GroupMoments | None = None,
) -> GroupMoments:
    """Moments of ``before`` and of the rows of a stream, which is read once.

    ``target`` turns the y of a batch into what to learn, given the moments of the rows before it.
    """
    if folds is not None and not isinstance(folds, FoldRule):
        raise ValueError("pass streams with a number of folds, for example folds=10.")
    moments = before or GroupMoments()
    first = 0
    with closing(stream.batches()) as batches:
        for batch in batches:
            y = target(batch.y, moments)
            groups, weights = batch.sensitive_features, batch.sample_weight
            try:
                part = moments_of_rows(
                    batch.X, groups, weights, y, folds, moments, part=True, units=batch.units
                )
            except (TypeError, ValueError) as error:
                place = f"in the batch that begins with row {first} of X"
                raise type(error)(f"{place}: {error}") from error
            moments = moments.merge(part)
            refuse_continuous(moments.groups, moments.counts)  # before matrices fill the memory
            refuse_ids(moments.groups, moments.counts)
            first += batch.X.n_rows
    refuse_no_rows(moments)
    return moments


def refuse_no_rows(moments: GroupMoments) -> None:
    """Refuse moments of a stream or of a cluster that held no row of positive weight."""
    if not moments.weights.any():
        raise ValueError("there are no rows of positive weight in X to learn from; pass some.")


def _places(labels: Labels, among: Labels) -> Codes:
    """The position of each label among others."""
    position = {label: g for g, label in enumerate(among.tolist())}
    return np.array([position[label] for label in labels.tolist()], np.intp)
