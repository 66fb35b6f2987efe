"""Per-group moments: all that the library ever learns from the data.

Moments are kept per *cell*: a fold, an outcome and a group. Folds and outcomes are axes that a
caller may not need; then they are summed away. Without folds and outcomes a cell is a group.

Methods under "axes" are for the other layers of this package, not for users: ``fold_sizes`` and
``split`` are the protocol of cross-validation, ``renamed`` and ``group_sums`` that of groups.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import replace
from itertools import islice
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairpca._blas import parallel_map
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
from fairpca._input.stream import Input, Stream, as_chosen, in_memory, open_input, stream_of
from fairpca._input.units import Units, encode_units, how_many, smallest
from fairpca._moments.any_sums import AnySums, combined, sum_up
from fairpca._moments.few_rows import FewRows
from fairpca._moments.operand import Operand
from fairpca._moments.pair_sums import PairSums
from fairpca._moments.sums import Sums
from fairpca._typing import Array, Center, Codes, Label, Labels, Mask
from fairpca.exceptions import NotEnoughRows

#: What sums up the rows of one batch.
SumUp = Callable[[], "GroupMoments"]
#: What turns the y of a batch into a target, given moments that know the columns before it.
Target = Callable[[Any, "GroupMoments"], Any]

_MERGE_BYTES = 1 << 28  # memory for one merge
_MOST_ROWS = 1 << 40  # of a partition; rows of different ones have different numbers
_MOST_LABELS = 10_000  # more are looked at before all rows are read
_NOTHING = Sums.combined(0, 0, [])
_MOST_CELLS = 4  # crossed groups for each group of an attribute; with more, these are not formed
_LEAST_TOGETHER = 10  # rows in which each group must have each pair of columns
Missing = Literal["error", "available"]
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
        Column names, when the rows came from data frames or streams.
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
        self._sums: AnySums = _NOTHING  # one entry per cell
        self._cells: Codes = np.empty((3, 0), np.intp)  # fold, outcome and group of each entry
        self._rule: FoldRule | None = None
        self._seen = Counter[Label]()  # rows of each group, whatever their weight
        self._units: dict[Label, Units] | None = None  # of each group; None: rows are the units
        self._margins: dict[Label, dict[str, str]] = {}  # of crossed groups; see Groups
        self._attributes: dict[Label, str] = {}  # of groups of several attributes, which overlap

    @classmethod
    def from_data(
        cls,
        X: Any,
        sensitive_features: Any,
        sample_weight: Any = None,
        target: Any = None,
        *,
        units: Any = None,
        missing: Missing = "error",
        crossing: bool = True,
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
        missing : {"error", "available"}, default="error"
            Refuse NaN, or keep the sums over the pairs of values that were observed; see
            :class:`FairPCA`.
        crossing : bool, default=True
            Cross several columns of ``sensitive_features``, or, with False, count every row in one
            group of each of them. Crossed groups can be taken apart later by
            ``FairPCA(crossing=False)``, but there may be very many of them.
        folds : int or array-like of shape (n_samples,), optional
            The number of folds, or the fold of each row, for moments by fold (:class:`FairPCACV`).
        fold_seed : int, default=0
            Another seed gives other folds.

        Numbers that look continuous, and labels that mostly name a single row, are refused;
        :meth:`update` takes any.
        """
        rule = check_folds(folds, fold_seed)
        given = open_input(X, sensitive_features, sample_weight, target, units)
        given = as_chosen(given, missing, crossing)
        if not in_memory(given.X) or is_dask(given.sensitive_features):
            moments = cls().add(given, rule)
            refuse_continuous(moments.groups, moments.counts)
            refuse_ids(moments.groups, moments.counts)
            return moments
        rows = as_rows(given.X)
        groups = encode_few_groups(given.sensitive_features, rows, crossing=crossing)
        return moments_of_rows(given._replace(X=rows, sensitive_features=groups), rule)

    @classmethod
    def from_spark(
        cls,
        frame: Any,
        sensitive_features: str | Sequence[str],
        sample_weight: str | None = None,
        target: str | None = None,
        *,
        units: str | None = None,
        missing: Missing = "error",
        crossing: bool = True,
        folds: int | None = None,
        fold_seed: int = 0,
    ) -> GroupMoments:
        """Moments of the rows of a Spark data frame; only moments reach the driver.

        Needs pyspark, and fairpca and pyarrow where the workers run. Workers
        use the Python that ``PYSPARK_PYTHON`` names: on one machine, ``sys.executable``.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
            All columns that are not named below are features, numbers: ``frame.select(...)`` makes
            such a frame.
        sensitive_features : str or list of str
            The column of group labels; several are crossed.
        sample_weight, target, units : str, optional
            Columns of non-negative weights, of outcomes, which are classes, and of units.
        missing, crossing, folds, fold_seed
            As for :meth:`from_data`; rows are counted in each partition.
        """
        from fairpca._moments.spark import moments_of_spark

        roles = stream_of(frame, sensitive_features, sample_weight, target, units)
        roles = as_chosen(Input(roles), missing, crossing).X
        return moments_of_spark(frame, roles, None if folds is None else FoldRule(folds, fold_seed))

    def update(
        self,
        X: Any,
        sensitive_features: Any,
        sample_weight: Any = None,
        target: Any = None,
        *,
        units: Any = None,
        missing: Missing = "error",
        crossing: bool = True,
        folds: int | FoldRule | ArrayLike | None = None,
        fold_seed: int = 0,
    ) -> GroupMoments:
        """Add the rows of X, in place, and return self; arguments as in :meth:`from_data`.

        When the rows are refused (missing values, wrong columns) nothing has been added.
        """
        rule = check_folds(folds, fold_seed)
        given = open_input(X, sensitive_features, sample_weight, target, units)
        return self.add(as_chosen(given, missing, crossing), rule)

    def add(self, given: Input, folds: FoldRule | Codes | None = None) -> GroupMoments:
        """Add what has come through the door; the y of a stream may be a function of batches."""
        vars(self).update(vars(self._with(given, folds)))  # an interrupt cannot divide this step
        return self

    def _with(self, given: Input, folds: FoldRule | Codes | None) -> GroupMoments:
        """The moments of these rows and of others."""
        if in_memory(given.X):
            return self.merge(moments_of_rows(given, folds, self))
        if folds is not None and not isinstance(folds, FoldRule):
            raise ValueError("pass streams and Dask with a number of folds, for example folds=10.")
        if isinstance(given.X, Stream):
            target = _unchanged
            if callable(given.y):
                target = given.y
            moments = moments_of_stream(given.X, folds, self, target=target)
        else:
            from fairpca._moments.dask import moments_of_dask

            moments = self.merge(moments_of_dask(given, folds))
        refuse_no_rows(moments)
        return moments

    def merge(self, *others: GroupMoments) -> GroupMoments:
        """Moments of all their rows together, as a new object; no operand changes."""
        for other in others:
            if not isinstance(other, GroupMoments):
                raise TypeError(
                    f"merge needs GroupMoments, got {type(other).__name__}; add rows with "
                    "update(X, groups)."
                )
        everyone = [self, *others]
        parts = [moments for moments in everyone if moments.n_features]
        merged = copy(next(iter(parts), self))
        for part in parts[1:]:
            merged._check_alike(part)
            merged.feature_names = merged.feature_names or part.feature_names
            merged.groups = union(merged.groups, part.groups)
            if merged.outcomes is not None and part.outcomes is not None:
                merged.outcomes = union(merged.outcomes, part.outcomes)
        if len(parts) > 1:
            merged._add_up([(part._sums, part._cells_among(merged)) for part in parts])
            merged._seen = sum((part._seen for part in parts), Counter())
            merged._units = _united([part._units for part in parts])
            merged._attributes = _all_of([part._attributes for part in parts])
            merged._margins = {}
            if all(part._margins for part in parts):
                merged._margins = _all_of([part._margins for part in parts])
        merged.n_dropped = sum(moments.n_dropped for moments in everyone)
        return merged

    def _check_alike(self, other: GroupMoments) -> None:
        """Refuse to merge moments with different columns, targets, folds or outcomes."""
        check_n_features(self.n_features, other.n_features, "GroupMoments")
        check_feature_names(self.feature_names, other.feature_names, "GroupMoments")
        theirs = other._axes
        for what, ours in self._axes.items():
            if ours != theirs[what]:
                raise ValueError(
                    f"merge needs moments with the same {what}, got {ours} and {theirs[what]}; "
                    "pass the same kind of y (or target), units, crossing, folds and fold_seed "
                    "each time."
                )

    @property
    def _axes(self) -> dict[str, str]:
        """What moments must have in common to be merged."""
        folds = "none"
        if self._rule is not None:
            folds = str(self._rule)
        elif self.n_folds:
            folds = "numbered folds"
        outcomes = "classes"
        if self.outcomes is None:
            outcomes = "none"
        units = "labels"
        if self._units is None:
            units = "none"
        return {
            "number of targets": str(self.n_targets),
            "outcomes": outcomes,
            "units": units,
            "folds": folds,
            "attributes": " and ".join(sorted(set(self._attributes.values()))) or "crossed",
        }

    @property
    def n_folds(self) -> int:
        """Number of folds; 0 if there are none."""
        if self._rule is not None:
            return self._rule.n_folds
        return int(self._cells[_FOLD].max(initial=NEVER)) + 1

    # -- axes --------------------------------------------------------------------------------------

    def _add_up(self, parts: Sequence[tuple[AnySums, Codes]]) -> None:
        """Set the sums to those of parts, each with the fold, outcome and group of its cells."""
        cells = np.concatenate([cells for _, cells in parts], axis=1)
        self._cells, places = np.unique(cells, axis=1, return_inverse=True)
        place = iter(places.ravel().tolist())
        sums = [(part, list(islice(place, cells.shape[1]))) for part, cells in parts]
        self._sums = combined(self._cells.shape[1], self.n_features, sums)

    def _cells_among(self, merged: GroupMoments) -> Codes:
        """The cells, with groups and outcomes numbered as in moments that have them all."""
        cells = self._cells.copy()
        cells[_GROUP] = _places(self.groups, merged.groups)[cells[_GROUP]]
        if self.outcomes is not None and merged.outcomes is not None:
            cells[_OUTCOME] = _places(self.outcomes, merged.outcomes)[cells[_OUTCOME]]
        return cells

    def keep(self, *, folds: bool = False, outcomes: bool = False) -> GroupMoments:
        """Moments of the same rows, with all other axes summed away; targets go with outcomes."""
        if self.n_targets and not outcomes:
            return self.select(range(self.n_features - self.n_targets)).keep(folds=folds)
        if (folds or not self.n_folds) and (outcomes or self.outcomes is None):
            return self
        kept = copy(self)
        cells = self._cells.copy()
        if not folds:
            cells[_FOLD] = NEVER
            kept._rule = None
            kept._seen = Counter()
        if not outcomes:
            cells[_OUTCOME] = 0
            kept.outcomes = None
        kept._add_up([(self._sums, cells)])
        return kept

    def by_attribute(self) -> GroupMoments:
        """Moments of the same rows, each of which counts in one group of each attribute.

        So groups of different attributes overlap, and each row counts as often as there are
        attributes. Moments of groups that were not crossed stay as they are.
        """
        if not self._margins:
            return self
        parts = []
        for places in self._places_by_attribute():
            cells = self._cells.copy()
            cells[_GROUP] = places[cells[_GROUP]]
            parts.append((self._sums, cells))
        return self._overlapping(parts)

    def of_attributes(self, attributes: Mapping[Label, str]) -> GroupMoments:
        """The same moments, of groups of these attributes: each row was passed once for each."""
        known = copy(self)
        known._attributes = {g: attributes[g] for g in self.groups.tolist() if g in attributes}
        return known

    def _margin_labels(self) -> Labels:
        """The groups of all attributes."""
        labels = {label for own in self._margins.values() for label in own.values()}
        return label_vector(sorted(labels))

    def _places_by_attribute(self) -> list[Codes]:
        """For each attribute, the place of each crossed group among the groups of attributes."""
        among = self._margin_labels()
        names = [self._margins[label].values() for label in self.groups.tolist()]
        return [_places(label_vector(labels), among) for labels in zip(*names, strict=True)]

    def _overlapping(self, parts: Sequence[tuple[AnySums, Codes]]) -> GroupMoments:
        """Moments of the groups of attributes, given sums and cells for each attribute."""
        if any(isinstance(sums, PairSums) for sums, _ in parts):
            raise ValueError(
                "crossing=False does not go with missing values: fit to complete rows, or cross "
                "the sensitive features."
            )
        found = copy(self)
        found.groups = self._margin_labels()
        margins = self._margins.values()
        found._attributes = {label: name for own in margins for name, label in own.items()}
        if len(found._attributes) < len({pair for own in margins for pair in own.items()}):
            raise ValueError(
                "two columns of sensitive_features give groups of the same name, one of "
                f"{', '.join(map(str, found._attributes))}; rename a column."
            )
        if self._units is not None:
            own_units: list[dict[Label, Units] | None] = [
                {margin: units}
                for label, units in self._units.items()
                for margin in self._margins[label].values()
            ]
            found._units = _united(own_units)
        found._margins = {}
        found._add_up(parts)
        return found

    def _take(self, cells: Mask) -> GroupMoments:
        """Moments of some of the cells; all groups stay, with no rows if need be."""
        taken = copy(self)
        at = np.flatnonzero(cells).tolist()
        taken._sums = self._sums.take(at)
        taken._cells = self._cells[:, at]
        return taken

    def by_group(self) -> Iterator[tuple[Label, GroupMoments]]:
        """Each group's label, and its moments alone."""
        for g, label in enumerate(self.groups.tolist()):
            part = self._take(self._cells[_GROUP] == g)
            part.groups = self.groups[[g]]
            part._cells[_GROUP] = 0
            part._seen = Counter({label: self._seen[label]})
            if self._units is not None:
                part._units = {label: self._units[label]}
            yield label, part

    def _by_outcome(self) -> tuple[GroupMoments, Codes, Codes]:
        """Moments of each pair of an outcome and a group, and which outcome and group that is."""
        kept = self.keep(outcomes=True)
        flat = kept._take(kept._sums.weights > 0)
        folds, outcomes, groups = flat._cells
        if kept.outcomes is not None:
            pairs = zip(kept.groups[groups].tolist(), kept.outcomes[outcomes].tolist(), strict=True)
            flat.groups = label_vector(list(pairs))
            flat.outcomes = None
            flat._cells = np.stack([folds, np.zeros_like(groups), np.arange(len(groups))])
        return flat, outcomes, groups

    def split(self, fold: int) -> tuple[GroupMoments, GroupMoments]:
        """The moments of all rows that are not in a fold, and of those that are, by outcome."""
        inside = self._cells[_FOLD] == fold
        rest = self._take(~inside)
        left_out = self._take(inside)
        return rest.keep(outcomes=True), left_out.keep(outcomes=True)

    def about_one_origin(self) -> GroupMoments:
        """The same moments, whose cells add up without being moved."""
        sums = self._sums
        moved = copy(self)
        origin = (sums.weights @ sums.shifts + sums.sums.sum(axis=0)) / sums.weights.sum()
        moved._sums = sums.moved(origin)
        return moved

    def in_row_space(self) -> GroupMoments:
        """The same moments, in the coordinates of the rows' span where rows are few."""
        if not isinstance(self._sums, FewRows):
            return self
        turned = copy(self)
        turned._sums = self._sums.in_row_space()
        turned.n_features = turned._sums.sums.shape[1]
        turned.feature_names = None
        return turned

    def sums_by_fold(self) -> list[AnySums]:
        """The sums by group of rows that are never left out, and then of each fold that has any."""
        folds = self._cells[_FOLD]
        return [self._take(folds == fold).group_sums() for fold in [NEVER, *self.fold_sizes()]]

    def fold_sizes(self) -> dict[int, Array]:
        """For each fold that holds rows, the number and the total weight of each group's rows."""
        folds, _, groups = self._cells
        rows = self._sums.rows
        weights = self._sums.weights
        k = len(self.groups)
        sizes = {}
        for fold in np.unique(folds[folds != NEVER]).tolist():
            here = folds == fold
            both = rows[here], weights[here]
            sizes[fold] = np.array([np.bincount(groups[here], each, k) for each in both])
        return sizes

    def group_sums(self) -> AnySums:
        """The sums of all groups; zeros for a group without rows."""
        places = self._cells[_GROUP].tolist()
        if places == list(range(len(self.groups))):
            return self._sums
        return combined(len(self.groups), self.n_features, [(self._sums, places)])

    def renamed(self, names: Mapping[Label, Label]) -> GroupMoments:
        """Moments of the same rows with some groups renamed; groups of one name become one."""
        if not names:
            return self
        labels = [names.get(label, label) for label in self.groups.tolist()]
        renamed = copy(self)
        cells = self._cells.copy()
        renamed.groups = label_vector(sort_labels(list(dict.fromkeys(labels))))
        cells[_GROUP] = _places(label_vector(labels), renamed.groups)[cells[_GROUP]]
        renamed._seen = Counter()
        for label, n in self._seen.items():
            renamed._seen[names.get(label, label)] += n
        if self._units is not None:
            own = [{names.get(label, label): units} for label, units in self._units.items()]
            renamed._units = _united(own)
        renamed._attributes = {names.get(label, label): a for label, a in self._attributes.items()}
        renamed._margins = {}
        renamed._add_up([(self._sums, cells)])
        return renamed

    # -- columns -----------------------------------------------------------------------------------

    def select(self, columns: Sequence[int], n_targets: int = 0) -> GroupMoments:
        """Moments of some of the columns, in this order; the last ``n_targets`` are targets."""
        picked = copy(self)
        picked._sums = self._sums.select(list(columns))
        picked.n_features = len(columns)
        picked.n_targets = n_targets
        if self.feature_names is not None:
            picked.feature_names = [self.feature_names[j] for j in columns]
        return picked

    def divided(self, scale: Array) -> GroupMoments:
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
    def attributes(self) -> dict[str, Mask]:
        """The groups of each attribute, as masks, where groups of several attributes overlap."""
        names = [self._attributes.get(label) for label in self.groups.tolist()]
        found = dict.fromkeys(name for name in names if name is not None)
        return {name: np.array([own == name for own in names]) for name in found}

    @property
    def partitions(self) -> list[Mask]:
        """The groups of each attribute, as masks; each row is in one group of each."""
        return list(self.attributes.values()) or [np.ones(len(self.groups), bool)]

    @property
    def n_rows(self) -> int:
        """Number of rows with a positive weight."""
        return int(self.counts[self.partitions[0]].sum())

    @property
    def has_units(self) -> bool:
        """Whether units were passed, so that rows are not the units."""
        return self._units is not None

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
        total = self._weighted(center, False if compared is None else compared)
        return total.operand(center, compared)

    def refuse_rare_pairs(self, compared: Mask) -> None:
        """Refuse a pair of columns that a group which is compared hardly ever has together."""
        total = self.group_sums()
        if not isinstance(total, PairSums):
            return
        names = self.feature_names or [f"column {j}" for j in range(self.n_features)]
        for g in np.flatnonzero(compared).tolist():
            i, j, rows = total.rarest_pair(g)
            if rows > _LEAST_TOGETHER - 0.5:
                continue
            which = f"{names[i]!r} and {names[j]!r} together"
            if i == j:
                which = repr(names[i])
            raise ValueError(
                f"group {self.groups.tolist()[g]!r} has {which} in {rows:.0f} rows only, and "
                f"missing='available' needs {_LEAST_TOGETHER}; leave out a column, or merge small "
                "groups with min_group_size and small_groups='merge'."
            )

    @property
    def holds_rows(self) -> bool:
        """Whether rows, turned, stand in for matrices that would be larger."""
        return isinstance(self._sums, FewRows)

    @property
    def has_missing(self) -> bool:
        """Whether values are missing in some of the rows."""
        return isinstance(self._sums, PairSums)

    @property
    def share_missing(self) -> Array:
        """The share of the values of each group that are missing."""
        total = self.group_sums()
        if isinstance(total, PairSums):
            return total.share_missing
        return np.zeros(len(self.groups))

    @property
    def observed(self) -> Array | None:
        """The share of each group's rows that have each pair of columns; None if all have all."""
        total = self.group_sums()
        if isinstance(total, PairSums):
            return total.observed
        return None

    def completed(self, sums: AnySums, origin: Array) -> AnySums:
        """What sums of some of these rows would be on average, were they complete."""
        total = self.group_sums()
        if isinstance(sums, PairSums) and isinstance(total, PairSums):
            return sums.completed(origin, total)
        return sums

    @property
    def covariance(self) -> Array:
        """The second moments of all rows about the overall mean."""
        operand = self.operand()
        return np.tensordot(operand.shares, operand.dense_matrices, axes=1)

    @property
    def clipped_variance(self) -> Array:
        """What clipping negative eigenvalues adds to each group's variance, as a share of it."""
        total = self.group_sums()
        if isinstance(total, PairSums):
            return total.clipped_variance()
        return np.zeros(len(self.groups))

    def variances(self) -> tuple[Array, Array]:
        """Variances of the columns about the group means, and of the group means about the mean."""
        return self._weighted().variances()

    def _weighted(self, center: Center = "overall", compared: Mask | bool = True) -> AnySums:
        """The sums of the groups; refuses groups without weight.

        A group of one row has no variance about its own mean: an error only if it is compared.
        """
        if not self.n_features:
            raise ValueError("these GroupMoments are empty; add rows with update(X, groups).")
        if center not in get_args(Center):
            raise ValueError(f"center={center!r}: pass 'overall', 'group' or 'balanced'.")
        total = self.group_sums()
        check_group_weights(self.groups, total.weights)
        alone = (total.rows == 1) & compared
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
    given: Input,
    folds: FoldRule | Codes | None = None,
    before: GroupMoments | None = None,
    partition: int | None = None,
) -> GroupMoments:
    """Moments of rows in memory; ``before`` are those of the rows that came before."""
    may_be_zero = before is not None or partition is not None
    seen = Counter[Label]()
    if before is not None:
        seen = before._seen
    _, sum_up = _begin(given, folds, seen, may_be_zero, partition)
    return sum_up()


