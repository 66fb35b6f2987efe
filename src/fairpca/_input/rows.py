"""Rows of arrays, memory maps, sparse matrices and data frames, a block at a time.

The whole of X is never copied or converted: a block is cut out first and cast afterwards, so
integers, float32, memory maps and data frames cost one block of extra memory.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import Any, NamedTuple, NoReturn

import narwhals.stable.v1 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from fairpca._input.checks import refuse_twins
from fairpca._input.device import (
    ENTRIES_AT_A_TIME,
    DeviceRows,
    is_device_array,
    library_of,
    on_host,
)
from fairpca._typing import Array, Codes

_FEW_ROWS = 100  # enough to tell whether a column holds numbers in another form
_ENCODE = "encode them, for example with sklearn.preprocessing.OneHotEncoder"


@contextmanager
def refusing_overflow(what: str) -> Iterator[None]:
    """Refuse numbers that are too large for float64, or become so in the arithmetic inside."""
    try:
        with np.errstate(over="raise"):
            yield
    except (OverflowError, FloatingPointError) as error:
        problem = f"{what} holds numbers too large to compute with"
        raise ValueError(f"{problem}; divide them by a constant first.") from error


class DenseRows:
    """Base of the tables whose blocks are arrays."""

    n_rows: int
    n_features: int
    feature_names: list[str] | None = None
    n_targets: int = 0  # how many of the last columns are targets, not features

    def block(self, start: int, stop: int) -> NDArray[Any]:
        """Rows ``start`` to ``stop`` as floats, with NaN for missing values; may be a view."""
        raise NotImplementedError

    def gather(self, start: int, order: Codes, buffer: Array) -> Array:
        """Rows ``start + order`` in double precision, in a buffer that is large enough."""
        n = len(order)
        d = self.n_features
        block: Array = np.asarray(self.block(start, start + n), np.float64)
        if block.flags.f_contiguous:  # so are the blocks of data frames
            columns = buffer[: n * d].reshape(d, n)
            return block.T.take(order, axis=1, out=columns, mode="clip").T
        return block.take(order, axis=0, out=buffer[: n * d].reshape(n, d), mode="clip")


class ArrayRows(DenseRows):
    """A numpy array or memory map of any real type."""

    def __init__(self, X: Any) -> None:
        refuse_no_table(X)
        if np.ma.is_masked(X):
            problem = "X has masked entries"
            raise ValueError(f"{problem}; fill them, as in X.filled(0), or drop their rows.")
        try:
            self._X: NDArray[Any] = np.asarray(X)
        except ValueError as error:
            problem = "X is a list whose rows are not numbers, or not of one length"
            raise ValueError(f"{problem} ({error}); pass as many numbers in each row.") from error
        if self._X.ndim != 2:
            remedy = "X.reshape(-1, 1) if it is one feature, or X.reshape(1, -1) if it is one row"
            problem = f"Expected 2D array, got {self._X.ndim}D array instead"
            raise ValueError(f"{problem}. Reshape your data with {remedy}.")
        self.dtype = self._X.dtype
        (self.n_rows, self.n_features) = self._X.shape

    def block(self, start: int, stop: int) -> NDArray[Any]:
        block = self._X[start:stop]
        if block.dtype in (np.float64, np.float32):
            return block
        with refusing_overflow("X"):
            try:
                return block.astype(np.float64)
            except (TypeError, ValueError) as error:
                problem = f"X holds values that are not numbers ({error})"
                raise type(error)(f"{problem}; drop their columns or {_ENCODE}.") from error


class FrameRows(DenseRows):
    """A pandas, polars or pyarrow table, or any other that narwhals knows."""

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        unusable = [
            f"{name!r} ({dtype})"
            for name, dtype in frame.schema.items()
            if not (dtype.is_numeric() or dtype == nw.Boolean)
        ]
        if unusable:
            listed = ", ".join(unusable[:5]) + " and others" * (len(unusable) > 5)
            raise TypeError(f"X has columns that are not numbers: {listed}; {_cure_of(frame)}.")
        self._frame = frame
        self.n_rows, self.n_features = frame.shape
        self.feature_names = [str(name) for name in frame.columns]

    def block(self, start: int, stop: int) -> Array:
        block = self._frame[start:stop].select(nw.all().cast(nw.Float64))
        return np.asarray(block.to_numpy(), dtype=np.float64)


def _cure_of(frame: nw.DataFrame[Any]) -> str:
    """What to do about the columns of a frame that are not of a type of numbers."""
    native = frame.to_native()
    if all(str(kind).startswith("Sparse") for kind in getattr(native, "dtypes", ["dense"])):
        return "pass X.sparse.to_coo()"
    try:
        np.asarray(frame.head(_FEW_ROWS).to_numpy(), dtype=np.float64)
    except (TypeError, ValueError):
        return f"drop or {_ENCODE}"
    except OverflowError:
        return "rescale numbers that are too large for float64"
    if hasattr(native, "astype"):
        return "pass X.astype(float)"
    return "cast them to numbers"


class ColumnRows(DenseRows):
    """Numpy columns of equal length, joined into rows when a block is asked for."""

    def __init__(self, columns: list[NDArray[Any]], names: list[str]) -> None:
        self.columns = columns
        self.feature_names: list[str] = names
        n_rows = len(columns[0]) if columns else 0  # there may be no columns left
        self.shape = self.n_rows, self.n_features = n_rows, len(columns)
        single = all(column.dtype == np.float32 for column in columns)
        self.dtype = np.dtype(np.float32 if single else np.float64)

    def block(self, start: int, stop: int) -> NDArray[Any]:
        block = np.empty((stop - start, self.n_features), self.dtype)
        for j, column in enumerate(self.columns):
            block[:, j] = column[start:stop]
        return block

    def as_table(self) -> Any:
        """The columns as a table that scikit-learn and our own estimators take."""
        from fairpca._input.arrow import pa

        return pa.table(dict(zip(self.feature_names, self.columns, strict=True)))

    def gather(self, start: int, order: Codes, buffer: Array) -> Array:
        n = len(order)
        block = buffer[: n * self.n_features].reshape(self.n_features, n)
        for column, place in zip(self.columns, block, strict=True):
            part = np.asarray(column[start : start + n], np.float64)
            part.take(order, out=place, mode="clip")
        return block.T


class SparseRows:
    """A scipy sparse matrix or array; other formats than CSR are converted once."""

    feature_names: list[str] | None = None
    n_targets: int = 0

    def __init__(self, X: Any) -> None:
        self._X = X.tocsr()
        if not self._X.has_canonical_format:
            self._X = self._X.copy()  # the caller's matrix stays as it is
            self._X.sum_duplicates()
        self.dtype = X.dtype
        (self.n_rows, self.n_features) = X.shape

    def block(self, start: int, stop: int) -> Any:
        """Rows ``start`` to ``stop`` as a CSR matrix of floats."""
        block = self._X[start:stop]
        if block.dtype == np.float64:
            return block
        return block.astype(np.float64)


class MadeRows(DenseRows):
    """Rows that a function makes out of others when a block is asked for."""

    def __init__(self, n_rows: int, n_features: int, make: Callable[[int, int], Array]) -> None:
        self.n_rows = n_rows
        self.n_features = n_features
        self._make = make

    def block(self, start: int, stop: int) -> NDArray[Any]:
        return self._make(start, stop)


Rows = DenseRows | SparseRows | DeviceRows


def as_rows(X: Any) -> Rows:
    """Wrap X, refusing what is not a two-dimensional table of real numbers."""
    if isinstance(X, Rows):
        return X
    rows: Rows
    if sp.issparse(X):
        rows = SparseRows(X)
    elif is_device_array(X):
        rows = DeviceRows(X)
    else:
        table = as_frame(X)
        rows = FrameRows(table) if isinstance(table, nw.DataFrame) else ArrayRows(X)
    if isinstance(rows, ArrayRows | SparseRows) and rows.dtype.kind not in "biufO":
        if rows.dtype.kind == "c":
            raise ValueError("Complex data not supported: X must hold real numbers; pass X.real.")
        cast = "pass X.astype(float)"
        raise TypeError(f"X must hold numbers, not {rows.dtype}; {cast}, or {_ENCODE}.")
    for what, n in (("sample", rows.n_rows), ("feature", rows.n_features)):
        if n == 0:
            shape = f"0 {what}(s) (shape=({rows.n_rows}, {rows.n_features}))"
            raise ValueError(f"Found array with {shape} while a minimum of 1 is required.")
    return rows


def as_frame(X: Any) -> Any:
    """X as narwhals has it, if it is a frame or a column in memory; anything else as it is."""
    if library_of(X) == "pandas":
        refuse_twins(list(getattr(X, "columns", ())))
    table = nw.from_native(X, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(table, nw.DataFrame):
        refuse_twins(table.columns)
    return table


def refuse_no_table(X: Any) -> None:
    """Refuse what holds no rows, or not as rows, and frames with two columns of one name."""
    as_frame(X)
    if isinstance(X, str | PathLike):
        problem = f"X={str(X)!r} is a string, not a table of numbers"
        read = f"polars.read_csv({str(X)!r})"
        raise TypeError(f"{problem}; read the file first, for example with {read}.")
    kind = type(X).__name__
    if hasattr(X, "collect"):
        raise TypeError(f"X is a {kind}, which holds no rows yet; pass X.collect().")
    if isinstance(X, Mapping):
        raise TypeError(f"X is of type {kind}, not a table; pass pandas.DataFrame(X), for example.")
    if not any(hasattr(X, known) for known in ("__len__", "__array__", "shape")):
        raise TypeError(
            f"X is of type {kind}, not a table; pass an array, a sparse matrix or a data frame of "
            "shape (n_samples, n_features)."
        )


def numeric_columns(X: Any) -> FrameRows | None:
    """The numeric columns of a data frame, if X is one."""
    frame = as_frame(X)
    if not isinstance(frame, nw.DataFrame):
        return None
    numeric = [name for name, kind in frame.schema.items() if kind.is_numeric()]
    if numeric:
        return FrameRows(frame.select([nw.col(name) for name in numeric]))
    return None


def dense_blocks(rows: Rows) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Blocks of about two million entries as float arrays, each with its place among the rows."""
    size = max(64, ENTRIES_AT_A_TIME // rows.n_features)
    for start in range(0, rows.n_rows, size):
        place = slice(start, min(start + size, rows.n_rows))
        block: Any = rows.block(place.start, place.stop)
        yield place, block.toarray() if isinstance(rows, SparseRows) else block


def dense(X: Any) -> Array:
    """Rows as one new array of float64."""
    return np.concatenate([np.array(block, np.float64) for _, block in dense_blocks(as_rows(X))])


def refuse_non_finite(rows: Rows) -> None:
    """Raise an error that names the first NaN or infinity, if there is one."""
    for place, block in dense_blocks(rows):
        bad = np.argwhere(~np.isfinite(block))
        if len(bad):
            i, j = bad[0].tolist()
            column = j
            if rows.feature_names is not None:
                column = repr(rows.feature_names[j])
            kind = "infinity"
            remedy = "correct the values"
            if np.isnan(block[i, j]):
                kind = "NaN"
                remedy = "use missing='available' where it is offered"
            where = f"column {column}, first in row {place.start + i} (counting from 0)"
            raise ValueError(f"Input X contains {kind} in {where}; drop such rows, or {remedy}.")


def refuse_unusable_numbers(rows: Rows) -> NoReturn:
    """Raise the error for rows whose sums of squares are not finite."""
    refuse_non_finite(rows)
    problem = "X has values so large that their squares overflow float64"
    raise ValueError(f"{problem}; rescale it, for example with StandardScaler.")


# -- rows with targets as last columns, so that one pass gives the joint moments of both ----------


class NumericTarget(NamedTuple):
    """A target to be learnt as columns of numbers, not as classes."""

    values: Any


def join_targets(rows: Rows, target: NumericTarget) -> Rows:
    """The rows with their targets, which are finite numbers, as last columns."""
    n = rows.n_rows
    block: Callable[[int, int], Any] = rows.block
    try:
        Y: Array = np.asarray(on_host(target.values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        problem = f"y must be numbers for target_type='numbers', but could not be read: {error}"
        raise TypeError(f"{problem}; pass target_type='classes' for labels.") from error
    if Y.ndim == 1:
        Y = Y[:, None]
    if Y.ndim != 2 or Y.shape[1] == 0:
        raise ValueError(f"y has shape {Y.shape}; pass one number per row, or several columns.")
    bad = np.flatnonzero(~np.isfinite(Y).all(axis=1))
    if len(bad):
        problem = f"Input y contains NaN or infinity in {len(bad)} rows, first in row {bad[0]}"
        raise ValueError(f"{problem}; drop these rows of X, y and groups, or fill them.")
    if len(Y) != n:
        raise ValueError(f"y has {len(Y)} rows but X has {n}; pass exactly one y per row of X.")
    joint: SparseRows | MadeRows
    if isinstance(rows, SparseRows):
        joint = SparseRows(sp.hstack([block(0, n), sp.csr_array(Y)], format="csr"))
    else:
        width = rows.n_features + Y.shape[1]
        joint = MadeRows(n, width, lambda a, b: np.hstack([block(a, b), Y[a:b]]))
    joint.n_targets = Y.shape[1]
    if rows.feature_names is not None:
        joint.feature_names = rows.feature_names + [f"target {j}" for j in range(Y.shape[1])]
    return joint
