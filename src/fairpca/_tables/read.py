"""Tables in files, folders, databases and queries, read by DuckDB.

Labels in text files stay as they are written: 01 and 1 are two groups. A column whose first rows
hold plain numbers is declared as DOUBLE, which is fast; a later value in another notation is an
error. Other columns of numbers are read as text, by expressions that know more notations.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, Literal
from weakref import finalize

from fairpca._blas import blas_threads
from fairpca._tables import files
from fairpca._tables.files import TableFile, damaged, duckdb, pa, pc, refuse_unknown
from fairpca.exceptions import TableError

Kind = Literal["number", "text", "date", "empty", "other"]

HEAD_ROWS, _HEAD_ENTRIES = 20_000, 1 << 21  # first rows, which tell what a column holds
_BATCH_ROWS, _BATCH_ENTRIES = 1 << 14, 1 << 21  # most rows and entries in a record batch
_MOSTLY = 0.75  # A column with this share of numbers is meant to hold numbers.
_LINE_BYTES = 1 << 21  # Lines up to this length are always allowed.
_FREQUENT = ("", "N/A", "NA", "NULL", "null")  # looked for in all rows, which takes time
_MISSING = (
    *_FREQUENT, "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
    "1.#QNAN", "<NA>", "NaN", "n/a", "nan",
)  # fmt: skip
_DATE = r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d.*)?"
#: How DuckDB, and SQL of ours in its words, say that a value in a file is no number.
_NO_NUMBER = (
    r'column "(?P<column>c\d+)"\. Could not convert string "(?P<value>.*?)" to',
    r"convert string '(?P<value>.*?)' to DOUBLE when casting from source column (?P<column>[^\n]*)",
)
_FILE = "fairpca_file"  # the column with the path of a row's file
ROW = "fairpca_row"  # the number of a row, in conditions
_ERRORS = (duckdb.Error, pa.ArrowException, OSError)


@dataclass(frozen=True)
class Column:
    """A column of a table, and the SQL that reads it."""

    name: str
    kind: Kind
    raw: str  # as it is stored
    number: str  # as DOUBLE
    label: str
    usual: bool = True  # False for an index or a part of the path: no feature unless it is named
    odd: str = ""  # the first value of a text column that is no number
    mixed: bool = False  # whether most of its other values are numbers
    declared: bool = False  # whether the first rows of a text file hold plain numbers
    careful: str = ""  # SQL: the number, if the column is read as text


@dataclass(frozen=True)
class Reading:
    """How a table is read; see :func:`fairpca.read_table`."""

    query: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    header: bool = True
    sheet: str | None = None
    missing_values: str | Sequence[str] = ()

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
    """Whether a text is a query and not a path."""
    return isinstance(text, str) and re.match(r"\s*(select|with|from)\s", text, re.I) is not None


def input_paths(data: Any) -> list[str]:
    """The files and folders that are read, as absolute paths; empty for a query."""
    paths = [] if is_query(data) or isinstance(data, Mapping) else files.list_of(data)
    return [path if path == "-" else os.path.abspath(path) for path in paths]


def open_table(data: Any, **options: Any) -> Table:
    """Open a table, or a mapping of names to arrays; the options are fields of Reading."""
    if isinstance(data, Table):
        return data
    reading = Reading(**options)
    if isinstance(data, Mapping):
        table, rows = Table("the data", reading), pa.table(dict(data))
        table._arrow = rows.to_reader
        table._define("arrow_rows", rows.schema.names)
    elif is_query(data):
        table = Table("the query", reading)
        _define_query(table, data)
    else:
        table = _file_table(data, reading)
    # A vector of each column must fit into memory; queries cannot change the settings.
    memory = max(300, 2 * len(table.columns))
    table._connection.execute(f"SET memory_limit='{memory}MB'; SET lock_configuration=true")
    return table


def _file_table(data: Any, reading: Reading) -> Table:
    found = files.find_files(data)
    first, *others = [file.name for file in found]
    kind = found[0].format
    if kind == "database":
        table = Table(first, reading, [found[0].path], str(found[0].path))
        _define_query(table, reading.query)
        return table
    if reading.query is not None:
        fact = f"query= is for a DuckDB database, and {first} is none"
        raise TableError("query", fact, "name the file in the query: SELECT * FROM 'people.csv'")
    if reading.sheet is not None and kind != "excel":
        fact = f"the sheet {reading.sheet!r} is for spreadsheets, and {first} is not one"
        raise TableError("sheet", fact, "leave it out")
    more = f" and {others[0] if len(others) == 1 else f'{len(others)} more'}" if others else ""
    table = Table(first + more, reading, input_paths(data))
    table.files = found
    (_define_arrow if kind in ("parquet", "arrow") else _define_text)(table)
    for key in found[0].partition:
        table._add_path_column(key)
    return table


class Table:
    """Rows and named columns, wherever they are; see :func:`open_table`."""

    def __init__(
        self, name: str, reading: Reading, inputs: Sequence[Any] = (), database: str = ":memory:"
    ) -> None:
        self.name, self._reading = name, reading  # the name is for messages
        self._missing = [str(value) for value in files.list_of(reading.missing_values)]
        self.inputs = list(inputs)  # files and folders that must not be written to
        self.files: Sequence[TableFile] = ()
        self.unordered = False  # whether rows may come in another order next time
        self.columns: dict[str, Column] = {}
        self._from = ""  # SQL: what follows FROM
        self._csv: list[tuple[str, list[str]]] = []  # SQL that reads text files, their columns
        self._nulls = set(_FREQUENT)  # texts for missing values, with others of the first rows
        self._arrow: Callable[[], Any] | None = None  # rows that DuckDB cannot read by itself
        self._folder = tempfile.mkdtemp(prefix="fairpca-")
        self._cleanup = finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._connection = _connect(database, self._folder)

    def batches(
        self,
        columns: Sequence[str],
        limit: int | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> Iterator[Any]:
        """Arrow record batches of these SQL columns, in the order of the rows."""
        rows = min(_BATCH_ROWS, max(1024, _BATCH_ENTRIES // max(1, len(columns))))
        last, show, cursor = 0.0, progress or (lambda fraction: None), self._cursor()
        before = [_identity(file.path) for file in self.files]
        try:
            for batch in cursor.sql(self._select(columns, limit)).to_arrow_reader(rows):
                yield batch
                last = max(last, min(1.0, cursor.query_progress() / 100))
                show(last)
        except _ERRORS as error:
            raise self._explained(error) from error
        for file, identity in zip(self.files, before, strict=True):
            if _identity(file.path) != identity:
                fact = f"{file.name} was changed while it was being read"
                raise TableError("changed", fact, "read it again when it is complete")
        show(1.0)

    def figures(
        self, asked: Sequence[str], values: Sequence[str], limit: int | None = None
    ) -> list[Any]:
        """Aggregates, over all rows or the first, of values called v0, v1, ..."""
        (row,) = self._rows(f"SELECT {', '.join(asked)} FROM ({self._select(values, limit)})")
        return list(row)

    def schema_of(self, columns: Sequence[str]) -> Any:
        """The names v0, v1, ... and Arrow types of SQL columns."""
        cursor = self._cursor()
        schema = cursor.sql(self._select(columns, limit=0)).to_arrow_table().schema
        return schema if columns else pa.schema([])

    def holds_fractions(self, name: str) -> bool:
        """Whether a column holds numbers that are not whole, by its type or its first rows."""
        refuse_unknown([name], [*self.columns], self.name)
        column = self.columns[name]
        if column.kind != "number":
            return False
        broken = "bool_or(v0 <> floor(v0)) OR typeof(any_value(v1)) IN ('DOUBLE', 'FLOAT')"
        return bool(self.figures([broken], [column.number, column.raw], HEAD_ROWS)[0])

    def place_of(self, condition: str) -> str:
        """The first row that meets a condition, as "line 7 of people.csv"; "" if it is unknown."""
        file = _FILE if self.files else "NULL"
        found = self._rows(
            f"SELECT {file}, min({ROW}) FILTER ({condition}) - min({ROW}) + 1 FROM "
            f"(SELECT row_number() OVER () AS {ROW}, * FROM {self._source()}) "
            f"GROUP BY {file} HAVING bool_or({condition}) ORDER BY min({ROW})"
        )
        names = {str(file.path): file.name for file in self.files}
        unit, first = ("line", self._reading.header) if self._csv else ("row", 0)
        for path, row in found:
            return f"{unit} {row + first} of {names.get(path, self.name)}"
        return ""

    def odd_value(self, name: str, value: str) -> TableError:
        """The error for a text among numbers."""
        value = value.strip()
        place = self.place_of(f"trim({self.columns[name].raw}) = {quoted(value)}") or self.name
        fact = f"{place} has {value!r} in column {name!r}, which otherwise holds numbers"
        advice = (
            "correct the value (or leave out the line, if it holds names), say that it stands for "
            f"a missing one, missing_values=[{value!r}], or leave the column out, drop=[{name!r}]"
        )
        point = "," if re.fullmatch(r"\d{1,3}(\.\d{3}){2,}", value) else ""
        if self.columns[name].declared and re.fullmatch(_numeral("."), value):
            point = "."  # passed by the user, it makes us look for thousands everywhere
        advice += f"; with decimal={point!r} it is read as a number" if point else ""
        problem = "decimal" if point else "odd_value"
        return TableError(problem, fact, advice, column=name, value=value)

    def close(self) -> None:
        """Close the connection and remove temporary files."""
        self._connection.close()
        self._cleanup()

    def _source(self, values: Sequence[str] = ()) -> str:
        """SQL: the rows; text files have columns c0, c1, ..., and as numbers n0, n1, ..."""
        if not self._csv:
            return self._from
        columns = [column for column in self.columns.values() if column.careful]
        as_written = not values or any(column.raw in values for column in columns)  # NA stays NA
        types, numbers = {}, []
        for column in columns:
            as_text = as_written or column.number not in values or column.label in values
            fast = column.declared and not as_text
            types[column.raw] = "DOUBLE" if fast else "VARCHAR"
            number = self._unless_missing(column.raw if fast else column.careful)
            numbers.append(f"{number} AS {column.number}")
        nulls = _texts([""] if as_written else sorted(self._nulls))
        parts = []
        for call, names in self._csv:
            own = ", ".join(f"'{name}': '{types.get(name, 'VARCHAR')}'" for name in names)
            call = f"{call}, nullstr={nulls}, columns={{{own}}})"
            parts.append(f"SELECT {', '.join(types)}, {_FILE} FROM {call}")
        return f"(SELECT *, {', '.join(numbers)} FROM ({' UNION ALL '.join(parts)}))"

    def _select(self, values: Sequence[str], limit: int | None = None) -> str:
        listed = ", ".join(f"{sql} AS v{j}" for j, sql in enumerate(values)) or "1 AS v0"
        some = "" if limit is None else f" LIMIT {limit}"
        return f"SELECT {listed} FROM {self._source(values)}{some}"

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

    def _define(self, source: str, names: Sequence[str] = (), index: Sequence[Any] = ()) -> None:
        """Set the source and its columns; DuckDB renames columns that differ only in case."""
        self._from = source
        described = self._rows(f"DESCRIBE SELECT * FROM {source}")
        types = {row[0]: row[1] for row in described}
        for name, (column, kind) in zip(names or types, types.items(), strict=False):
            sql = '"' + column.replace('"', '""') + '"'
            keeps = kind == "VARCHAR" or (_kind(kind) == "number" and "DECIMAL" not in kind)
            label = sql if keeps else f"CAST({sql} AS VARCHAR)"
            number = self._unless_missing(f"CAST({sql} AS DOUBLE)")
            usual = name not in index and not name.startswith("__index_level_")
            self.columns[name] = Column(name, _kind(kind), sql, number, label, usual)

    def _add_path_column(self, key: str) -> None:
        """Add a column from the names of folders; it holds integers if all values are integers."""
        pattern = rf".*[/\\]{re.escape(key)}=([^/\\]*)[/\\]"
        text = f"url_decode(regexp_extract({_FILE}, {quoted(pattern)}, 1))"
        sql = f"nullif({text}, '__HIVE_DEFAULT_PARTITION__')"  # as Hive and its kin write null
        values = {file.partition.get(key, "") for file in self.files}
        values.discard("__HIVE_DEFAULT_PARTITION__")
        whole = all(re.fullmatch(r"0|-?[1-9]\d{0,17}", value) for value in values)
        sql = f"CAST({sql} AS BIGINT)" if whole else sql
        number = f"CAST({sql} AS DOUBLE)"
        self.columns[key] = Column(key, "number" if whole else "text", sql, number, sql, False)

    def _unless_missing(self, number: str) -> str:
        """SQL for a number; null if it equals a value that stands for a missing one."""
        for value in filter(files.is_number, self._missing):
            number = f"nullif({number}, {float(value)!r})"
        return number

    def _explained(self, error: Exception) -> TableError:
        """What an error of the engine means for the user."""
        said = str(error)
        if isinstance(error, TableError):
            return error
        mine = next((file.name for file in self.files if str(file.path) in said), self.name)
        line = re.search(r"CSV Error on Line: (\d+)", said)
        place = f"line {line[1]} of {mine}" if line else mine
        for pattern in _NO_NUMBER if self.files else ():
            if found := re.search(pattern, said, re.S):
                sql = found["column"], f'"{found["column"]}"'
                names = [
                    name for name, c in self.columns.items() if c.raw.replace('""', '"') in sql
                ]
                return self.odd_value(names[0], found["value"])
        if found := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", said):
            where = "the line of column names has" if self._reading.header else "others have"
            n = f"more than {found[1]}" if int(found[2]) > int(found[1]) else found[2]
            fact = f"{place} has {n} values where {where} {found[1]}"
            title = "leave out the line above if it is a title, " if found[1] == "1" else ""
            advice = f"{title}correct that line, or restore the file if it was cut off there"
            return TableError("ragged", fact, advice)
        if "unterminated quote" in said:
            fact = f"the quotes opened in {place} are never closed"
            return TableError("quote", fact, "close them, or restore the file if it was cut off")
        if "not utf-8 encoded" in said or "Invalid unicode" in said:
            return files.undecodable(mine, "utf-8", int(line[1]) if line else 1)
        if "requires the extension" in said or "install" in said.lower():
            fact = f"{mine} reads from the network or needs an extension ({said.splitlines()[0]})"
            return TableError("query", fact, "download the data first; no extensions are loaded")
        if "Out of Memory" in said:
            fact = f"reading {mine} needs more memory than is allowed ({said.splitlines()[0]})"
            return TableError("too_large", fact, "name fewer columns, features=[...]")
        if not self.files:
            return TableError("query", said.strip().rstrip("."), "correct the query")
        return damaged(mine, said.split("\n")[0])


def _connect(database: str, folder: str) -> Any:
    """A connection that neither writes files nor loads extensions."""
    config: dict[str, Any] = {
        "memory_limit": "300MB",
        "threads": blas_threads(),
        "temp_directory": folder,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    try:
        connection = duckdb.connect(database, read_only=database != ":memory:", config=config)
    except duckdb.Error as error:
        raise damaged(database, str(error).split("\n")[0]) from error
    # Names in a query are never Python variables. The statistics of Parquet files ignore NaN, so
    # DuckDB must not rely on them.
    connection.execute(
        "SET python_enable_replacements=false; SET disabled_optimizers='statistics_propagation'; "
        "SET enable_progress_bar=true; SET enable_progress_bar_print=false"
    )
    return connection


def _define_query(table: Table, query: str | None) -> None:
    """Define a table by one SELECT statement, on a database or on files."""
    if query is None:
        known = [row[0] for row in table._rows("SHOW TABLES")]
        fact = f"{table.name} is a database with the tables {files.first_names(known)}"
        advice = f"pass query='SELECT * FROM {(known or ['people'])[0]}'"
        raise TableError("query", fact, advice)
    try:
        statements = table._connection.extract_statements(query)
    except duckdb.Error as error:
        raise table._explained(error) from error
    kinds = [str(statement.type).rpartition(".")[2] for statement in statements]
    if kinds != ["SELECT"]:
        fact = f"a table is one SELECT statement, and this is {' and '.join(kinds) or 'none'}"
        raise TableError("query", fact, "pass one that only reads")
    joins = re.search(r"\b(join|group\s+by|distinct|union|intersect|except)\b", query, re.I)
    table.unordered = bool(joins) and re.search(r"\border\s+by\b", query, re.I) is None
    table._define(f"({query.strip().rstrip(';')}\n)")


def _define_arrow(table: Table) -> None:
    """Define a table by Parquet or Arrow files, whose types of columns may differ."""
    schemas = files.schemas_of(table.files)
    first, names = schemas[0], schemas[0].names
    index = (first.pandas_metadata or {}).get("index_columns", ())
    if table.files[0].format == "parquet":
        # DuckDB would take the types of the first file for all, and round fractions.
        differ = any(s.field(f.name).type != f.type for s in schemas[1:] for f in first)
        source = (
            f"read_parquet({_texts(str(file.path) for file in table.files)}, "
            f"union_by_name={str(differ).lower()}, hive_partitioning=false, filename='{_FILE}')"
        )
        table._define(source, names, index)
        for f in first:  # a column of numbers may be text in another file
            if pa.types.is_integer(f.type) or pa.types.is_floating(f.type):
                table.columns[f.name] = replace(table.columns[f.name], kind="number")
        return
    common = first
    for file, schema in zip(table.files, schemas, strict=True):
        try:
            own = pa.schema([schema.field(name) for name in names])
            common = pa.unify_schemas([common, own], promote_options="permissive")
        except pa.ArrowException as error:  # text is not turned into numbers
            fact = f"{file.name} has other types than the files before it ({error})"
            raise TableError("types", fact, "write all files with the same types") from error
    whole, read = common.append(pa.field(_FILE, pa.string())), files.arrow_batches
    table._arrow = lambda: pa.RecordBatchReader.from_batches(whole, read(table.files, whole))
    table._define("arrow_rows", names, index)


def _define_text(table: Table) -> None:
    reading, folder = table._reading, table._folder
    if table.files[0].format == "excel":
        table.files = [files.sheet_as_text(file, reading.sheet, folder) for file in table.files]
        reading = table._reading = replace(reading, encoding=None, decimal=".")
    table.files = [files.as_utf8(file, reading.encoding, folder) for file in table.files]
    dialects = [files.dialect_of(file, reading.header) for file in table.files]
    names = [*dict.fromkeys(dialects[0][1])]  # several columns may have no name
    for (delimiter, own), pairs in groupby(
        zip(table.files, dialects, strict=True), key=lambda pair: pair[1][:2]
    ):
        alike = [*pairs]
        refuse_unknown(names, own, alike[0][0].name)
        longest = max(_LINE_BYTES, 8 * max(dialect[2] for _, dialect in alike))
        call = (
            f"read_csv({_texts(str(file.path) for file, _ in alike)}, auto_detect=false, "
            f"header={str(reading.header).lower()}, delim={quoted(delimiter)}, quote='\"', "
            f"escape='\"', comment='', skip=0, strict_mode=true, max_line_size={longest}, "
            f"hive_partitioning=false, filename='{_FILE}'"
        )
        sql_names = {name: f"c{j}" for j, name in enumerate(names)}  # each goes to one column
        table._csv.append((call, [sql_names.pop(n, f"other{i}") for i, n in enumerate(own)]))
    for j, name in enumerate(names):
        table.columns[name] = Column(name, "text", f"c{j}", f"n{j}", f"c{j}", careful="NULL")
    head = _head_of(table)
    decimal = reading.decimal or _told_decimal(table.name, head)
    table.columns = {name: _text_column(table, j, name, head[name], decimal)
                     for j, name in enumerate(names)}  # fmt: skip


def _head_of(table: Table) -> dict[str, Any]:
    """The first rows of each column as text; missing values are null."""
    rows = min(HEAD_ROWS, max(1000, _HEAD_ENTRIES // len(table.columns)))
    raw, none = [column.raw for column in table.columns.values()], pa.scalar(None, pa.string())
    schema = pa.schema([(f"v{j}", pa.string()) for j in range(len(raw))])
    first, head = pa.Table.from_batches(table.batches(raw, limit=rows), schema), {}
    usual, own = pa.array(_MISSING), pa.array(table._missing, pa.string())
    for name, texts in zip(table.columns, first.columns, strict=True):
        trimmed = pc.utf8_trim_whitespace(texts)
        missing = pc.is_in(trimmed, value_set=usual)
        table._nulls.update(pc.unique(texts.filter(missing).drop_null()).to_pylist())
        missing = pc.or_(missing, pc.is_in(trimmed, value_set=own))
        head[name] = pc.if_else(missing, none, trimmed)
    return head


def _told_decimal(where: str, head: Mapping[str, Any]) -> str:
    """The decimal mark that the first rows imply; refuses to guess if they allow both."""
    marked = {n: c for n, c in head.items() if pc.any(pc.match_substring(c, ",")).as_py()}
    commas, points = (
        {name for name, column in marked.items() if _share(column, _numeral(decimal)) == 1}
        for decimal in (",", ".")
    )
    if not commas or points - commas:
        return "."
    if commas - points:
        return ","
    asked = min(commas)
    value = next(text for text in head[asked].to_pylist() if text and "," in text)
    fact = f"{value!r} in column {asked!r} of {where} may be a fraction or thousands"
    raise TableError("decimal", fact, "say which with decimal=',' or decimal='.'")


def _text_column(table: Table, j: int, name: str, head: Any, decimal: str) -> Column:
    """Tell from the first rows whether a column of text holds numbers."""
    raw, pattern, odd, mixed = f"c{j}", _numeral(decimal), "", False
    kind: Kind = "number"
    cleaned = f"replace({raw}, ',', '')"
    if decimal == ",":
        cleaned = f"replace(replace({raw}, '.', ''), ',', '.')"
    number = f"WHEN {_matches(raw, pattern)} THEN TRY_CAST({cleaned} AS DOUBLE)"
    told = table._reading.decimal or not all(map(files.is_number, table._missing))
    declared = decimal == "." and not told and _is_plain(head)
    if head.null_count == len(head):
        kind = "empty"
    elif not declared and _share(head, "(?i)true|false") == 1:
        flags = (("(?i)true", 1.0), ("(?i)false", 0.0))
        number = " ".join(f"WHEN {_matches(raw, text)} THEN {flag}" for text, flag in flags)
    elif _share(head, _DATE) == 1:
        kind = "date"
    elif not declared and (share := _share(head, pattern)) < 1:
        numeral = pc.match_substring_regex(head, f"^({pattern})$")
        kind, odd, mixed = "text", head[pc.index(numeral, False).as_py()].as_py(), share >= _MOSTLY
    usual, own = ("|".join(map(re.escape, texts)) for texts in (_MISSING, table._missing))
    missing = f"{raw} IS NULL OR {_matches(raw, f'{usual}|{own}')}"
    refused = f"""error('column "{raw}". Could not convert string "' || {raw} || '" to a number')"""
    careful = f"coalesce(CASE {number} END, CASE WHEN {missing} THEN NULL ELSE {refused} END)"
    label = f"CASE WHEN {_matches(raw, usual)} THEN NULL ELSE {raw} END"
    return Column(name, kind, raw, f"n{j}", label, bool(name), odd, mixed, declared, careful)


def _matches(raw: str, pattern: str) -> str:
    """SQL: whether a text, without blanks around it, matches a pattern."""
    # DuckDB would turn a list of texts into a join, with megabytes for every column.
    padded = rf"\s*({pattern})\s*"
    return f"regexp_full_match({raw}, {quoted(padded)})"


def _is_plain(column: Any) -> bool:
    """Whether all texts are numbers as programs write them; true if there are none."""
    try:
        column.cast("float64")
    except pa.ArrowInvalid:
        return False
    return True


def _numeral(decimal: str) -> str:
    """The pattern of a number with this decimal point, and maybe the other mark for thousands."""
    point, mark = (r"\.", ",") if decimal == "." else (",", r"\.")
    whole = rf"([1-9]\d{{0,2}}({mark}\d{{3}})+|\d+)"
    return rf"[-+]?({whole}({point}\d*)?|{point}\d+)([eE][-+]?\d+)?|[-+]?([iI]nf(inity)?|INF)"


def _share(column: Any, pattern: str) -> float:
    """Which share of the known texts matches a pattern."""
    return float(pc.mean(pc.match_substring_regex(column, f"^({pattern})$")).as_py() or 0.0)


def quoted(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def _texts(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(quoted, texts))}]"


def _kind(kind: str) -> Kind:
    """What a column of a DuckDB type holds."""
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION", "BLOB", "BIT")):
        return "other"
    if kind == '"NULL"':
        return "empty"
    if kind.startswith(("DATE", "TIME", "INTERVAL")):
        return "date"
    number = "INT" in kind or kind.startswith(("DECIMAL", "DOUBLE", "FLOAT", "BOOLEAN"))
    return "number" if number else "text"


def _identity(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
