"""The door: what callers pass as X, and the columns of X that their other arguments name.

Arrays, sparse matrices and data frames are rows in memory. What can be read only once, batch by
batch, is a :class:`Stream`: an object that exports Arrow (a relation of DuckDB, a reader or scanner
of pyarrow, a table of Ibis), a LazyFrame of polars, or an iterator of record batches or frames.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw

from fairpca._input.checks import check_same_order, refuse_twins, refuse_unknown_columns
from fairpca._input.device import ENTRIES_AT_A_TIME, is_dask, library_of
from fairpca._input.rows import ColumnRows, as_frame, refuse_no_table


class Input(NamedTuple):
    """What was passed, without the columns of X that other arguments name."""

    X: Any  # an array, a sparse matrix, a data frame, a Dask collection or a Stream
    sensitive_features: Any = None
    sample_weight: Any = None
    y: Any = None
    units: Any = None
    named: tuple[str, ...] = ()  # columns of X that are no features
    may_miss: bool = False  # whether NaN stands for a missing value, or is an error
    crossing: bool = True  # whether several sensitive features are crossed, or each counts alone


@dataclass(frozen=True)
class Stream:
    """Rows that can be read once. Columns are features, unless they are named here."""

    source: Any
    sensitive_features: tuple[str, ...] = ()
    sample_weight: str | None = None
    y: str | None = None
    units: str | None = None
    may_miss: bool = False
    crossing: bool = True

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that are no features."""
        others = [self.sample_weight, self.y, self.units]
        return (*self.sensitive_features, *(name for name in others if name is not None))

    def batches(self) -> Generator[Input]:
        """The rows, in batches of limited size."""
        from fairpca._input import arrow

        for whole in arrow.record_batches(self.source):
            features = self.features_in(whole.schema)
            for batch in arrow.pieces(whole, ENTRIES_AT_A_TIME):
                yield self._decoded(batch, features)

    def features_in(self, schema: Any) -> list[str]:
        """The features among the columns of an Arrow schema, which are checked."""
        from fairpca._input import arrow

        names = schema.names
        refuse_twins(names)
        refuse_unknown_columns(self.named, names)
        features = [name for name in names if name not in self.named]
        if not features:
            problem = f"X has no features: its columns are {names}, which have other roles"
            raise ValueError(f"{problem}; pass columns of numbers besides.")
        arrow.refuse_columns(schema, features)
        if self.sample_weight is not None:
            arrow.refuse_columns(schema, [self.sample_weight])
        return features

    def _decoded(self, batch: Any, features: list[str]) -> Input:
        from fairpca._input import arrow

        def read(name: str | None, decode: Callable[[Any], Any]) -> Any:
            if name is None:
                return None
            return decode(batch.column(name))

        columns = [arrow.numbers_of(batch.column(name)) for name in features]
        groups = {name: arrow.labels_of(batch.column(name)) for name in self.sensitive_features}
        return Input(
            ColumnRows(columns, features),
            sensitive_features=groups,
            sample_weight=read(self.sample_weight, arrow.numbers_of),
            y=read(self.y, arrow.outcomes_of),
            units=read(self.units, arrow.chunked),
            may_miss=self.may_miss,
            crossing=self.crossing,
        )


def open_input(
    X: Any,
    sensitive_features: Any = None,
    sample_weight: Any = None,
    y: Any = None,
    units: Any = None,
) -> Input:
    """Tell rows in memory from streams, and take the columns that arguments name out of X."""
    if isinstance(X, Stream):
        groups = X.sensitive_features or None
        return Input(X, groups, X.sample_weight, X.y, X.units, X.named)
    arguments = {
        "sensitive_features": sensitive_features,
        "sample_weight": sample_weight,
        "y": y,
        "units": units,
    }
    _refuse_other_sources(X)
    if is_stream(X):
        return open_input(stream_of(X, **arguments))
    check_same_order(X, **arguments)
    if library_of(X) == "pyarrow" and hasattr(X, "__arrow_c_array__"):
        X = sys.modules["pyarrow"].Table.from_batches([X])
    table = as_frame(X)
    if not (isinstance(table, nw.DataFrame) or (is_dask(X) and hasattr(X, "columns"))):
        for argument, given in arguments.items():
            if isinstance(given, str):
                fact = f"{argument}={given!r} is a name, but X ({type(X).__name__}) has no columns"
                raise TypeError(f"{fact} with names; pass the values, one per row of X.")
        return Input(X, **arguments)
    columns = list(table.columns)
    names = {key: _names_in(key, given, columns) for key, given in arguments.items()}
    named = list(dict.fromkeys(name for found in names.values() for name in found))
    if not named:
        return Input(X, **arguments)
    for argument, found in names.items():
        given = arguments[argument]
        if isinstance(given, str):
            arguments[argument] = _native(table[given])
        elif found and not is_dask(X) and len(found) == len(table):
            problem = f"{argument}={given!r} may be labels or names of columns of X"
            raise ValueError(f"{problem}; pass X[{given!r}], or numpy.array({given!r}) for labels.")
        elif found:
            arguments[argument] = _native(table[found])
    features = [name for name in columns if name not in named]
    return Input(_native(table[features]), **arguments, named=tuple(named))


