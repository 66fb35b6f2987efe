"""Per-group moments: all that the library ever learns from the data.

========  ==================================================================
symbol    meaning
========  ==================================================================
n_g       total weight of group g (its number of rows when nothing is weighted)
t_g       provisional shift of group g, near its mean
s_g       weighted sum of ``x - t_g`` over the rows of group g
G_g       weighted Gram matrix, the sum of ``(x - t_g)(x - t_g)'``
C_g       ``G_g / n_g`` moved to the overall mean (or to the group's own)
========  ==================================================================

Moving the origin of a sum and of a Gram matrix from ``t`` to ``t - e`` costs no pass over data::

    s <- s + n e          G <- G + s e' + e s' + n e e'

so shifts are free to differ between blocks, machines and groups, and data a billion away from zero
keep their digits. One pass over n rows costs about n d^2 multiplications (Gram matrices are
symmetric) in blocks that stay in cache, each worker thread with a single-threaded BLAS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairpca._input.checks import (
    check_feature_names,
    check_n_features,
    check_sample_weight,
)
from fairpca._input.crossing import name_cells
from fairpca._input.device import is_dask
from fairpca._input.labels import (
    CodedLabels,
    encode_groups,
    label_vector,
    members_of,
    refuse_twin_labels,
    sort_labels,
)
from fairpca._input.rows import Rows, as_rows
from fairpca._moments.accumulate import Sums, accumulate
from fairpca._moments.buffer import PendingRows, may_wait
from fairpca._tables.decode import Block
from fairpca._tables.roles import refuse_no_group
from fairpca._typing import Array

FileFormat = Literal["csv", "tsv", "parquet", "arrow"]


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
        self.groups: NDArray[Any] = label_vector([])
        self.n_features: int = 0
        self.feature_names: list[str] | None = None
        self.n_dropped: int = 0
        self._total = Sums.zeros(0, 0)

    @property
    def _total(self) -> Sums:
        """The sums of all rows."""
        self._pending.settle()
        return self._settled

    @_total.setter
    def _total(self, total: Sums) -> None:
        self._settled, self._pending = total, PendingRows(total)

    def __getstate__(self) -> dict[str, Any]:
        """What is copied and pickled."""
        state = {**vars(self), "_total": self._total}
        del state["_settled"], state["_pending"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    @classmethod
    def from_data(cls, X: Any, groups: Any, sample_weight: Any = None) -> GroupMoments:
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

        Returns
        -------
        GroupMoments
        """
        return cls().update(X, groups, sample_weight)

    @classmethod
    def from_files(
        cls,
        paths: Any,
        *,
        group: str | Sequence[str],
        columns: Sequence[str] | None = None,
        sample_weight: str | None = None,
        drop_missing: bool = False,
        file_format: FileFormat | None = None,
        encoding: str = "utf-8",
        progress: Callable[[float], object] | None = None,
    ) -> GroupMoments:
        r"""Moments of the rows of files, read block by block in constant memory.

        Needs the extra ``fairpca[files]``.

        Parameters
        ----------
        paths : str, path or list of them
            CSV, TSV, Parquet or Arrow (IPC, Feather) files, or a folder of one of these kinds; its
            ``key=value`` subfolders count as columns.
        group : str or list of str
            The column of group labels: strings, categories, integers, booleans. Several columns
            are crossed: each combination that occurs is a group.
        columns : list of str, optional
            The features, numbers or booleans; by default all such columns of the first file but
            ``group`` and ``sample_weight``.
        sample_weight : str, optional
            A column of non-negative weights.
        drop_missing : bool, default=False
            Leave out rows with missing values and count them in ``n_dropped``. By default they are
            an error that names the file and the row.
        file_format : {"csv", "tsv", "parquet", "arrow"}, optional
            By default told from the file names.
        encoding : str, default="utf-8"
            Of text files.
        progress : callable, optional
            Called in this thread with the fraction done, rising to 1.

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
        layout = table.choose(columns, group, sample_weight)
        moments = cls()
        for part in table.map(layout, decoded_moments, drop_missing, progress):
            moments._absorb(part)
        return moments._refuse_empty(table.name)._name_intersections(layout.groups)

    @classmethod
    def from_spark(
        cls,
        frame: Any,
        *,
        group: str | Sequence[str],
        columns: Sequence[str] | None = None,
        sample_weight: str | None = None,
        drop_missing: bool = False,
    ) -> GroupMoments:
        """Moments of the rows of a Spark data frame; only moments reach the driver.

        Needs the extra ``fairpca[spark]``, and fairpca and pyarrow where the workers run. Workers
        use the Python that ``PYSPARK_PYTHON`` names: in one machine, ``sys.executable``.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
        group, columns, sample_weight, drop_missing
            As for :meth:`from_files`.

        Returns
        -------
        GroupMoments
        """
        from fairpca._tables.spark import reduce_partitions

        refuse_no_group(group)
        moments = reduce_partitions(
            frame,
            columns,
            group,
            sample_weight,
            drop_missing,
            make=decoded_moments,
            merge=GroupMoments.merge,
            nothing=cls(),
        )
        crossed = [group] if isinstance(group, str) else group
        return moments._refuse_empty("the Spark frame")._name_intersections(crossed)

    def update(self, X: Any, groups: Any, sample_weight: Any = None) -> GroupMoments:
        """Add the rows of X, in place, and return self; arguments as in :meth:`from_data`.

        When the rows are refused (missing values, wrong columns) nothing has been added.
        """
        if is_dask(X):
            from fairpca._tables.dask import reduce_blocks

            part = reduce_blocks(X, groups, sample_weight, block_moments, GroupMoments.merge)
            self._absorb(part._refuse_empty("X"))
            return self
        rows = as_rows(X)
        weights = check_sample_weight(
            sample_weight, rows.n_rows, may_all_be_zero=self.n_features > 0
        )
        if self.n_features:
            check_n_features(self.n_features, rows.n_features, "GroupMoments.update")
            check_feature_names(self.feature_names, rows.feature_names, "GroupMoments.update")
        if not self._put_aside(rows, groups, weights):
            codes, labels = encode_groups(groups, rows.n_rows)
            total = accumulate(rows, codes, len(labels), weights, self._shifts_of(labels))
            self._absorb(_moments_of(labels, total, rows.feature_names))
        return self

    def merge(self, other: GroupMoments) -> GroupMoments:
        """Moments of both sets of rows together, as a new object; neither operand changes."""
        if not isinstance(other, GroupMoments):
            raise TypeError(
                f"merge needs GroupMoments, got {type(other).__name__}; add rows with "
                "update(X, groups)."
            )
        merged = copy(self)
        merged._absorb(copy(other) if not self.n_features else other)
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
                f"relabel got names for {unknown[:5]}, which are no groups of these moments; "
                f"rename some of {known[:5]}{'...' if len(known) > 5 else ''}."
            )
        new = [names.get(label, label) for label in known]
        labels = sort_labels(list(dict.fromkeys(new)))
        total = Sums.zeros(len(labels), self.n_features)
        for g, label in enumerate(new):
            total.add_group(labels.index(label), self._total, g)
        renamed = _moments_of(label_vector(labels), total, self.feature_names)
        renamed.n_dropped = self.n_dropped
        return renamed

    def _absorb(self, other: GroupMoments) -> None:
        """Add ``other`` in place, or nothing at all when it does not fit; it may be taken over."""
        n_dropped = self.n_dropped + other.n_dropped
        if not self.n_features:
            self.__setstate__(other.__getstate__())
        elif other.n_features:
            check_n_features(self.n_features, other.n_features, "GroupMoments.merge")
            check_feature_names(self.feature_names, other.feature_names, "GroupMoments.merge")
            known = self.groups.tolist()
            labels = sort_labels(list(dict.fromkeys([*known, *other.groups.tolist()])))
            if labels != known:
                refuse_twin_labels(labels)
                wider = Sums.zeros(len(labels), self.n_features)
                for g, label in enumerate(known):
                    wider.add_group(labels.index(label), self._total, g)
                self.groups, self._total = label_vector(labels), wider
            self.feature_names = self.feature_names or other.feature_names
            for g, label in enumerate(other.groups.tolist()):
                self._total.add_group(labels.index(label), other._total, g)
        self.n_dropped = n_dropped

    def _refuse_empty(self, source: str) -> GroupMoments:
        if self.n_features:
            return self
        raise ValueError(
            f"there are no rows of positive weight to learn from in {source} ({self.n_dropped} "
            "were dropped because of missing values); pass complete rows."
        )

    def _name_intersections(self, columns: Sequence[str]) -> GroupMoments:
        """Labels as crossed columns in memory have them, in place of one label per column."""
        if len(columns) < 2:
            return self
        cells = self.groups.tolist()
        return self.relabel(dict(zip(cells, name_cells(cells, columns), strict=True)))

    def _put_aside(self, rows: Rows, groups: Any, weights: Array | None) -> bool:
        """Copy a small block of groups known already, to be added later."""
        if not may_wait(rows, len(self.groups)):
            return False
        members = members_of(self.groups, groups, rows.n_rows)
        if members is None:
            return False
        taken = self._pending.take(rows, members, weights)
        if taken:
            self.feature_names = self.feature_names or rows.feature_names
        return taken

    def _shifts_of(self, labels: NDArray[Any]) -> Array | None:
        """Shifts of these groups, or None where one is new."""
        known = {label: g for g, label in enumerate(self.groups.tolist())}
        wanted = labels.tolist()
        if not all(label in known for label in wanted):
            return None
        return self._settled.shifts[[known[label] for label in wanted]]

    def __copy__(self) -> GroupMoments:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(vars(self))
        twin._total = self._total.copy()
        return twin

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
        return np.asarray(self._total.shifts + self._total.sums / self._positive_weights()[:, None])

    @property
    def mean(self) -> Array:
        """Weighted mean over all rows."""
        p = self._positive_weights() / self._total.weights.sum()
        return np.asarray(self._total.shifts[0] + p @ self._means_from_first_shift())

    def _means_from_first_shift(self) -> Array:
        """Group means seen from one shift, where a large offset cannot round them."""
        return np.asarray(
            self._total.shifts
            - self._total.shifts[0]
            + self._total.sums / self._total.weights[:, None]
        )

    def second_moments(self, center: Literal["overall", "group"] = "overall") -> Array:
        """``C_g`` of every group, of shape (k, n_features, n_features).

        Parameters
        ----------
        center : {"overall", "group"}
            About the overall mean (the paper's choice) or about each group's own mean.

        Returns
        -------
        ndarray of shape (k, n_features, n_features)
        """
        if center not in ("overall", "group"):
            raise ValueError(f"center must be 'overall' or 'group', got {center!r}.")
        n = self._positive_weights()
        if center == "group" and (self._total.rows == 1).any():
            alone = self.groups[self._total.rows == 1].tolist()
            raise ValueError(
                f"groups {alone} have a single row, hence no variance about their own mean; "
                "use center='overall', or merge these groups with others."
            )
        C = self._total.grams / n[:, None, None]
        means = self._means_from_first_shift()
        from_overall = means - (n / n.sum()) @ means
        for g in range(len(n)):
            from_shift = self._total.sums[g] / n[g]
            C[g] -= np.outer(from_shift, from_shift)
            if center == "overall":
                C[g] += np.outer(from_overall[g], from_overall[g])
        return C

    def _spreads(self) -> tuple[float, float]:
        """Mean squares of the distances of rows from their group's mean, of these from the mean."""
        n = self._positive_weights()
        p, means = n / n.sum(), self._means_from_first_shift()
        squares = np.diagonal(self._total.grams, axis1=1, axis2=2) / n[:, None]
        within = squares - (self._total.sums / n[:, None]) ** 2
        between = (means - p @ means) ** 2
        return float(p @ within.sum(axis=1)), float(p @ between.sum(axis=1))

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
        twin = copy(self)
        twin._total.shifts, twin._total.sums = self._total.shifts / scale, self._total.sums / scale
        twin._total.grams = self._total.grams / np.outer(scale, scale)
        return twin, scale

    @property
    def varying(self) -> NDArray[np.bool_]:
        """Which columns vary."""
        return self._deviations() > 0

    def _deviations(self) -> Array:
        """Standard deviation of each column over all rows, with n - 1; 0 where it is rounding."""
        p, n = self._positive_weights() / self._total.weights.sum(), int(self._total.rows.sum())
        variances = p @ np.diagonal(self.second_moments(), axis1=1, axis2=2) * n / max(n - 1, 1)
        std = np.sqrt(np.maximum(variances, 0.0))
        return np.where(std > 1e-14 * np.abs(self.mean), std, 0.0)

    def _positive_weights(self) -> Array:
        if not self.n_features:
            raise ValueError("these GroupMoments are empty; add rows with update(X, groups).")
        if not (self._total.weights > 0).all():
            weightless = self.groups[~(self._total.weights > 0)].tolist()
            raise ValueError(
                f"groups {weightless} have total weight zero; give at least one of their rows a "
                "positive sample_weight, or leave these rows out."
            )
        return self._total.weights

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{label!r}: {count}"
            for label, count in zip(self.groups.tolist(), self._total.rows.tolist(), strict=True)
        )
        return f"GroupMoments({{{sizes}}}, n_features={self.n_features})"


def block_moments(X: Any, groups: Any, sample_weight: Any, n_dropped: int = 0) -> GroupMoments:
    """Moments of one of many blocks, which unlike whole data may be empty or weigh nothing."""
    n_labels = len(groups.codes if isinstance(groups, CodedLabels) else groups)
    empty = X.shape[0] == n_labels == 0
    weightless = sample_weight is not None and not np.any(sample_weight)
    moments = GroupMoments()
    if not empty and not weightless:
        moments.update(X, groups, sample_weight)
    moments.n_dropped = n_dropped
    return moments


def decoded_moments(block: Block) -> GroupMoments:
    """Moments of a block of a file or of a Spark partition."""
    try:
        return block_moments(block.rows, block.groups, block.weights, block.n_dropped)
    except ValueError:
        block.refuse_non_finite()
        block.refuse_large()
        raise


def _moments_of(groups: NDArray[Any], total: Sums, feature_names: list[str] | None) -> GroupMoments:
    moments = GroupMoments()
    moments.groups, moments.n_features = groups, total.sums.shape[1]
    moments.feature_names, moments._total = feature_names, total
    return moments
