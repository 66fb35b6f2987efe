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
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fairpca._gram import add_gram, mirror
from fairpca._intersections import name_cells
from fairpca._threads import blas_threads, shared_pool, single_threaded_blas
from fairpca._validation import (
    CodedLabels,
    check_feature_names,
    check_n_features,
    check_sample_weight,
    encode_groups,
    label_vector,
    sort_labels,
)
from fairpca.sources.array_api import DeviceRows
from fairpca.sources.columns import Block, ColumnRows
from fairpca.sources.in_memory import (
    DensifiedRows,
    Rows,
    SparseRows,
    as_rows,
    refuse_unusable_numbers,
)
from fairpca.sources.kinds import is_dask

Array = NDArray[np.float64]
FileFormat = Literal["csv", "tsv", "parquet", "arrow"]

_BLOCK_ROWS = 4096
_BLOCK_ENTRIES = 1 << 22  # at most 32 MiB of float64 a block, however many columns
_LARGEST_GRAMS = 1 << 33  # bytes
_ROWS_FOR_SHIFT = 64
_WORK_WORTH_A_THREAD = 5e6  # multiplications, half a millisecond


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
        self._rows = np.zeros(0, np.int64)
        self._weights: Array = np.zeros(0)
        self._shifts: Array = np.zeros((0, 0))
        self._sums: Array = np.zeros((0, 0))
        self._grams: Array = np.zeros((0, 0, 0))

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
        from fairpca.sources.files import FileTable

        table = FileTable(paths, columns, group, sample_weight, file_format=file_format)
        moments = cls()
        for part in table.map(_decoded_moments, drop_missing, progress):
            moments._absorb(part)
        return moments._refuse_empty(str(paths))._name_intersections(table.layout.groups)

    @classmethod
    def from_spark(
        cls,
        frame: Any,
        *,
        group: str,
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
        from fairpca.sources.spark import reduce_partitions

        moments = reduce_partitions(
            frame,
            columns,
            group,
            sample_weight,
            drop_missing,
            make=_decoded_moments,
            merge=GroupMoments.merge,
            nothing=cls(),
        )
        return moments._refuse_empty("the Spark frame")

    def update(self, X: Any, groups: Any, sample_weight: Any = None) -> GroupMoments:
        """Add the rows of X, in place, and return self; arguments as in :meth:`from_data`.

        When the rows are refused (missing values, wrong columns) nothing has been added.
        """
        if is_dask(X):
            from fairpca.sources.dask import reduce_blocks

            part = reduce_blocks(X, groups, sample_weight, block_moments, GroupMoments.merge)
            self._absorb(part._refuse_empty("X"))
            return self
        rows = as_rows(X)
        codes, labels = encode_groups(groups, rows.n_rows)
        weights = check_sample_weight(sample_weight, rows.n_rows)
        if self.n_features:
            check_n_features(self.n_features, rows.n_features, "GroupMoments.update")
            check_feature_names(self.feature_names, rows.feature_names, "GroupMoments.update")
        self._absorb(_accumulate(rows, codes, labels, weights, self._shifts_of(labels)))
        return self

    def merge(self, other: GroupMoments) -> GroupMoments:
        """Moments of both sets of rows together, as a new object; neither operand changes."""
        if not isinstance(other, GroupMoments):
            raise TypeError(
                f"merge needs GroupMoments, got {type(other).__name__}; add rows with "
                "update(X, groups)."
            )
        merged = self._copy()
        merged._absorb(other._copy() if not self.n_features else other)
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
        renamed = _empty(label_vector(labels), self.n_features, self.feature_names)
        for g, label in enumerate(new):
            renamed._add(labels.index(label), self, g)
        renamed.n_dropped = self.n_dropped
        return renamed

    def _absorb(self, other: GroupMoments) -> None:
        """Add ``other`` in place, or nothing at all when it does not fit; it may be taken over."""
        n_dropped = self.n_dropped + other.n_dropped
        if not self.n_features:
            self.__dict__.update(other.__dict__)
        elif other.n_features:
            check_n_features(self.n_features, other.n_features, "GroupMoments.merge")
            check_feature_names(self.feature_names, other.feature_names, "GroupMoments.merge")
            known = self.groups.tolist()
            labels = sort_labels(list(dict.fromkeys([*known, *other.groups.tolist()])))
            if labels != known:
                wider = _empty(label_vector(labels), self.n_features, self.feature_names)
                for g, label in enumerate(known):
                    wider._add(labels.index(label), self, g)
                self.__dict__.update(wider.__dict__)
            self.feature_names = self.feature_names or other.feature_names
            for g, label in enumerate(other.groups.tolist()):
                self._add(labels.index(label), other, g)
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

    def _shifts_of(self, labels: NDArray[Any]) -> Array | None:
        """Shifts of these groups, or None where one is new."""
        known = {label: g for g, label in enumerate(self.groups.tolist())}
        wanted = labels.tolist()
        if not all(label in known for label in wanted):
            return None
        return self._shifts[[known[label] for label in wanted]]

    def _add(self, here: int, other: GroupMoments, there: int) -> None:
        """Add one group of ``other``, moved to the shift of ours."""
        n, s, gram = other._weights[there], other._sums[there], other._grams[there]
        if self._rows[here] == 0:
            self._shifts[here] = other._shifts[there]
        e = other._shifts[there] - self._shifts[here]
        self._rows[here] += other._rows[there]
        self._weights[here] += n
        self._sums[here] += s
        self._grams[here] += gram
        if e.any():
            self._sums[here] += n * e
            cross = np.outer(s + 0.5 * n * e, e)
            self._grams[here] += cross
            self._grams[here] += cross.T

    def _copy(self) -> GroupMoments:
        twin = GroupMoments()
        for name, value in self.__dict__.items():
            twin.__dict__[name] = value.copy() if isinstance(value, (np.ndarray, list)) else value
        return twin

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows of each group with a positive weight."""
        return self._rows.copy()

    @property
    def weights(self) -> Array:
        """Total weight of each group; equal to ``counts`` when nothing is weighted."""
        return self._weights.copy()

    @property
    def means(self) -> Array:
        """Weighted mean of each group, of shape (k, n_features)."""
        return np.asarray(self._shifts + self._sums / self._positive_weights()[:, None])

    @property
    def mean(self) -> Array:
        """Weighted mean over all rows."""
        p = self._positive_weights() / self._weights.sum()
        return np.asarray(self._shifts[0] + p @ self._means_from_first_shift())

    def _means_from_first_shift(self) -> Array:
        """Group means seen from one shift, where a large offset cannot round them."""
        return np.asarray(self._shifts - self._shifts[0] + self._sums / self._weights[:, None])

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
        if center == "group" and (self._rows == 1).any():
            alone = self.groups[self._rows == 1].tolist()
            raise ValueError(
                f"groups {alone} have a single row, hence no variance about their own mean; "
                "use center='overall', or merge these groups with others."
            )
        C = self._grams / n[:, None, None]
        means = self._means_from_first_shift()
        from_overall = means - (n / n.sum()) @ means
        for g in range(len(n)):
            from_shift = self._sums[g] / n[g]
            C[g] -= np.outer(from_shift, from_shift)
            if center == "overall":
                C[g] += np.outer(from_overall[g], from_overall[g])
        return C

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
        p, n = self._positive_weights() / self._weights.sum(), int(self._rows.sum())
        variances = p @ np.diagonal(self.second_moments(), axis1=1, axis2=2) * n / max(n - 1, 1)
        std = np.sqrt(np.maximum(variances, 0.0))
        scale = np.where(std > 1e-14 * np.abs(self.mean), std, 1.0)
        twin = self._copy()
        twin._shifts, twin._sums = self._shifts / scale, self._sums / scale
        twin._grams = self._grams / np.outer(scale, scale)
        return twin, scale

    def _positive_weights(self) -> Array:
        if not self.n_features:
            raise ValueError("these GroupMoments are empty; add rows with update(X, groups).")
        if not (self._weights > 0).all():
            weightless = self.groups[~(self._weights > 0)].tolist()
            raise ValueError(
                f"groups {weightless} have total weight zero; give at least one of their rows a "
                "positive sample_weight, or leave these rows out."
            )
        return self._weights

    def __repr__(self) -> str:
        sizes = ", ".join(
            f"{label!r}: {count}"
            for label, count in zip(self.groups.tolist(), self._rows.tolist(), strict=True)
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


def _decoded_moments(block: Block) -> GroupMoments:
    try:
        return block_moments(block.rows, block.groups, block.weights, block.n_dropped)
    except ValueError:
        block.refuse_non_finite()
        raise


def _empty(
    groups: NDArray[Any], d: int, feature_names: list[str] | None, shifts: Array | None = None
) -> GroupMoments:
    moments, k = GroupMoments(), len(groups)
    moments.groups, moments.n_features, moments.feature_names = groups, d, feature_names
    moments._rows, moments._weights = np.zeros(k, np.int64), np.zeros(k)
    moments._shifts = np.zeros((k, d)) if shifts is None else shifts.copy()
    moments._sums, moments._grams = np.zeros((k, d)), np.zeros((k, d, d))
    return moments


def _accumulate(
    rows: Rows,
    codes: NDArray[np.intp],
    labels: NDArray[Any],
    weights: Array | None,
    shifts: Array | None,
) -> GroupMoments:
    """One pass over the rows, split over threads in contiguous ranges (so results repeat)."""
    k, d = len(labels), rows.n_features
    if k * d * d * 8 > _LARGEST_GRAMS:
        raise ValueError(
            f"the {d} x {d} matrices of {k} groups need {k * d * d * 8 / 2**30:.0f} GiB; call "
            "fit(X, sensitive_features=groups) with all of X at once (a sparse matrix or memory "
            "map, say), which forms none, or pass fewer columns."
        )
    if rows.is_sparse:
        shifts = np.zeros((k, d))
    elif shifts is None:
        shifts = _provisional_shifts(rows, codes, k)
    if k <= 256:
        codes = codes.astype(np.uint8)  # radix sort within the blocks
    threaded = rows.n_rows * d * d > _WORK_WORTH_A_THREAD and not isinstance(rows, DeviceRows)
    n_threads = blas_threads() if threaded else 1
    pieces = [_empty(labels, d, rows.feature_names, shifts) for _ in range(n_threads)]

    def add(piece: GroupMoments, start: int, stop: int) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(rows, DeviceRows):
                _add_device_rows(piece, rows, codes, weights)
            elif rows.is_sparse:
                _add_sparse_rows(piece, rows, codes, weights, start, stop)
            else:
                _add_dense_rows(piece, rows, codes, weights, start, stop)

    edges = [rows.n_rows * i // n_threads for i in range(n_threads + 1)]
    with single_threaded_blas():
        elsewhere = [
            shared_pool(n_threads).submit(add, piece, *part)
            for piece, part in zip(pieces[1:], pairwise(edges[1:]), strict=True)
        ]
        add(pieces[0], 0, edges[1])
        for part in elsewhere:
            part.result()
    moments, *others = pieces
    for piece in others:
        for name in ("_rows", "_weights", "_sums", "_grams"):
            total = getattr(moments, name)
            total += getattr(piece, name)
    if not rows.is_sparse and not isinstance(rows, DeviceRows):
        mirror(moments._grams)
    if not np.isfinite(moments._sums).all() or not np.isfinite(moments._grams).all():
        refuse_unusable_numbers(rows)
    if isinstance(rows, SparseRows) and _lost_digits(moments):
        return _accumulate(DensifiedRows(rows), codes, labels, weights, None)
    return moments


def _lost_digits(moments: GroupMoments) -> bool:
    """Whether means far from zero, to which sparse rows are not shifted, have cost digits.

    A constant column costs nothing that matters beside the variance of the others.
    """
    weighted = moments._weights > 0
    n = moments._weights[weighted, None]
    squares = (moments._sums[weighted] / n) ** 2
    variances = np.diagonal(moments._grams[weighted], axis1=1, axis2=2) / n - squares
    lost = 1e-15 * squares
    total = np.abs(variances).sum(axis=1, keepdims=True)
    return bool(((lost > 1e-9 * np.abs(variances)) & (lost > 1e-12 * total)).any())


def _provisional_shifts(rows: Rows, codes: NDArray[np.intp], k: int) -> Array:
    """The mean of the first rows of each group: near enough to its mean to save the digits.

    Columns whose mean is within a standard deviation of zero lose none without a shift.
    """
    shifts, first = np.zeros((k, rows.n_features)), min(rows.n_rows, 8 * _ROWS_FOR_SHIFT)
    head, head_codes = rows.block(0, first), codes[:first]
    for g in range(k):
        members = np.flatnonzero(head_codes == g)[:_ROWS_FOR_SHIFT]
        if len(members):
            sample = head[members]
        else:
            start = int(np.argmax(codes == g))
            sample = rows.block(start, start + 1)
        with np.errstate(over="ignore", invalid="ignore"):
            shift = sample.mean(axis=0, dtype=np.float64)
            needed = np.isfinite(shift) & (np.abs(shift) > sample.std(axis=0, dtype=np.float64))
        shifts[g] = np.where(needed, shift, 0.0)
    return shifts


def _block_rows(d: int) -> int:
    return min(_BLOCK_ROWS, max(64, _BLOCK_ENTRIES // d))


def _add_dense_rows(
    piece: GroupMoments,
    rows: Rows,
    codes: NDArray[Any],
    weights: Array | None,
    start: int,
    stop: int,
) -> None:
    k, d = len(piece.groups), rows.n_features
    size = _block_rows(d)
    # Columns are gathered as columns: copying them across into rows would take longer than BLAS.
    order_in_memory: Literal["F", "C"] = "F" if isinstance(rows, ColumnRows) else "C"
    buffer = np.empty((min(size, stop - start), d), order=order_in_memory)
    shifted: list[bool] = [bool(shift.any()) for shift in piece._shifts]
    ones = np.ones(len(buffer))
    for low in range(start, stop, size):
        high = min(low + size, stop)
        order, edges = by_group(codes[low:high], k)
        Z = buffer[: high - low]
        if isinstance(rows, ColumnRows):
            rows.gather(low, high, order, Z)
        else:
            block = rows.block(low, high)
            if block.dtype == np.float64:
                np.take(block, order, axis=0, out=Z, mode="clip")
            else:
                Z[:] = block[order]
        w: Array | None = None if weights is None else weights[low:high][order]
        for g in range(k):
            a, b = edges[g], edges[g + 1]
            if a == b:
                continue
            Z_g = Z[a:b]
            if shifted[g]:
                Z_g -= piece._shifts[g]
            if w is None:
                piece._rows[g] += b - a
                piece._weights[g] += b - a
                piece._sums[g] += ones[a:b] @ Z_g
            else:
                piece._rows[g] += np.count_nonzero(w[a:b])
                piece._weights[g] += w[a:b].sum()
                piece._sums[g] += w[a:b] @ Z_g
                Z_g *= np.sqrt(w[a:b])[:, None]
            add_gram(piece._grams[g], Z_g)


def _add_sparse_rows(
    piece: GroupMoments,
    rows: Rows,
    codes: NDArray[Any],
    weights: Array | None,
    start: int,
    stop: int,
) -> None:
    """As for dense rows, but with shift zero, which keeps the zeros."""
    size = 4 * _BLOCK_ROWS
    for low in range(start, stop, size):
        high = min(low + size, stop)
        block = rows.block(low, high)
        order, edges = by_group(codes[low:high], len(piece.groups))
        for g, (a, b) in enumerate(pairwise(edges)):
            if a == b:
                continue
            Z_g = block[order[a:b]]
            w = np.ones(b - a) if weights is None else weights[low:high][order[a:b]]
            piece._rows[g] += np.count_nonzero(w)
            piece._weights[g] += w.sum()
            piece._sums[g] += Z_g.T @ w
            piece._grams[g] += (Z_g.T @ sp.diags_array(w) @ Z_g).toarray()


def _add_device_rows(
    piece: GroupMoments, rows: DeviceRows, codes: NDArray[Any], weights: Array | None
) -> None:
    k = len(piece.groups)
    counted = codes if weights is None else codes[weights > 0]
    piece._rows += np.bincount(counted, minlength=k)
    piece._weights += np.bincount(codes, weights, minlength=k)
    piece._sums, piece._grams = rows.sums_and_grams(codes, weights, piece._shifts)


def by_group(codes: NDArray[Any], k: int) -> tuple[NDArray[np.intp], list[int]]:
    """The order that puts the rows of a block group by group, and where each group starts."""
    edges = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=k))]).tolist()
    return np.argsort(codes, kind="stable"), edges