def as_chosen(given: Input, missing: str = "error", crossing: bool = True) -> Input:
    """The same input, with what NaN means, and whether sensitive features are crossed."""
    if missing not in ("error", "available"):
        raise ValueError(f"missing={missing!r}: pass 'error' or 'available'.")
    chosen: dict[str, Any] = {"may_miss": missing == "available", "crossing": crossing}
    if not crossing and missing == "available":
        raise ValueError(
            "crossing=False does not go with missing='available': the second moments of each "
            "attribute's groups would not add up to the same whole. Cross the sensitive features, "
            "pass one of them, or fit to complete rows."
        )
    X = replace(given.X, **chosen) if isinstance(given.X, Stream) else given.X
    return given._replace(X=X, **chosen)


def in_memory(X: Any) -> bool:
    """Whether the rows of X are there to be looked at more than once."""
    return not (isinstance(X, Stream) or is_dask(X))


def is_stream(X: Any) -> bool:
    """Whether X holds no rows yet, and can be read once."""
    if isinstance(X, Stream | Iterator) or (library_of(X) == "polars" and hasattr(X, "collect")):
        return True
    if library_of(X) == "pyarrow" and (hasattr(X, "scanner") or hasattr(X, "to_reader")):
        return not hasattr(X, "num_rows")  # datasets and scanners; tables are in memory
    if not hasattr(X, "__arrow_c_stream__") or hasattr(X, "num_rows"):
        return False
    return not isinstance(as_frame(X), nw.DataFrame | nw.Series)


def map_stream(model: Any, X: Any) -> Any:
    """A reader of the columns of X that are no features, and then of what a model makes of it."""
    from fairpca._input import arrow

    features = list(getattr(model, "feature_names_in_", ()))
    return arrow.mapped(X, features, model.get_feature_names_out().tolist(), model.transform)


def without_named(X: Any, named: Sequence[str]) -> Any:
    """A data frame without the columns that arguments of ``fit`` named, if it has them."""
    refuse_no_table(X)
    table = as_frame(X)
    lazy = is_dask(X) and hasattr(X, "columns")
    if not named or not (lazy or isinstance(table, nw.DataFrame)):
        return X
    columns = list(table.columns)
    features = [name for name in columns if name not in named]
    if features == columns:
        return X
    return _native(table[features])


def refuse_stream(X: Any, what: str, instead: str) -> None:
    """Refuse a stream where the rows are needed more than once."""
    if is_stream(X):
        problem = f"X is a stream ({type(X).__name__}), which is read once, and {what}"
        raise TypeError(f"{problem}; {instead}.")


def _refuse_other_sources(X: Any) -> None:
    """Refuse paths and Spark frames, which have doors of their own."""
    if isinstance(X, str | PathLike):
        raise TypeError(
            f"X={str(X)!r} is a text, not a table; open files with DuckDB or polars, for example "
            f"fit(duckdb.sql(\"FROM {str(X)!r}\"), sensitive_features='sex')."
        )
    if library_of(X) == "pyspark":
        raise TypeError(
            "X is a Spark data frame, whose rows stay on its workers; pass moments, for example "
            "fit(GroupMoments.from_spark(frame, sensitive_features='sex'))."
        )


def stream_of(
    X: Any, sensitive_features: Any, sample_weight: Any = None, y: Any = None, units: Any = None
) -> Stream:
    """A stream whose columns the other arguments name."""
    if library_of(X) == "polars" and not hasattr(X, "collect_batches"):
        raise TypeError(
            "X is a LazyFrame of a polars that cannot hand it out in batches; update polars, or "
            "pass X.collect()."
        )
    groups = sensitive_features
    if groups is None:
        groups = ()
    elif not isinstance(groups, list | tuple):
        groups = (groups,)
    named = {"sample_weight": sample_weight, "y": y, "units": units}
    for argument, given in [*(("sensitive_features", name) for name in groups), *named.items()]:
        if given is not None and not isinstance(given, str):
            raise TypeError(
                f"X is a stream ({type(X).__name__}), so {argument} must be the name of one of its "
                f"columns, not {type(given).__name__}; pass for example {argument}='sex'."
            )
    return Stream(X, tuple(groups), **named)


def _names_in(argument: str, given: Any, columns: Sequence[str]) -> list[str]:
    """The columns that an argument names; none if it holds the values themselves."""
    if isinstance(given, str):
        refuse_unknown_columns([given], columns)
        return [given]
    if argument in ("sample_weight", "units") or not isinstance(given, list | tuple):
        return []
    names = [name for name in given if isinstance(name, str) and name in columns]
    if 0 < len(names) == len(given) == len(set(names)):
        return names
    return []


def _native(values: Any) -> Any:
    """A frame or column of narwhals as its own library has it."""
    return nw.to_native(values, pass_through=True)
