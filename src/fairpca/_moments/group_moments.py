"""Per-group moments: all that the library ever learns from the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import partial
from pathlib import PurePath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairpca._input.checks import (
    check_feature_names,
    check_group_weights,
    check_n_features,
    check_sample_weight,
)
from fairpca._input.crossing import name_cells
from fairpca._input.device import is_dask
from fairpca._input.joint import NumericTarget, as_targets, join_targets
from fairpca._input.labels import (
    Cell,
    CodedLabels,
    encode_cells,
    encode_groups,
    label_vector,
    refuse_twin_labels,
    sort_labels,
)
from fairpca._input.rows import Rows, as_rows
from fairpca._moments.buffer import Gathered
from fairpca._moments.few_rows import FewRows, combined, sum_up
from fairpca._moments.fold_labels import (
    FoldOptions,
    HashedFolds,
    check_folds,
    check_hashed_folds,
    cross_folds,
    group_of,
    have_folds,
    with_group,
)
from fairpca._moments.operand import Operand
from fairpca._moments.sums import Sums
from fairpca._tables.decode import TableBlock
from fairpca._tables.roles import refuse_no_group
from fairpca._typing import Array, Center, Codes, Labels, Mask

FileFormat = Literal["csv", "tsv", "parquet", "arrow"]

_NOTHING = Gathered(Sums.combined(0, 0, []))


class GroupMoments:
    """Counts, means and second moments of each group, accumulated in one pass.

    Accumulate anywhere, in any order, and :meth:`merge`: the result is that of one pass over all
    rows, up to rounding. Everything the estimators need is in here, so nothing touches X again.

    Build one with :meth:`from_data`; an empty one, ``GroupMoments()``, can be filled by
    :meth:`update`.

    Attributes
    ----------
    groups : ndarray of shape (k,)
        The group labels, sorted.
    n_features : int
        Number of columns, 0 while empty.
    feature_names : list of str or None
        Column names, when the rows came from data frames or files.
    n_dropped : int
        Number of rows left out because of missing values, where that was asked for.
    n_targets : int
        How many of the last columns are no features but targets; see :class:`FairPLS`.

    Examples
    --------
    >>> import numpy as np
    >>> from fairpca import GroupMoments
    >>> X = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 9.0]])
    >>> moments = GroupMoments.from_data(X, ["a", "a", "b"])
    >>> moments.groups, moments.counts
    (array(['a', 'b'], dtype='<U1'), array([2, 1]))
    >>> moments.means
    array([[1., 2.],
           [4., 9.]])
    >>> half = GroupMoments.from_data(X[:1], ["a"])
    >>> rest = GroupMoments.from_data(X[1:], ["a", "b"])
    >>> bool(np.allclose(half.merge(rest).second_moments(), moments.second_moments()))
    True
    """

    def __init__(self) -> None:
        self.groups: Labels = np.empty(0, dtype=object)
        self.n_features: int = 0
        self.feature_names: list[str] | None = None
        self.n_dropped: int = 0
        self.n_targets: int = 0
        self._gathered = _NOTHING
        self._n_seen: int = 0  # rows, those of weight zero too

    @property
    def _total(self) -> Sums | FewRows:
        """The sums of all rows."""
        if self._gathered.n_rows:
            self._gathered = self._gathered.settled()
        return self._gathered.total

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: sums, but no rows."""
        total = self._total
        hidden = total.mixed() if isinstance(total, FewRows) else total
        return vars(self) | {"_gathered": Gathered(hidden)}

    def __copy__(self) -> GroupMoments:
        """Another object with the same sums."""
        self._gathered = self._gathered.settled()
        return type(self)()._become(self)

    @classmethod
    def from_data(
        cls,
        X: Any,
        groups: Any,
        sample_weight: Any = None,
        target: Any = None,
        *,
        folds: Any = None,
        fold_seed: int = 0,
    ) -> GroupMoments:
        """Moments of the rows of X.

        Parameters
        ----------
        X : array, memory map, sparse matrix or data frame of shape (n_samples, n_features)
            Real numbers without missing values. Neither modified nor copied whole. A dask array or
            data frame is reduced block by block where its blocks are, an array of torch, CuPy and
            the like on its own device.
        groups : array-like of shape (n_samples,) or (n_samples, n_columns)
            The group of each row: strings, numbers, booleans or categoricals; several columns are
            crossed.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights; weight 2 counts as the row standing there twice.
        target : array-like of shape (n_samples,), optional
            The outcome of each row, a class. Every pair of a group and an outcome that occurs is
            then a group of its own, labelled by that pair, as :class:`BlindPCA` and
            :class:`FairPLS` need it.
        folds : int or array-like of shape (n_samples,), optional
            Keep the moments of folds apart, as ``FairPCA(cv=...).fit_moments`` needs them: the
            number of each row's fold, or how many folds there are. Rows then go to folds by a hash
            of their position among all rows seen so far; in dask collections, in their block.
        fold_seed : int, default=0
            Another seed gives other folds.

        Returns
        -------
        GroupMoments
        """
        if is_dask(X):
            return cls().update(X, groups, sample_weight, target, folds=folds, fold_seed=fold_seed)
        plan = check_folds(folds, fold_seed)
        return moments_of_rows(as_rows(X), groups, sample_weight, target, plan)

    @classmethod
    def from_files(
        cls,
        paths: Any,
        *,
        group: str | Sequence[str],
        columns: Sequence[str] | None = None,
        sample_weight: str | None = None,
        target: str | None = None,
        drop_missing: bool = False,
        file_format: FileFormat | None = None,
        encoding: str = "utf-8",
        progress: Callable[[float], object] | None = None,
        folds: int | None = None,
        fold_seed: int = 0,
    ) -> GroupMoments:
        r"""Moments of the rows of files, read block by block in constant memory.

        Needs the extra ``fairpca[files]``.

        Parameters
        ----------
        paths : str, path or list of them
            CSV, TSV, Parquet or Arrow (IPC, Feather) files, or a folder of one of these kinds; its
            ``key=value`` subfolders count as columns.
        group : str or list of str
            The column of group labels: strings, categories, integers, booleans. In text files every
            label is text, so 01 and 1 are two groups. Several columns are crossed: each combination
            that occurs is a group.
        columns : list of str, optional
            The features, numbers or booleans; by default all such columns of the first file but
            ``group`` and ``sample_weight``.
        sample_weight : str, optional
            A column of non-negative weights.
        target : str, optional
            A column of outcomes, which are classes; see :meth:`from_data`.
        drop_missing : bool, default=False
            Leave out rows with missing values and count them in ``n_dropped``. By default they are
            an error that names the file and the row.
        file_format : {"csv", "tsv", "parquet", "arrow"}, optional
            By default told from the file names.
        encoding : str, default="utf-8"
            Of text files.
        progress : callable, optional
            Called in this thread with the fraction done, rising to 1.
        folds : int, optional
            Keep the moments of so many folds apart, as ``FairPCA(cv=...)`` needs them. Rows go to
            folds by a hash of the name of their file and their position in it.
        fold_seed : int, default=0
            Another seed gives other folds.

        Returns
        -------
        GroupMoments

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from fairpca import GroupMoments
        >>> with TemporaryDirectory() as folder:
        ...     file = Path(folder, "people.csv")
        ...     _ = file.write_text("height,weight,sex\n1.7,65,f\n1.8,80,m\n1.6,55,f\n")
        ...     moments = GroupMoments.from_files(file, group="sex")
        >>> moments
        GroupMoments({'f': 2, 'm': 1}, n_features=2)
        >>> moments.feature_names
        ['height', 'weight']
        """
        from fairpca._tables.table import FileTable

        refuse_no_group(group)
        table = FileTable(paths, file_format, encoding)
        roles = table.choose(columns, _crossed_columns(group, target), sample_weight)
        make = partial(decoded_moments, folds=check_hashed_folds(folds, fold_seed))
        moments = cls()
        for part in table.map(roles, make, drop_missing, progress):
            moments = moments.merge(part)
        return moments._refuse_empty(table.name)._name_intersections(roles.groups, target)

    @classmethod
    def from_spark(
        cls,
        frame: Any,
        *,
        group: str | Sequence[str],
        columns: Sequence[str] | None = None,
        sample_weight: str | None = None,
        target: str | None = None,
        drop_missing: bool = False,
        folds: int | None = None,
        fold_seed: int = 0,
    ) -> GroupMoments:
        """Moments of the rows of a Spark data frame; only moments reach the driver.

        Needs the extra ``fairpca[spark]``, and fairpca and pyarrow where the workers run. Workers
        use the Python that ``PYSPARK_PYTHON`` names: in one machine, ``sys.executable``.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
        group, columns, sample_weight, target, drop_missing
            As for :meth:`from_files`.
        folds, fold_seed : int, optional
            As for :meth:`from_files`; the position of a row is that in its partition.

        Returns
        -------
        GroupMoments
        """
        from fairpca._tables.spark import reduce_partitions

        refuse_no_group(group)
        crossed = _crossed_columns(group, target)
        moments = reduce_partitions(
            frame,
            columns,
            crossed,
            sample_weight,
            drop_missing,
            make=partial(decoded_moments, folds=check_hashed_folds(folds, fold_seed)),
            merge=GroupMoments.merge,
            nothing=cls(),
        )
        return moments._refuse_empty("the Spark frame")._name_intersections(crossed, target)

    def update(
        self,
        X: Any,
        groups: Any,
        sample_weight: Any = None,
        target: Any = None,
        *,
        folds: Any = None,
        fold_seed: int = 0,
    ) -> GroupMoments:
        """Add the rows of X, in place, and return self; arguments as in :meth:`from_data`.

        When the rows are refused (missing values, wrong columns) nothing has been added.
        """
        plan = check_folds(folds, fold_seed)
        if is_dask(X):
            from fairpca._tables.dask import reduce_blocks

            cut = groups, sample_weight, target
            part = reduce_blocks(X, *cut, partial(_dask_moments, plan), GroupMoments.merge)
            return self._become(self.merge(part._refuse_empty("X")))
        rows, target = _joined(as_rows(X), target)
        weights = check_sample_weight(
            sample_weight, rows.n_rows, may_all_be_zero=self.n_features > 0
        )
        if self.n_features:
            check_n_features(self.n_features, rows.n_features, "GroupMoments.update")
            check_feature_names(self.feature_names, rows.feature_names, "GroupMoments.update")
        codes, labels = _encode(groups, target, rows.n_rows, plan, self._n_seen)
        places = _places(labels.tolist(), self.groups.tolist())
        # A group without a weighted row has no shift yet.
        if -1 not in places and self._gathered.total.rows[places].all():
            self._gathered = self._gathered.with_room(rows.n_rows)
            gathered = self._gathered.plus(rows, np.array(places, np.intp)[codes], weights)
            if gathered is not None:
                self.feature_names = self.feature_names or rows.feature_names
                self._gathered = gathered
                self._n_seen += rows.n_rows
                return self
        total = sum_up(rows, codes, len(labels), weights)
        part = _moments_of(labels, total, rows.feature_names, rows.n_targets, rows.n_rows)
        return self._become(self.merge(part))

    def _become(self, other: GroupMoments) -> GroupMoments:
        """Take over all that ``other`` holds, in one step that an interrupt cannot divide."""
        vars(self).update(vars(other))
        return self

    def merge(self, other: GroupMoments) -> GroupMoments:
        """Moments of both sets of rows together, as a new object; neither operand changes."""
        if not isinstance(other, GroupMoments):
            raise TypeError(
                f"merge needs GroupMoments, got {type(other).__name__}; add rows with "
                "update(X, groups)."
            )
        if self.n_features and other.n_features:
            check_n_features(self.n_features, other.n_features, "GroupMoments.merge")
            check_feature_names(self.feature_names, other.feature_names, "GroupMoments.merge")
            if self.n_targets != other.n_targets:
                raise ValueError(
                    f"merge needs moments with the same number of targets, got {self.n_targets} "
                    f"and {other.n_targets}; pass numbers as y with every block, or with none."
                )
            known, new = self.groups.tolist(), other.groups.tolist()
            if known != new:
                refuse_twin_labels([*known, *new])
            merged = _combined([(self, known), (other, new)])
        else:
            merged = copy(self if self.n_features else other)
        merged.n_dropped = self.n_dropped + other.n_dropped
        merged._n_seen = self._n_seen + other._n_seen
        return merged

    def relabel(self, names: Mapping[Any, Any]) -> GroupMoments:
        """Moments of the same rows with some groups renamed, as a new object.

        Parameters
        ----------
        names : mapping
            From old labels to new ones; groups that get the same label become one.

        Returns
        -------
        GroupMoments

        Examples
        --------
        >>> from fairpca import GroupMoments
        >>> moments = GroupMoments.from_data([[0.0], [2.0], [4.0]], ["a", "b", "c"])
        >>> moments.relabel({"b": "b or c", "c": "b or c"})
        GroupMoments({'a': 1, 'b or c': 2}, n_features=1)
        """
        known = self.groups.tolist()
        unknown = [label for label in names if label not in known]
        if unknown:
            raise ValueError(
                f"relabel got names for {unknown[:5]}, but these moments have no such groups; "
                f"rename some of {known[:5]}{'...' if len(known) > 5 else ''}."
            )
        renamed = _combined([(self, [names.get(label, label) for label in known])])
        renamed.n_dropped, renamed._n_seen = self.n_dropped, self._n_seen
        return renamed

    def select(self, columns: Sequence[int], n_targets: int = 0) -> GroupMoments:
        """Moments of some of the columns, in this order, as a new object.

        Parameters
        ----------
        columns : sequence of int
        n_targets : int
            How many of the last ones are targets.

        Returns
        -------
        GroupMoments

        Examples
        --------
        >>> from fairpca import GroupMoments
        >>> moments = GroupMoments.from_data([[0.0, 5.0], [2.0, 7.0]], ["a", "b"])
        >>> moments.select([1]).means
        array([[5.],
               [7.]])
        """
        picked = copy(self)
        picked._gathered = Gathered(self._total.select(list(columns)))
        picked.n_features, picked.n_targets = len(columns), n_targets
        if self.feature_names is not None:
            picked.feature_names = [self.feature_names[j] for j in columns]
        return picked

    def without_folds(self) -> GroupMoments:
        """Moments of the same rows by group alone, where those of folds were kept apart.

        Examples
        --------
        >>> from fairpca import GroupMoments
        >>> moments = GroupMoments.from_data([[0.0], [2.0], [4.0]], list("aab"), folds=[0, 1, 0])
        >>> moments.without_folds()
        GroupMoments({'a': 2, 'b': 1}, n_features=1)
        """
        found = self.groups.tolist()
        if not have_folds(found):
            return self
        first = [i for i, label in enumerate(found) if label.repeat == 0]  # every row once
        labels = sort_labels(list(dict.fromkeys(map(group_of, found))))
        places = _places([group_of(found[i]) for i in first], labels)
        total = combined(len(labels), self.n_features, [(self._total.take(first), places)])
        plain = _moments_of(
            label_vector(labels), total, self.feature_names, self.n_targets, self._n_seen
        )
        plain.n_dropped = self.n_dropped
        return plain

    def _refuse_empty(self, source: str) -> GroupMoments:
        if self.n_features:
            return self
        raise ValueError(
            f"there are no rows of positive weight to learn from in {source} ({self.n_dropped} "
            "were dropped because of missing values); pass complete rows."
        )

    def _name_intersections(self, columns: Sequence[str], target: str | None) -> GroupMoments:
        """Labels as crossed columns in memory have them, in place of one label per column."""
        if len(columns) < 2:
            return self
        found = list(dict.fromkeys(map(group_of, self.groups.tolist())))
        if target is None:
            named = dict(zip(found, name_cells(found, columns), strict=True))
        else:
            groups = list(dict.fromkeys(labels[:-1] for labels in found))
            crossed = len(columns) > 2
            names = name_cells(groups, columns) if crossed else [label for (label,) in groups]
            of = dict(zip(groups, names, strict=True))
            named = {labels: Cell(of[labels[:-1]], labels[-1]) for labels in found}
        return self.relabel({g: with_group(g, named[group_of(g)]) for g in self.groups.tolist()})

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows of each group with a positive weight."""
        return self._total.rows.copy()

    @property
    def weights(self) -> Array:
        """Total weight of each group; equal to ``counts`` when nothing is weighted."""
        return self._total.weights.copy()

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
        """Group means seen from the overall mean, where a large offset cannot round them."""
        return self._weighted().from_mean

    def second_moments(self, center: Center = "overall") -> Array:
        """``C_g`` of every group, of shape (k, n_features, n_features).

        Parameters
        ----------
        center : {"overall", "group"}
            About the overall mean (the paper's choice) or about each group's own mean.

        Returns
        -------
        ndarray of shape (k, n_features, n_features)
        """
        return self._with_center(center).second_moments(center)

    def operand(self, center: Center = "overall", compared: Mask | None = None) -> Operand:
        """The second moments as a solver wants them, and which groups it is to compare."""
        return self._with_center(center).operand(center, compared)

    def variances(self) -> tuple[Array, Array]:
        """Of each column: about the group means, and of the group means about the overall mean."""
        return self._weighted().variances()

    def standardize(self) -> tuple[GroupMoments, Array]:
        """Moments of the rows with each column divided by its standard deviation over all rows.

        Returns
        -------
        moments : GroupMoments
            A new object.
        scale : ndarray of shape (n_features,)
            The divisors, with n - 1 as in the paper; 1 for columns that do not vary.

        Examples
        --------
        >>> from fairpca import GroupMoments
        >>> moments = GroupMoments.from_data([[0, 7], [2, 7], [4, 7]], ["a", "a", "b"])
        >>> moments, scale = moments.standardize()
        >>> scale
        array([2., 1.])
        >>> moments.means
        array([[0.5, 7. ],
               [2. , 7. ]])
        """
        std = self._deviations()
        scale = np.where(std > 0, std, 1.0)
        scaled = copy(self)
        scaled._gathered = Gathered(self._total.divided(scale))
        return scaled, scale

    @property
    def varying(self) -> Mask:
        """Which columns vary."""
        return self._deviations() > 0

    def _deviations(self) -> Array:
        """Standard deviation of each column over all rows, with n - 1; 0 where it is rounding."""
        total = self._weighted()
        n, variances = int(total.rows.sum()), np.add(*self.variances())
        std = np.sqrt(np.maximum(variances * n / max(n - 1, 1), 0.0))
        return np.where(std > 1e-14 * np.abs(total.mean), std, 0.0)

    def _with_center(self, center: Center) -> Sums | FewRows:
        """The sums, once every group is known to have a variance about this centre."""
        if center not in ("overall", "group"):
            raise ValueError(f"center must be 'overall' or 'group', got {center!r}.")
        total = self._weighted()
        if center == "group" and (total.rows == 1).any():
            raise ValueError(
                f"groups {self.groups[total.rows == 1].tolist()} have a single row, hence no "
                "variance about their own mean; use center='overall', or merge these groups with "
                "others."
            )
        return total

    def _weighted(self) -> Sums | FewRows:
        """The sums, once every group is known to weigh something."""
        if not self.n_features:
            raise ValueError("these GroupMoments are empty; add rows with update(X, groups).")
        check_group_weights(self.groups, self._total.weights)
        return self._total

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{label!r}: {count}"
            for label, count in zip(self.groups.tolist(), self._total.rows.tolist(), strict=True)
        )
        return f"GroupMoments({{{sizes}}}, n_features={self.n_features})"


def moments_of_rows(
    rows: Rows, groups: Any, sample_weight: Any, target: Any = None, folds: FoldOptions = None
) -> GroupMoments:
    """Moments of all rows in one pass."""
    rows, target = _joined(rows, target)
    weights = check_sample_weight(sample_weight, rows.n_rows)
    codes, labels = _encode(groups, target, rows.n_rows, folds)
    total = sum_up(rows, codes, len(labels), weights)
    return _moments_of(labels, total, rows.feature_names, rows.n_targets, rows.n_rows)


def block_moments(
    X: Any,
    groups: Any,
    sample_weight: Any,
    target: Any = None,
    n_dropped: int = 0,
    folds: Codes | None = None,
) -> GroupMoments:
    """Moments of one of many blocks, which unlike whole data may be empty or weigh nothing."""
    n_labels = len(groups.codes if isinstance(groups, CodedLabels) else groups)
    empty = X.shape[0] == n_labels == 0
    weightless = sample_weight is not None and not np.any(sample_weight)
    moments = GroupMoments()
    if not empty and not weightless:
        moments.update(X, groups, sample_weight, target, folds=folds)
    moments.n_dropped = n_dropped
    return moments


def decoded_moments(block: TableBlock, folds: HashedFolds | None = None) -> GroupMoments:
    """Moments of a block of a file or of a Spark partition."""
    numbers = None
    if folds is not None:
        numbers = folds.of(block.positions, PurePath(block.origin.name).name)
    try:
        return block_moments(
            block.rows, block.groups, block.weights, n_dropped=block.n_dropped, folds=numbers
        )
    except ValueError:
        block.refuse_non_finite()
        block.refuse_large()
        raise


def _joined(rows: Rows, target: Any) -> tuple[Rows, Any]:
    """Rows with a target of numbers as last columns, and what is left of the target."""
    if isinstance(target, NumericTarget):
        return join_targets(rows, as_targets(target.values)), None
    return rows, target


def _dask_moments(
    folds: FoldOptions, X: Any, groups: Any, weights: Any, target: Any, number: int
) -> GroupMoments:
    """Moments of a block of a dask collection."""
    if folds is not None and not isinstance(folds, HashedFolds):
        raise ValueError("of dask collections pass how many folds there are, for example folds=10.")
    numbers = None if folds is None else folds.of(np.arange(len(X)), f"block {number}")
    return block_moments(X, groups, weights, target, folds=numbers)


def _encode(
    groups: Any, target: Any, n_rows: int, folds: FoldOptions = None, first: int = 0
) -> tuple[Codes, Labels]:
    """Codes and labels of the groups, by outcome where there is a target, and by fold."""
    cells = groups if target is None else encode_cells(groups, target, n_rows)
    codes, labels = encode_groups(cells, n_rows)
    if folds is None:
        return codes, labels
    if isinstance(folds, HashedFolds):
        folds = folds.of(first + np.arange(n_rows))
    return encode_groups(cross_folds(codes, labels.tolist(), folds), n_rows)


def _crossed_columns(group: str | Sequence[str], target: str | None) -> list[str]:
    """The columns whose labels are crossed, the target last."""
    groups = [group] if isinstance(group, str) else list(group)
    return groups if target is None else [*groups, target]


def _moments_of(
    labels: Labels,
    total: Sums | FewRows,
    feature_names: list[str] | None,
    n_targets: int,
    n_seen: int = 0,
) -> GroupMoments:
    moments = GroupMoments()
    moments.groups, moments.n_features = labels, total.sums.shape[1]
    moments.n_targets = n_targets
    moments.feature_names, moments._gathered = feature_names, Gathered(total)
    moments._n_seen = n_seen
    return moments


def _combined(parts: list[tuple[GroupMoments, list[Any]]]) -> GroupMoments:
    """Moments of all parts together; each part comes with the labels its groups are to have."""
    labels = sort_labels(list(dict.fromkeys(label for _, given in parts for label in given)))
    sums = [(moments._total, _places(given, labels)) for moments, given in parts]
    names = next((part.feature_names for part, _ in parts if part.feature_names), None)
    total = combined(len(labels), parts[0][0].n_features, sums)
    return _moments_of(label_vector(labels), total, names, parts[0][0].n_targets)


def _places(labels: list[Any], among: list[Any]) -> list[int]:
    """Where these labels stand among others; -1 for those that do not."""
    position = {label: g for g, label in enumerate(among)}
    return [position.get(label, -1) for label in labels]