def _unchanged(y: Any, before: GroupMoments) -> Any:
    return y


def moments_of_stream(
    stream: Stream,
    folds: FoldRule | Codes | None = None,
    before: GroupMoments | None = None,
    partition: int | None = None,
    target: Target = _unchanged,
) -> GroupMoments:
    """Moments of ``before`` and of the rows of a stream, which is read once.

    Batches are drawn and labelled one after the other, and summed up in threads. ``target`` turns
    the y of a batch into what to learn, given moments with the columns of the rows before it.
    """
    moments = before or GroupMoments()

    def begin(batches: Iterable[Input]) -> Iterator[tuple[str, GroupMoments, SumUp]]:
        known = moments
        seen = moments._seen
        first = 0
        for batch in batches:
            place = f"in the batch that begins with row {first} of X"
            with naming(place):
                given = batch._replace(y=target(batch.y, known))
                known, sum_up = _begin(given, folds, seen, may_be_zero=True, partition=partition)
            seen = seen + known._seen
            if stream.crossing:
                _refuse_unlike_groups(seen, known.n_features)
            yield place, known, sum_up
            first += batch.X.n_rows

    def finish(begun: tuple[str, GroupMoments, SumUp]) -> GroupMoments:
        place, _, sum_up = begun
        with naming(place):
            return sum_up()

    with closing(stream.batches()) as batches:
        waiting = list[GroupMoments]()
        for part in parallel_map(finish, begin(batches)):
            waiting.append(part)
            if len(waiting) == fan_in(part.n_features, folds):
                moments = moments.merge(*waiting)
                waiting.clear()
    return moments.merge(*waiting)


