"""Per-group moments: all that the library ever learns from the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from fairpca._input.checks import check_feature_names, check_n_features, check_sample_weight
from fairpca._input.device import is_dask
from fairpca._input.joint import with_numeric_target
from fairpca._input.labels import label_vector, refuse_twin_labels, sort_labels
from fairpca._input.rows import Rows, as_rows
from fairpca._moments.buffer import Gathered
from fairpca._moments.few_rows import FewRows, combined, sum_up
from fairpca._moments.fold_labels import (
    FoldOptions,
    check_folds,
    encode_by_fold,
    group_of,
    have_folds,
)
from fairpca._moments.statistics import GroupStatistics
from fairpca._moments.sums import Sums
from fairpca._tables.paths import FileFormat
from fairpca._typing import Array, Labels


class GroupMoments(GroupStatistics):
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
        How many of the last columns are targets, not features; see :class:`FairPLS`.

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
        keep_ids: bool | Sequence[str] = False,
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
        keep_ids : bool or list of str, default=False
            Use columns that look like row numbers or ids, or those of them that are named here.
            Without ``columns`` they are left out, with a warning: whole numbers of which no two are
            the same in the first rows, row numbers in order of any type, and columns called ``id``,
            ``person_id`` or the like. Columns without a name are left out in any case.
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
            folds by a hash of their position in their file and the number of the file in the order
            of names, so that another name or format of a file changes nothing.
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
        from fairpca._moments.from_tables import moments_of_files

        return moments_of_files(
            paths,
            group=group,
            columns=columns,
            sample_weight=sample_weight,
            target=target,
            keep_ids=keep_ids,
            drop_missing=drop_missing,
            file_format=file_format,
            encoding=encoding,
            progress=progress,
            folds=folds,
            fold_seed=fold_seed,
        )

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
        from fairpca._moments.from_tables import moments_of_spark

        return moments_of_spark(
            frame,
            group=group,
            columns=columns,
            sample_weight=sample_weight,
            target=target,
            drop_missing=drop_missing,
            folds=folds,
            fold_seed=fold_seed,
        )

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
            from fairpca._moments.from_tables import moments_of_dask

            return self._become(self.merge(moments_of_dask(X, groups, sample_weight, target, plan)))
        rows, target = with_numeric_target(as_rows(X), target)
        weights = check_sample_weight(
            sample_weight, rows.n_rows, may_all_be_zero=self.n_features > 0
        )
        if self.n_features:
            check_n_features(self.n_features, rows.n_features, "GroupMoments.update")
            check_feature_names(self.feature_names, rows.feature_names, "GroupMoments.update")
        codes, labels = encode_by_fold(groups, target, rows.n_rows, plan, self._n_seen)
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
        return self._divided(scale), scale

    def _divided(self, scale: Array) -> GroupMoments:
        """Moments of the rows with each column divided by its scale."""
        scaled = copy(self)
        scaled._gathered = Gathered(self._total.divided(scale))
        return scaled

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
    rows, target = with_numeric_target(rows, target)
    weights = check_sample_weight(sample_weight, rows.n_rows)
    codes, labels = encode_by_fold(groups, target, rows.n_rows, folds)
    total = sum_up(rows, codes, len(labels), weights)
    return _moments_of(labels, total, rows.feature_names, rows.n_targets, rows.n_rows)


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
