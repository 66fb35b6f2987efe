"""Tables in files, folders, databases and queries, read by DuckDB.

Every column of a text file is read as text, and SQL turns it into numbers. So labels stay as they
are written (01 and 1 are two groups), and a text among numbers is refused with its line.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from weakref import finalize

from fairpca._blas import blas_threads
from fairpca._tables.arrow import pa, pc, pq
from fairpca._tables.files import (
    FileFormat,
    TableError,
    TableFile,
    arrow_batches,
    arrow_schema,
    as_utf8,
    damaged,
    dialect_of,
    find_files,
    first_names,
    is_number,
    list_of,
    refuse_twin_names,
    sheet_as_text,
    undecodable,
    unknown_column,
)

try:
    import duckdb
except ImportError as error:
    raise ImportError(
        "reading files needs duckdb; install it with pip install 'fairpca[files]'."
    ) from error

Kind = Literal["number", "text", "date", "empty", "other"]

_MEMORY = 300  # megabytes
_HEAD_ROWS, _HEAD_ENTRIES = 20_000, 1 << 21  # that tell the types of text columns
_MOSTLY = 0.75  # of the values
_LINE_BYTES = 1 << 21
_SMALL_BYTES = 1 << 28
_MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null",
)  # fmt: skip
_ODD = "fairpca-odd-value"
_PLAIN = r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?([iI]nf(inity)?|INF)"
_TRUE_OR_FALSE = r"(?i)true|false"
_THOUSANDS_BY_POINT, _BELOW_A_THOUSAND = r"[-+]?[1-9]\d{0,2}\.\d{3}", r"[-+]?\d{1,3}"
_ERRORS = (duckdb.Error, pa.ArrowException, OSError)


@dataclass(frozen=True)
class Column:
    """A column of a table, and the SQL that reads it.

    Attributes
    ----------
    name, kind : str
    raw, number, label : str
        SQL for the column as it is stored, as DOUBLE, and as a label.
    usual : bool
        Whether it may become a feature without being named: not if it is an index or in the path.
    odd : tuple of (int, str) or None
        In a text column that holds numbers but for a few values: the first such row and value.
    """

    name: str
    kind: Kind
    raw: str
    number: str
    label: str
    usual: bool = True
    odd: tuple[int, str] | None = None


@dataclass(frozen=True)
class _TextOptions:
    """How text files are written; see :func:`open_table`."""

    encoding: str | None = None
    decimal: str | None = None
    header: bool = True
    sheet: str | None = None
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            "a".encode("utf-8" if self.encoding is None else self.encoding)
        except (LookupError, TypeError):
            fact = f"the encoding {self.encoding!r} is not known"
            raise TableError("encoding", fact, "try 'utf-8' or 'latin-1'") from None
        if self.decimal not in (None, ".", ","):
            fact = f"the decimal point {self.decimal!r} is not known"
            raise TableError("decimal", fact, "pass '.' or ','")


def is_query(text: Any) -> bool:
    """Whether a text is a query and not a path.

    Examples
    --------
    >>> is_query("SELECT * FROM 'people.csv'"), is_query("from.csv")
    (True, False)
    """
    return isinstance(text, str) and re.match(r"\s*(select|with|from)\s", text, re.I) is not None


def input_paths(data: Any) -> list[str]:
    """The files and folders that are read, as absolute paths; none for a query."""
    paths = [] if is_query(data) or isinstance(data, Mapping) else list_of(data)
    return [os.path.abspath(path) for path in paths if path != "-"]


def open_table(
    data: Any,
    *,
    query: str | None = None,
    file_format: FileFormat | None = None,
    encoding: str | None = None,
    decimal: str | None = None,
    header: bool = True,
    sheet: str | None = None,
    missing_values: str | Sequence[str] = (),
) -> Table:
    """Open a table; only its first rows are read.

    Parameters
    ----------
    data : path, list of paths, query, or mapping of str to array
        A file, a folder of files of one format (its ``key=value`` subfolders are columns), a
        pattern such as ``people/*.parquet``, ``-`` for CSV from standard input, or a text that
        begins with SELECT, WITH or FROM.
    query : str, optional
        A query to a DuckDB database file, which ``data`` names.
    file_format : {"csv", "tsv", "parquet", "arrow"}, optional
        By default the ending of the file's name tells.
    encoding : str, optional
        The encoding of text files; by default UTF-8, or UTF-16 with a byte order mark.
    decimal : {".", ","}, optional
        The decimal point of text files; by default told from the first rows.
    header : bool
        Whether text files begin with a line of names; otherwise columns are c0, c1, ...
    sheet : str, optional
        The sheet of a spreadsheet; needed if several hold rows.
    missing_values : str or sequence of str
        Values that stand for a missing one in columns of numbers, besides the usual texts.

    Returns
    -------
    Table
    """
    missing = [missing_values] if isinstance(missing_values, str) else missing_values or ()
    text = _TextOptions(encoding, decimal, header, sheet, tuple(map(str, missing)))
    if isinstance(data, Table):
        return data
    table = _opened(data, query, file_format, text)
    table.settle_memory()
    return table


def _opened(
    data: Any, query: str | None, file_format: FileFormat | None, text: _TextOptions
) -> Table:
    if isinstance(data, Mapping):
        return _ArrayTable(data, text)
    if is_query(data):
        return _QueryTable(data, None, text)
    files = find_files(data, file_format)
    if files[0].format == "database":
        return _QueryTable(query, files[0], text)
    if query is not None:
        fact = f"query= is for a DuckDB database, and {files[0].name} is none"
        raise TableError("query", fact, "name the file in the query: SELECT * FROM 'people.csv'")
    if text.sheet is not None and files[0].format != "excel":
        fact = f"the sheet {text.sheet!r} is for spreadsheets, and {files[0].name} is not one"
        raise TableError("sheet", fact, "leave it out", file=files[0].name, sheets=[])
    kinds = {"parquet": _ParquetTable, "arrow": _ArrowTable}
    return kinds.get(files[0].format, _TextTable)(files, text, input_paths(data))


class Table:
    """Rows and named columns, wherever they are; see :func:`open_table`.

    Attributes
    ----------
    name : str
        The name in messages.
    columns : dict of str to Column
    inputs : list of paths
        Files and folders that are read, and must not be written to.
    decimal : str
        The decimal point of text.
    unordered : bool
        Whether the rows may come in another order next time: a query that joins or groups without
        ORDER BY.
    """

    is_text = unordered = False
    decimal = "."
    files: Sequence[TableFile] = ()
    _source: str  # SQL: what stands behind FROM
    _arrow: Callable[[], Any] | None = None  # a reader of rows that DuckDB cannot read by itself

    def __init__(
        self, name: str, text: _TextOptions, inputs: Sequence[Any], database: Path | None = None
    ) -> None:
        self.name, self.inputs, self._text = name, list(inputs), text
        self.columns: dict[str, Column] = {}
        self._folder = tempfile.mkdtemp(prefix="fairpca-")
        self._cleanup = finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._connection = _connect(database, self._folder)

    def batches(
        self,
        columns: Sequence[str],
        *,
        rows: int = 1 << 14,
        limit: int | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> Iterator[Any]:
        """Arrow record batches of these SQL columns, in the order of the rows."""
        listed = ", ".join(f"{sql} AS v{j}" for j, sql in enumerate(columns)) or "1 AS v0"
        ending = "" if limit is None else f" LIMIT {limit}"
        cursor, last = self._cursor(), 0.0
        before = [_identity(file.path) for file in self.files]
        try:
            reader = cursor.sql(f"SELECT {listed} FROM {self._source}{ending}").to_arrow_reader(
                rows
            )
            for batch in reader:
                yield batch
                if progress is not None:
                    last = max(last, min(1.0, cursor.query_progress() / 100))
                    progress(last)
        except _ERRORS as error:
            raise self._explained(error) from error
        for file, identity in zip(self.files, before, strict=True):
            if _identity(file.path) != identity:
                fact, advice = (
                    "was changed while it was being read",
                    "read it again when it is complete",
                )
                raise TableError("changed", f"{file.name} {fact}", advice, file=file.name)
        if progress is not None and last < 1.0:
            progress(1.0)

    def figures(
        self, sql: Sequence[str], values: Sequence[str], limit: int | None = None
    ) -> list[Any]:
        """Aggregates, over all rows or the first, of values that they call v0, v1, ..."""
        listed = ", ".join(f"{value} AS v{j}" for j, value in enumerate(values)) or "1 AS v0"
        ending = "" if limit is None else f" LIMIT {limit}"
        inner = f"SELECT {listed} FROM {self._source}{ending}"
        return list(self._rows(f"SELECT {', '.join(sql)} FROM ({inner})")[0])

    def schema_of(self, columns: Sequence[str]) -> pa.Schema:
        """The names v0, v1, ... and Arrow types of SQL columns."""
        listed = ", ".join(f"{sql} AS v{j}" for j, sql in enumerate(columns))
        if not listed:
            return pa.schema([])
        cursor = self._cursor()
        return cursor.sql(f"SELECT {listed} FROM {self._source} LIMIT 0").to_arrow_table().schema

    def is_small(self) -> bool:
        """Whether figures that need all values in memory can be had."""
        if self.files:
            return sum(file.path.stat().st_size for file in self.files) <= _SMALL_BYTES
        return bool(self.figures(["count(*)"], [])[0] * len(self.columns) <= _SMALL_BYTES / 8)

    def holds_fractions(self, name: str) -> bool:
        """Whether a column holds numbers that are not whole, by its type or its first rows."""
        if name not in self.columns:
            raise unknown_column(name, [*self.columns], self.name)
        column = self.columns[name]
        if column.kind != "number":
            return False
        broken = "bool_or(v0 <> floor(v0)) OR typeof(any_value(v1)) IN ('DOUBLE', 'FLOAT')"
        return bool(self.figures([broken], [column.number, column.raw], _HEAD_ROWS)[0])

    def first_text(self, name: str) -> str:
        """The first value of a column that is not missing."""
        label = self.columns[name].label
        return str(self.figures(["first(v0) FILTER (v0 IS NOT NULL)"], [label])[0])

    def place_of(self, condition: str) -> str:
        """The first row that meets a condition, as "line 7 of people.csv"; "" if it is unknown."""
        source = self._source
        rows = f"SELECT row_number() OVER () AS n, ({condition}) AS met"
        if self.files:
            rows += ", filename AS file"
        try:
            found = self._rows(
                f"SELECT {'file' if self.files else 'NULL'}, min(n) FILTER (met) - min(n) + 1 "
                f"FROM ({rows} FROM {source}) GROUP BY ALL HAVING bool_or(met) "
                "ORDER BY min(n) LIMIT 1"
                if self.files
                else f"SELECT NULL, min(n) FROM ({rows} FROM {source}) WHERE met"
            )
        except TableError:
            return ""
        if not found or found[0][1] is None:
            return ""
        names = {str(file.path): file.name for file in self.files}
        unit, first = ("line", self._text.header) if self.is_text else ("row", 0)
        return f"{unit} {found[0][1] + first} of {names.get(found[0][0], self.name)}"

    def settle_memory(self) -> None:
        """Give wide tables more memory, a vector of values a column; nothing changes after this."""
        n = max(_MEMORY, 2 * len(self.columns))
        self._connection.execute(f"SET memory_limit='{n}MB'; SET lock_configuration=true")

    def close(self) -> None:
        """Close the connection and remove temporary files."""
        self._connection.close()
        self._cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _cursor(self) -> Any:
        cursor = self._connection.cursor()
        if self._arrow is not None:
            cursor.register("arrow_rows", self._arrow())
        return cursor

    def _rows(self, sql: str) -> list[Any]:
        try:
            return list(self._cursor().sql(sql).fetchall())
        except _ERRORS as error:
            raise self._explained(error) from error

    def _types(self, source: str) -> dict[str, str]:
        """Names and types of the columns that DuckDB finds."""
        return {row[0]: row[1] for row in self._rows(f"DESCRIBE SELECT * FROM {source}")}

    def _add_columns(
        self,
        types: Mapping[str, str],
        names: Sequence[str] | None = None,
        index: Sequence[Any] = (),
    ) -> None:
        """Columns of known types; DuckDB takes X and x for one name, so its names may differ."""
        for name, (raw, kind) in zip(
            types if names is None else names, types.items(), strict=False
        ):
            sql, is_index = _name(raw), name in index or name.startswith("__index_level_")
            keeps = kind == "VARCHAR" or (_kind(kind) == "number" and "DECIMAL" not in kind)
            label = sql if keeps else f"CAST({sql} AS VARCHAR)"
            number = self._unless_missing(f"CAST({sql} AS DOUBLE)")
            self.columns[name] = Column(name, _kind(kind), sql, number, label, not is_index)

    def _add_path_columns(self) -> None:
        """Columns that the folders of the files name; whole numbers if all are written so."""
        for key in self.files[0].partition:
            values = {file.partition.get(key) for file in self.files} - {None}
            whole = all(re.fullmatch(r"0|-?[1-9]\d{0,17}", str(value)) for value in values)
            sql = f"CAST({_name(key)} AS BIGINT)" if whole else _name(key)
            kind: Kind = "number" if whole else "text"
            self.columns[key] = Column(key, kind, sql, f"CAST({sql} AS DOUBLE)", sql, usual=False)

    def _unless_missing(self, number: str) -> str:
        """SQL for a number, null where it equals a value that means a missing one."""
        values = [value for value in self._text.missing if is_number(value)]
        return reduce(lambda sql, value: f"nullif({sql}, {float(value)!r})", values, number)

    def _explained(self, error: Exception) -> TableError:
        """What an error of the engine means for the user."""
        said = str(error)
        if isinstance(error, TableError):
            return error
        names = {str(file.path): file.name for file in self.files}
        mine = next((name for path, name in names.items() if path in said), self.name)
        line = re.search(r"CSV Error on Line: (\d+)", said)
        place = f"line {line[1]} of {mine}" if line else mine
        facts = {"file": mine, "line": int(line[1]) if line else None}
        if found := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", said):
            names_line = "the line of column names has" if self._text.header else "others have"
            n = f"more than {found[1]}" if int(found[2]) > int(found[1]) else found[2]
            fact = f"{place} has {n} values where {names_line} {found[1]}"
            title = "leave out the line above if it is a title, " if found[1] == "1" else ""
            advice = f"{title}correct that line, or restore the file if it was cut off there"
            return TableError("ragged", fact, advice, **facts)
        if "unterminated quote" in said:
            fact = f"the quotes opened in {place} are never closed"
            advice = "close them, or restore the file if it was cut off"
            return TableError("quote", fact, advice, **facts)
        if "not utf-8 encoded" in said or "Invalid unicode" in said:
            return undecodable(mine, "utf-8", int(line[1]) if line else 1)
        if found := re.search(rf"{_ODD}\|(\d+)\|(.*?)\|{_ODD}", said, re.DOTALL):
            return self.odd_value([*self.columns][int(found[1])], found[2])
        if found := re.search(r'failed to cast column "(.*?)" .* convert string \'(.*?)\'', said):
            return self.odd_value(found[1], found[2], mine)
        if found := re.search(
            r'column "(.*?)" was read.*Candidate names: ([^\n]*)', said, re.DOTALL
        ):
            mine = next((n for p, n in names.items() if f'read file "{p}"' in said), mine)
            return unknown_column(found[1], found[2].split(", "), mine)
        if "requires the extension" in said or "install" in said.lower():
            fact = f"{mine} reads from the network or needs an extension ({said.splitlines()[0]})"
            advice = "fairpca loads no extensions; download the data first"
            return TableError("query", fact, advice)
        if isinstance(self, _QueryTable):
            return TableError("query", said.strip().rstrip("."), "correct the query")
        return damaged(mine, said.split("\n")[0])

    def odd_value(self, name: str, value: str, where: str = "") -> TableError:
        """The error for a text among numbers."""
        place = where or self.place_of(f"{self.columns[name].raw} = {_quoted(value)}") or self.name
        fact = f"{place} has {value!r} in column {name!r}, which otherwise holds numbers"
        line = re.match(r"line (\d+) of ", place)
        advice = (
            "correct the value (or leave out the line, if it holds names), say that it stands for "
            f"a missing one, missing_values=[{value!r}], or leave the column out, drop=[{name!r}]"
        )
        if re.fullmatch(r"\d{1,3}(\.\d{3}){2,}", value):
            advice += "; if its points separate thousands, pass decimal=','"
        facts = {"line": int(line[1]) if line else None, "column": name, "value": value}
        return TableError("odd_value", fact, advice, file=place.partition(" of ")[2], **facts)


class _QueryTable(Table):
    """The rows that one SELECT statement gives, from a database or from files."""

    def __init__(self, query: str | None, database: TableFile | None, text: _TextOptions) -> None:
        path = None if database is None else database.path
        name = "the query" if database is None else database.name
        super().__init__(name, text, [] if path is None else [path], path)
        if query is None:
            known = [row[0] for row in self._rows("SHOW TABLES")]
            fact = f"{name} is a database with the tables {first_names(known)}"
            advice = f"pass query='SELECT * FROM {(known or ['people'])[0]}'"
            raise TableError("query", fact, advice, tables=known)
        try:
            statements = self._connection.extract_statements(query)
        except duckdb.Error as error:
            raise self._explained(error) from error
        kinds = [str(statement.type).rpartition(".")[2] for statement in statements]
        if kinds != ["SELECT"]:
            fact = f"a table is one SELECT statement, and this is {' and '.join(kinds) or 'none'}"
            raise TableError("query", fact, "pass one that only reads", statements=kinds)
        self._source = f"({query.strip().rstrip(';')}\n)"
        joins = re.search(r"\b(join|group\s+by|distinct|union|intersect|except)\b", query, re.I)
        self.unordered = bool(joins) and re.search(r"\border\s+by\b", query, re.I) is None
        self._add_columns(self._types(self._source))


class _ArrayTable(Table):
    """Columns in memory."""

    def __init__(self, columns: Mapping[str, Any], text: _TextOptions) -> None:
        super().__init__("the data", text, [])
        rows = pa.table(dict(columns))
        self._arrow, self._source = rows.to_reader, "arrow_rows"
        self._add_columns(self._types(self._source), rows.schema.names)


class _FileTable(Table):
    """Files of one format, one after the other."""

    def __init__(
        self, files: Sequence[TableFile], text: _TextOptions, inputs: Sequence[Any]
    ) -> None:
        first, *others = [file.name for file in files]
        more = f" and {others[0] if len(others) == 1 else f'{len(others)} more'}" if others else ""
        super().__init__(first + more, text, inputs)
        self.files = files
        self._open()

    def _open(self) -> None:
        raise NotImplementedError


class _ParquetTable(_FileTable):
    def _open(self) -> None:
        first = self.files[0]
        try:
            schema = pq.read_schema(first.path)
            index = (schema.pandas_metadata or {}).get("index_columns", ())
        except (pa.ArrowException, OSError, ValueError) as error:
            raise damaged(first.name, error) from error
        refuse_twin_names(first.name, schema.names)
        self._source = self._reading(self.files)
        types = self._types(self._source)
        if len(self.files) > 1 and self._differ(schema.names):
            self._source = self._reading(self.files, union=True)
        self._add_columns(self._types(self._source), schema.names, index)
        for name, kind in zip(schema.names, types.values(), strict=False):
            if _kind(kind) == "number":  # in another file it may be text
                self.columns[name] = replace(self.columns[name], kind="number")
        self._add_path_columns()

    def _differ(self, names: Sequence[str]) -> bool:
        """Whether columns have other types in other files; refuses those that lack or repeat one.

        DuckDB would take the type of the first file for all, and round fractions to whole numbers.
        """
        paths = _list_of_texts(str(file.path) for file in self.files)
        found = self._rows(
            "SELECT name, count(*), count(DISTINCT (type, coalesce(logical_type, ''))) "
            f"FROM parquet_schema({paths}) GROUP BY name"
        )
        counts = {name: count for name, count, _ in found}
        if any(counts.get(name, 0) != len(self.files) for name in names):
            for file in self.files[1:]:
                known = pq.read_schema(file.path).names
                refuse_twin_names(file.name, [name for name in known if name in names])
        return any(kinds > 1 for name, _, kinds in found if name in names)

    def _reading(self, files: Sequence[TableFile], union: bool = False) -> str:
        keys = ", ".join(f"{_quoted(key)}: VARCHAR" for key in files[0].partition)
        hive = f"true, hive_types={{{keys}}}" if keys else "false"
        return (
            f"read_parquet({_list_of_texts(str(file.path) for file in files)}, "
            f"union_by_name={str(union).lower()}, hive_partitioning={hive})"
        )


class _ArrowTable(_FileTable):
    def _open(self) -> None:
        schemas = [arrow_schema(file) for file in self.files]
        for file, schema in zip(self.files, schemas, strict=True):
            for name in schemas[0].names:
                if name not in schema.names:
                    raise unknown_column(name, schema.names, file.name)
            refuse_twin_names(file.name, [n for n in schema.names if n in schemas[0].names])
        try:
            wanted = [[f for f in schema if f.name in schemas[0].names] for schema in schemas]
            plain = [pa.schema([(f.name, _plain_type(f.type)) for f in own]) for own in wanted]
            fields = [*pa.unify_schemas(plain, promote_options="permissive")]
        except pa.ArrowException as error:
            fact = f"the columns of {self.name} have types that do not fit together ({error})"
            raise TableError("damaged", fact, "write them alike", file=self.name) from error
        order = {name: i for i, name in enumerate(schemas[0].names)}
        fields.sort(key=lambda f: order[f.name])
        extra = [pa.field(name, pa.string()) for name in (*self.files[0].partition, "filename")]
        whole = pa.schema([*fields, *extra])
        self._source = "arrow_rows"
        self._arrow = lambda: pa.RecordBatchReader.from_batches(
            whole, arrow_batches(self.files, whole)
        )
        index = (schemas[0].pandas_metadata or {}).get("index_columns", ())
        self._add_columns(self._types("arrow_rows"), schemas[0].names, index)
        self._add_path_columns()


class _TextTable(_FileTable):
    is_text = True
    _all_seen = False  # whether the first rows, which tell the types, are all

    def _open(self) -> None:
        text, folder = self._text, self._folder
        if self.files[0].format == "excel":
            self.files = [sheet_as_text(file, text.sheet, folder) for file in self.files]
            text = self._text = replace(text, encoding=None, decimal=".")
        self.files = [as_utf8(file, text.encoding, folder) for file in self.files]
        dialects = [dialect_of(file, text.header) for file in self.files]
        names = dialects[0].names
        alike = groupby(
            zip(self.files, dialects, strict=True),
            key=lambda pair: (pair[1].delimiter, pair[1].names, pair[0].partition),
        )
        parts = [self._reading([*pairs], names) for _, pairs in alike]
        self._source = parts[0] if len(parts) == 1 else f"({' UNION ALL '.join(parts)})"
        head = self._head(len(names))
        self.decimal = text.decimal or self._told_decimal(names, head, dialects[0].delimiter)
        for j, (name, values) in enumerate(zip(names, head, strict=True)):
            self._add_text_column(name, j, values)
        self._add_path_columns()

    def _reading(self, pairs: Sequence[Any], names: Sequence[str]) -> str:
        """SQL that reads text files of one dialect; columns are c0, c1, ... as in ``names``."""
        (file, dialect), header = pairs[0], str(self._text.header).lower()
        for name in names:
            if name not in dialect.names:
                raise unknown_column(name, dialect.names, file.name)
        columns = ", ".join(f"'c{j}': 'VARCHAR'" for j in range(len(dialect.names)))
        longest = max(_LINE_BYTES, 8 * max(dialect.longest_line for _, dialect in pairs))
        source = (
            f"read_csv({_list_of_texts(str(file.path) for file, _ in pairs)}, auto_detect=false, "
            f"header={header}, delim={_quoted(dialect.delimiter)}, quote='\"', escape='\"', "
            f"comment='', skip=0, strict_mode=true, max_line_size={longest}, "
            f"hive_partitioning=false, columns={{{columns}}})"
        )
        order = [f"c{dialect.names.index(name)} AS c{j}" for j, name in enumerate(names)]
        keys = [
            f"{'NULL' if value is None else _quoted(value)} AS {_name(key)}"
            for key, value in file.partition.items()
        ]
        return f"(SELECT {', '.join([*order, *keys, 'filename'])} FROM {source})"

    def _head(self, n_columns: int) -> list[pa.Array]:
        """The first rows of each column as text, missing ones null."""
        rows = min(_HEAD_ROWS, max(1000, _HEAD_ENTRIES // n_columns))
        batches = list(self.batches([f"c{j}" for j in range(n_columns)], limit=rows))
        if not batches:
            return [pa.array([], pa.string())] * n_columns
        table = pa.Table.from_batches(batches)
        self._all_seen = table.num_rows < rows
        missing = pa.array([*_MISSING, *self._text.missing])
        head = []
        for column in (column.combine_chunks() for column in table.columns):
            gone = pc.is_in(pc.utf8_trim_whitespace(column), value_set=missing)
            head.append(pc.if_else(gone, pa.scalar(None, pa.string()), column))
        return head

    def _told_decimal(self, names: Sequence[str], head: Sequence[pa.Array], delimiter: str) -> str:
        """The decimal point, as the first rows tell it; asks where they could mean either."""
        columns = dict(zip(names, head, strict=True))
        plain = {name: c for name, c in columns.items() if _match(c, _PLAIN)}
        marked = {n: c for n, c in columns.items() if n not in plain and _has_comma(c)}
        commas = [name for name, c in marked.items() if _match(c, _numeral(","), _MOSTLY)]
        points = [name for name, c in marked.items() if _match(c, _numeral("."), _MOSTLY)]
        either = [name for name in commas if name in points]
        if commas and len(points) == len(either):
            if len(commas) > len(either):
                return ","
            raise self._ambiguous(
                either[0], next(v for v in marked[either[0]].to_pylist() if v and "," in v)
            )
        if delimiter != ",":
            self._refuse_doubtful_points(plain)
        return "."

    def _refuse_doubtful_points(self, columns: Mapping[str, pa.Array]) -> None:
        """Ask about 1.243 beside 641, unless another value shows that the point is a decimal."""
        doubtful: list[tuple[str, str]] = []
        for name, column in columns.items():
            known = column.drop_null()
            has_point = pc.match_substring(known, ".")
            pointed, others = known.filter(has_point), known.filter(pc.invert(has_point))
            if len(pointed) and not _match(pointed, _THOUSANDS_BY_POINT):
                return
            if len(pointed) and len(others) and _match(others, _BELOW_A_THOUSAND):
                doubtful.append((name, pointed[0].as_py()))
        if doubtful:
            raise self._ambiguous(*doubtful[0])

    def _ambiguous(self, name: str, value: str) -> TableError:
        where = self.files[0].name
        fact = f"{value!r} in column {name!r} of {where} may be a fraction or thousands"
        advice = "say which with decimal=',' or decimal='.'"
        return TableError("decimal", fact, advice, file=where, column=name, value=value)

    def _add_text_column(self, name: str, j: int, head: pa.Array) -> None:
        """Tell from the first rows whether a column of text holds numbers."""
        raw, pattern, odd, certain = f"c{j}", _numeral(self.decimal), None, False
        kind: Kind = "number"
        cleaned = f"replace(replace({raw}, '.', ''), ',', '.')"
        if self.decimal == ".":
            cleaned = f"replace({raw}, ',', '')"
        is_numeral = f"regexp_full_match({raw}, {_quoted(_padded(pattern))})"
        number = f"CASE WHEN {is_numeral} THEN TRY_CAST({cleaned} AS DOUBLE) END"
        if not len(head.drop_null()):
            kind = "empty"
        elif _match(head, _TRUE_OR_FALSE):
            number = f"CASE lower(trim({raw})) WHEN 'true' THEN 1.0 WHEN 'false' THEN 0.0 END"
        elif self.decimal == "." and _match(head, _PLAIN):
            # Without trim DuckDB lets the CSV reader cast, which fails where TRY_CAST gives null.
            number, certain = f"TRY_CAST(trim({raw}) AS DOUBLE)", self._all_seen
        elif not _match(head, pattern):
            kind = "text"
            i = pc.index(pc.match_substring_regex(head, f"^{_padded(pattern)}$"), False).as_py()
            odd = (i, head[i].as_py()) if _match(head, pattern, _MOSTLY) else None
        missing = _is_one_of(raw, (*_MISSING, *self._text.missing))
        refused = f"error({_quoted(f'{_ODD}|{j}|')} || {raw} || {_quoted(f'|{_ODD}')})"
        if not certain:
            missing = f"{raw} IS NULL OR {missing}"
            number = f"coalesce({number}, CASE WHEN {missing} THEN NULL ELSE {refused} END)"
        number = self._unless_missing(number)
        self.columns[name] = Column(name, kind, raw, number, _known(raw), bool(name), odd)


def _connect(database: Path | None, folder: str) -> Any:
    """A connection that neither writes files nor loads extensions."""
    config: dict[str, Any] = {
        "memory_limit": f"{_MEMORY}MB",
        "threads": blas_threads(),
        "temp_directory": folder,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    try:
        path, read_only = (":memory:", False) if database is None else (str(database), True)
        connection = duckdb.connect(path, read_only=read_only, config=config)
    except duckdb.Error as error:
        raise damaged(str(database), str(error).split("\n")[0]) from error
    # Names in a query are never Python variables, and a query cannot change these settings.
    for setting in ("python_enable_replacements=false", "enable_progress_bar=true",
                    "enable_progress_bar_print=false",
                    # The statistics of Parquet files leave NaN out, so DuckDB may not see it.
                    "disabled_optimizers='statistics_propagation'",):  # fmt: skip
        connection.execute(f"SET {setting}")
    return connection


def _kind(kind: str) -> Kind:
    """What a column of a DuckDB type holds."""
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION", "BLOB", "BIT")):
        return "other"
    if kind == '"NULL"':
        return "empty"
    if ("INT" in kind and kind != "INTERVAL") or kind.startswith(
        ("DECIMAL", "DOUBLE", "FLOAT", "BOOLEAN")
    ):
        return "number"
    return "date" if kind.startswith(("DATE", "TIME", "INTERVAL")) else "text"


def _plain_type(kind: Any) -> Any:
    """The type of the values of a dictionary, which DuckDB and other files can use."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _known(raw: str) -> str:
    """SQL for a text, null where it stands for a missing value."""
    return f"CASE WHEN {_is_one_of(raw, _MISSING)} THEN NULL ELSE {raw} END"


def _is_one_of(raw: str, texts: Iterable[str]) -> str:
    """SQL: a pattern, because DuckDB makes a join of a list, with megabytes for every column."""
    pattern = _padded("|".join(map(re.escape, texts)))
    return f"regexp_full_match({raw}, {_quoted(pattern)})"


def _numeral(decimal: str) -> str:
    """The pattern of a number with this decimal point, and maybe the other mark for thousands."""
    point, mark = (r"\.", ",") if decimal == "." else (",", r"\.")
    whole = rf"(\d{{1,3}}({mark}\d{{3}})+|\d+)"
    return rf"[-+]?({whole}({point}\d*)?|{point}\d+)([eE][-+]?\d+)?|[-+]?([iI]nf(inity)?|INF)"


def _padded(pattern: str) -> str:
    return rf"\s*({pattern})\s*"


def _match(column: pa.Array, pattern: str, share: float = 1.0) -> bool:
    """Whether so many of the known texts, of which there is one at least, match a pattern."""
    matches = pc.match_substring_regex(column, f"^{_padded(pattern)}$")
    return (pc.mean(matches).as_py() or 0.0) >= share


def _has_comma(column: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring(column, ",")).as_py())


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _list_of_texts(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(_quoted, texts))}]"


def _identity(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