def fan_in(n_features: int, folds: FoldRule | Codes | None) -> int:
    """How many moments are merged at once: fewer if they are large."""
    n_cells = 1
    if isinstance(folds, FoldRule):
        n_cells = folds.n_folds
    return max(2, min(16, _MERGE_BYTES // (8 * n_cells * max(1, n_features) ** 2)))


def refuse_no_rows(moments: GroupMoments) -> None:
    """Refuse moments of a stream or of a cluster that held no row of positive weight."""
    if not moments.weights.any():
        raise ValueError("there are no rows of positive weight in X to learn from; pass some.")


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Say in errors which part of X they are about."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{place}: {error}") from error


def _begin(
    given: Input,
    folds: FoldRule | Codes | None,
    seen: Counter[Label],
    may_be_zero: bool = False,
    partition: int | None = None,
) -> tuple[GroupMoments, SumUp]:
    """Moments of rows without their sums, and the function that gives those with sums.

    ``seen`` counts the rows of each group that came before, and ``may_be_zero`` allows rows without
    weight. Rows of a ``partition`` of a cluster have a count of their own.
    """
    rows: Rows = as_rows(given.X)
    target = given.y
    if isinstance(target, NumericTarget):
        rows = join_targets(rows, target)
        target = None
    n = rows.n_rows
    weights = check_sample_weight(given.sample_weight, n, may_be_zero)
    moments = GroupMoments()
    codes, moments.groups, moments._margins = encode_groups(given.sensitive_features, n)
    moments.n_features = rows.n_features
    moments.feature_names = rows.feature_names
    moments.n_targets = rows.n_targets
    outcomes = np.zeros(n, np.intp)
    if target is not None:
        outcomes, moments.outcomes = encode_outcomes(target, n)
    labels = moments.groups.tolist()
    counts = np.bincount(codes, minlength=len(labels)).tolist()
    moments._seen = Counter(dict(zip(labels, counts, strict=True)))
    units: Units | None = None
    if given.units is not None:
        first = sum(seen.values()) + (partition or 0) * _MOST_ROWS
        units = encode_units(given.units, n, first)
        counted = True if weights is None else weights > 0
        own = [units[(codes == g) & counted] for g in range(len(labels))]
        moments._units = _united([dict(zip(labels, own, strict=True))])
    numbers = np.full(n, NEVER)
    if isinstance(folds, FoldRule):
        moments._rule = replace(folds, by_unit=units is not None)
        before = np.array([seen[label] for label in labels], np.intp)
        numbers = _dealt(moments._rule, codes, units, before, partition)
    elif folds is not None:
        numbers = _checked(folds, n)

    def summed(codes: Codes) -> tuple[AnySums, Codes]:
        cell_of, places = cross_codes([numbers - NEVER, outcomes, codes])
        cells = np.array(places)
        cells[_FOLD] += NEVER
        return sum_up(rows, cell_of, cells.shape[1], weights, given.may_miss), cells

    def finish() -> GroupMoments:
        if given.crossing or not moments._margins:
            moments._sums, moments._cells = summed(codes)
            return moments
        if len(moments.groups) > _MOST_CELLS * len(moments._margin_labels()):
            places = moments._places_by_attribute()
            return moments._overlapping([summed(own[codes]) for own in places])
        moments._sums, moments._cells = summed(codes)
        return moments.by_attribute()

    return moments, finish


def _all_of(parts: Sequence[dict[Label, Any]]) -> dict[Label, Any]:
    """The entries of all these dictionaries."""
    return {label: value for part in parts for label, value in part.items()}


def _dealt(
    rule: FoldRule, codes: Codes, units: Units | None, before: Codes, partition: int | None
) -> Codes:
    """The fold of each row, given how many rows of each group came before."""
    if units is not None:
        return rule.folds_of_units(units)
    if partition is not None:
        rule = rule.within(partition)
    return rule.folds_of(codes, before)


def _checked(folds: Codes, n_rows: int) -> Codes:
    if len(folds) != n_rows:
        problem = f"folds has {len(folds)} numbers but X has {n_rows} rows"
        raise ValueError(f"{problem}; pass one number per row, or how many folds there are.")
    return folds


def _united(parts: Sequence[dict[Label, Units] | None]) -> dict[Label, Units] | None:
    """What is kept of the units of each group, which may occur in several parts."""
    found = defaultdict[Label, list[Units]](list)
    for part in parts:
        if part is None:
            return None
        for label, units in part.items():
            found[label].append(units)
    return {label: smallest(np.concatenate(units)) for label, units in found.items()}


def _refuse_unlike_groups(seen: Counter[Label], n_features: int) -> None:
    """Refuse labels that look like ids, before their matrices fill the memory."""
    if len(seen) > _MOST_LABELS or len(seen) * n_features**2 > _MERGE_BYTES:
        labels = sort_labels(list(seen))
        counts = np.array([seen[label] for label in labels])
        refuse_continuous(label_vector(labels), counts)
        refuse_ids(label_vector(labels), counts)


def _places(labels: Labels, among: Labels) -> Codes:
    """The position of each label among others."""
    position = {label: g for g, label in enumerate(among.tolist())}
    return np.array([position[label] for label in labels.tolist()], np.intp)
