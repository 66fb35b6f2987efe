"""Tables in files, folders, databases and queries, read by DuckDB.

Labels in text files stay as they are written: 01 and 1 are two groups. A column whose first rows
hold plain numbers is cast as it is, which is fast; a later value in another notation is an error.
Other columns of numbers go through the macro ``fairpca_number``, which knows marks of thousands.

A query finds views of ours under the names of files, and so reads them as their paths are read:
DuckDB would guess types by the first rows, and round or drop what does not fit. It can open no file
that it does not name, so that none of its inputs is written over.
"""

from __future__ import annotations

import glob
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from weakref import finalize

import numpy as np

from fairpca._blas import blas_threads
from fairpca._tables import files
from fairpca._tables.files import TableFile, damaged, duckdb, pa, refuse_twin_names, refuse_unknown
from fairpca.exceptions import TableError

Kind = Literal["number", "text", "date", "empty", "other"]

HEAD_ROWS, _HEAD_ENTRIES = 20_000, 1 << 21  # first rows, which tell what a column holds
_BATCH_ROWS, _BATCH_ENTRIES = 1 << 14, 1 << 21  # most rows and entries in a record batch
_MEMORY = 300  # MB that DuckDB may use, unless there are many columns
_MOSTLY = 0.75  # A column with this share of numbers is meant to hold numbers.
_FREQUENT = ("", "N/A", "NA", "NULL", "null")  # looked for in all rows, which takes time
_MISSING = (
    *_FREQUENT, "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
    "1.#QNAN", "<NA>", "NaN", "n/a", "nan",
)  # fmt: skip
_DATE = r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d.*)?"
#: A number with a decimal point, and maybe commas between thousands.
_NUMERAL = (
    r"[-+]?(([1-9]\d?\d?(,\d{3})+|\d+)(\.\d*)?|\.\d+)([eE][-+]?\d+)?|[-+]?([iI]nf(inity)?|INF)"
)
#: Whole numbers whose digits a query keeps, and texts whose zeros it keeps.
_WHOLE, _ZEROS = r"-?(0|[1-9]\d{0,17})", r"-?0\d+"
_COMMA_NUMERAL = _NUMERAL.replace(",", "\0").replace(r"\.", ",").replace("\0", r"\.")
_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))
_FILE = "fairpca_file"  # the column with the path of a row's file
_CONVERSION = "Conversion Error"  # how the message begins, whatever the class
_ERRORS = (duckdb.Error, pa.ArrowException, OSError)


@dataclass(frozen=True)
class Column:
    """A column of a table, and the SQL that reads it."""

    name: str
    kind: Kind
    raw: str  # as it is stored
    number: str  # as DOUBLE
    label: str
    typed: str  # as a query finds it; "" if all rows must tell
    usual: bool = True  # False for an index or a part of the path: no feature unless it is named
    plain: bool = False  # whether DuckDB can cast its texts to DOUBLE
    odd: bool = False  # whether a text in its first rows is no number
    mixed: bool = False  # whether most of them are, however


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
    """Whether a text is a query and not a path; comments and brackets may come first."""
    start = r"(?is)(\s|\(|--[^\n]*\n|/\*.*?\*/)*(select\*|(select|with|from)\s)"
    return isinstance(text, str) and bool(re.match(start, text)) and not os.path.exists(text)


def input_paths(data: Any) -> list[str]:
    """The files and folders that are read, as absolute paths; of a query those that it names."""
    if isinstance(data, Mapping):
        return []
    given = ["".join(names) for names in _files_in(data)] if is_query(data) else files.list_of(data)
    found = {path for name in map(str, given) for path in (name, *glob.glob(name, recursive=True))}
    return [path if path == "-" else os.path.abspath(path) for path in sorted(found)]


def open_table(data: Any, **options: Any) -> Table:
    """Open a table, or a mapping of names to arrays; the options are fields of Reading."""
    if isinstance(data, Table):
        return data
    reading = Reading(**options)
    if isinstance(data, Mapping):
        table = Table("the data", reading)
        path = Path(table._folder, "data.parquet")
        files.pq.write_table(pa.table(dict(data)), path)
        table.files = [TableFile(path, "the data", "parquet")]
        _define_parquet(table)
    elif is_query(data):
        table = Table("the query", reading, input_paths(data))
        _define_query(table, data, _files_in(data))
    else:
        table = _file_table(data, reading)
    table._connection.execute("SET lock_configuration=true")  # no query can change it
    return table


def _file_table(data: Any, reading: Reading, query: Table | None = None) -> Table:
    """A database, or a table of files, which may be part of a query."""
    data = files.list_of(data)
    found = files.find_files(data)
    first, *others = [file.name for file in found]
    kind = found[0].format
    if kind == "database":
        table = Table(first, reading, [found[0].path], str(found[0].path))
        _define_query(table, reading.query, [])
        return table
    for option, (fits, *kinds) in {
        "query": ["a DuckDB database"],
        "sheet": ["a spreadsheet", "excel"],
        "encoding": ["text", "csv", "tsv"],
        "header": ["text or a spreadsheet", "csv", "tsv", "excel"],
    }.items():
        if getattr(reading, option) != getattr(Reading, option) and kind not in kinds:
            fact = f"{option}= is for {fits}, and {first} is none"
            raise TableError(option, fact, "leave it out")
    more = f" and {others[0] if len(others) == 1 else f'{len(others)} more'}" if others else ""
    for file in found:
        if file.partition.keys() != found[0].partition.keys():
            fact = f"the folders of {file.name} do not name the same columns as those of {first}"
            raise TableError("columns", fact, "move it, or pass only files that belong together")
    table = Table(first + more, reading, input_paths(data), query=query)
    table.files = found
    (_define_parquet if kind in ("parquet", "arrow") else _define_text)(table)
    keys = {
        part.partition("=")[0] for file in found for part in file.path.parts[:-1] if "=" in part
    }
    if found[0].partition:  # DuckDB reads the whole path
        refuse_twin_names(table.name, [*table.columns, *keys], "rename the column, or the folder")
    for key in found[0].partition:
        numbers = all(files.is_number(file.partition.get(key, "")) for file in found)
        sql = _identifier(key)
        column = Column(key, "text", sql, f"CAST({sql} AS DOUBLE)", sql, sql, usual=False)
        table.columns[key] = replace(column, kind="number") if numbers else column
    return table


class Table:
    """Rows and named columns, wherever they are; see :func:`open_table`."""

    def __init__(
        self,
        name: str,
        reading: Reading,
        inputs: Sequence[Any] = (),
        database: str = ":memory:",
        query: Table | None = None,
    ) -> None:
        self.name, self._reading = name, reading  # the name is for messages
        given = reading.missing_values
        #: Texts that stand for a missing number, besides the usual ones.
        self.missing = [str(v) for v in ([given] if np.isscalar(given) else given)]
        self._codes = [float(value) for value in self.missing if files.is_number(value)]
        self._decimal = reading.decimal or "."
        self.inputs = list(inputs)  # files and folders that must not be written to
        self.files: Sequence[TableFile] = ()
        self.n_rows = 0  # of Parquet files, which tell it
        self.unordered = False  # whether rows may come in another order next time
        self.columns: dict[str, Column] = {}
        self._from = ""  # SQL: what follows FROM, or the beginning of a call of read_csv
        self._text_columns: Sequence[str] = ()  # SQL: all columns of text files
        self._nulls = set(_FREQUENT)  # texts for missing values, with others of the first rows
        self._parts: list[Table] = []  # the files that a query names
        self._folder: str = tempfile.mkdtemp(prefix="fairpca-") if query is None else query._folder
        shared = None if query is None else query._connection
        self._connection: Any = shared or _connect(database, self._folder)
        if query is not None:
            return
        self._cleanup = finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        for macro in _macros(self.missing) if database == ":memory:" else ():
            self._connection.execute(f"CREATE MACRO {macro}")

    def batches(
        self,
        numbers: Sequence[str] = (),
        labels: Sequence[str] = (),
        kept: Sequence[str] = (),
        limit: int | None = None,
        progress: Callable[[float], object] | None = None,
    ) -> Iterator[Any]:
        """Record batches of the columns of these names, in the order of the rows.

        Columns that are kept are as they are stored, unless they are among the numbers.
        """
        as_text = bool(kept)  # a column that is kept must not lose texts such as NA
        plain = [name for name in numbers if self.columns[name].plain and name not in labels]
        fast = [] if as_text else [self.columns[name].raw for name in plain]  # read as DOUBLE
        uses = [self._number(name, as_text, fast) for name in numbers]
        uses += [self.columns[name].label for name in labels]
        uses += [
            self._number(name, as_text) if name in numbers else self.columns[name].raw
            for name in kept
        ]
        listed = ", ".join(f"{sql} AS v{j}" for j, sql in enumerate(uses))
        some = "" if limit is None else f" LIMIT {limit}"
        n_rows, last, show = 0, 0.0, progress or (lambda fraction: None)
        most = max(1024, _BATCH_ENTRIES // len(uses))
        # Cursors allow other queries meanwhile, but they cannot tell how far they are.
        cursor = self._connection if progress else self._connection.cursor()
        before = [_identity(file.path) for file in self.files]
        try:
            rows = cursor.sql(f"SELECT {listed} FROM {self._source(as_text, fast)}{some}")
            for batch in rows.to_arrow_reader(min(_BATCH_ROWS, most)):
                yield batch
                n_rows += batch.num_rows
                done = n_rows / self.n_rows if self.n_rows else cursor.query_progress() / 100
                last = max(last, min(1.0, done))
                show(last)
        except _ERRORS as error:
            odd = self.odd_value(numbers, as_text) if _CONVERSION in str(error) else None
            raise odd or self._explained(error) from error
        for file, identity in zip(self.files, before, strict=True):
            if _identity(file.path) != identity:
                fact = f"{file.name} was changed while it was being read"
                raise TableError("changed", fact, "read it again when it is complete")
        show(1.0)

    def _number(self, name: str, as_text: bool, fast: Sequence[str] = ()) -> str:
        """SQL: a column as DOUBLE, without codes for missing values."""
        column = self.columns[name]
        sql = self._parsed(column.raw) if as_text and column.plain else column.number
        sql = column.raw if column.raw in fast else sql
        for code in self._codes:
            sql = f"nullif({sql}, {code!r}::DOUBLE)"
        return sql

    def _parsed(self, text: str) -> str:
        """SQL: a text as DOUBLE, whatever the notation."""
        return f"fairpca_number({text}, {self._with_points(text)})"

    def _with_points(self, text: str) -> str:
        """SQL: a text with a decimal point."""
        return f"translate({text}, ',.', '.,')" if self._decimal == "," else text

    def types_of(self, names: Sequence[str]) -> list[Any]:
        """The Arrow types of columns, as they are stored."""
        listed = ", ".join(self.columns[name].raw for name in names) or "1"
        empty = self._connection.cursor().sql(f"SELECT {listed} FROM {self._source()} LIMIT 0")
        return list(empty.to_arrow_table().schema.types)[: len(names)]

    def holds_fractions(self, name: str) -> bool:
        """Whether a column holds numbers that are not whole, by its type or its first rows."""
        refuse_unknown([name], [*self.columns], self.name)
        if self.columns[name].kind != "number":
            return False
        found = self._rows(
            f"SELECT bool_or(x <> floor(x)) FROM (SELECT {self._number(name, True)} AS x "
            f"FROM {self._source()} LIMIT {HEAD_ROWS})"
        )
        return bool(found[0][0]) or pa.types.is_floating(self.types_of([name])[0])

    def place_of(self, row: int) -> str:
        """The place of a row, counted from 1, as "line 7 of people.csv"."""
        paths = _FILE if self.files else "NULL"
        found = self._rows(
            f"SELECT file, {row} - min(n) + 1 FROM (SELECT {paths} AS file, "
            f"row_number() OVER () AS n FROM {self._source()}) "
            f"GROUP BY file HAVING {row} BETWEEN min(n) AND max(n)"
        )
        path, n = found[0]
        file = next((file for file in self.files if str(file.path) == path), None)
        place = file.name if file else self.name
        if file is None or not self._text_columns:
            return f"row {n} of {place}"
        return f"line {files.line_of(file, n - 1 + self._reading.header)} of {place}"

    def odd_value(self, names: Sequence[str], as_text: bool = False) -> TableError | None:
        """The error for the first text among the numbers of these columns, if there is one."""
        odd = ", ".join(f"TRY(coalesce({self._number(n, as_text)}, 0)) IS NULL" for n in names)
        texts = ", ".join(f"CAST({self.columns[name].raw} AS VARCHAR)" for name in names)
        found = self._rows(
            "SELECT n, j, text FROM (SELECT row_number() OVER () AS n, "
            f"list_position([{odd}], true) AS j, [{texts}][j] AS text "
            f"FROM {self._source(as_text)}) WHERE j > 0 LIMIT 1"
        )
        if not found:
            return None
        row, j, text = found[0]
        name, value = names[j - 1], text.strip(_BLANKS)
        fact = f"{self.place_of(row)} has {value!r} in column {name!r}"
        advice = (
            "correct the value (or leave out the line, if it holds names), say that it stands for "
            f"a missing one, missing_values=[{value!r}], or leave the column out, drop=[{name!r}]"
        )
        point = "," if re.fullmatch(r"\d{1,3}(\.\d{3}){2,}", value) else ""
        numeral = _COMMA_NUMERAL if self._decimal == "," else _NUMERAL
        if self.columns[name].plain and re.fullmatch(numeral, value):
            point = self._decimal  # passed by the user, it makes us look for thousands everywhere
        advice += f"; with decimal={point!r} it is read as a number" if point else ""
        problem = "decimal" if point else "odd_value"
        column = self.columns[name]
        numeric = column.kind == "number" or column.mixed
        fact += ", which otherwise holds numbers" if numeric else ", which is no number"
        return TableError(problem, fact, advice, column=name, value=value)

    def close(self) -> None:
        """Close the connection and remove temporary files."""
        self._connection.close()
        self._cleanup()

    def _source(self, as_text: bool = True, fast: Sequence[str] = ()) -> str:
        """SQL: the rows; of text files as text, without the usual texts for missing values."""
        if not self._text_columns:
            return self._from
        doubles, nulls = set(fast), [""] if as_text else sorted(self._nulls)
        types = [f"{c}: '{'DOUBLE' if c in doubles else 'VARCHAR'}'" for c in self._text_columns]
        how = f"decimal_separator={quoted(self._decimal)}, nullstr={_texts(nulls)}"
        return f"{self._from}, {how}, columns={{{', '.join(types)}}})"

    def _allow_memory(self, n_columns: int) -> None:
        """Allow more memory if there are many columns: a vector of each must fit."""
        self._connection.execute(f"SET memory_limit='{max(_MEMORY, 2 * n_columns)}MB'")

    def _define_view(self, schema: str, name: str) -> None:
        """Let a query find these files under a name, with types that lose nothing."""
        view = _identifier(name)
        if schema:
            view = f"{_identifier(schema[:-1])}.{view}"
            self._rows(f"CREATE SCHEMA IF NOT EXISTS {_identifier(schema[:-1])}")
        sql = {name: column.typed for name, column in self.columns.items() if name}
        unknown = [self.columns[name] for name, typed in sql.items() if not typed]
        kinds = [
            f"bool_{way}(regexp_full_match(fairpca_known({column.raw}), {quoted(pattern)}))"
            for way, pattern in (("and", _WHOLE), ("or", _ZEROS))
            for column in unknown
        ]
        found = self._rows(f"SELECT {', '.join(kinds)} FROM {self._source()}")[0] if kinds else ()
        for column, whole, zeros in zip(unknown, found, found[len(unknown) :], strict=False):
            exact = f"CAST(fairpca_known({column.raw}) AS BIGINT)" if whole else column.number
            sql[column.name] = column.label if zeros else exact
        listed = ", ".join(f"{value} AS {_identifier(name)}" for name, value in sql.items())
        source = self._source(as_text=False)
        self._rows(f"CREATE VIEW {view} AS SELECT {listed} FROM {source}")

    def _rows(self, sql: str, as_dicts: bool = False) -> list[Any]:
        try:
            found = self._connection.cursor().sql(sql)
            return list(found.to_arrow_table().to_pylist() if as_dicts else found.fetchall())
        except _ERRORS as error:
            raise self._explained(error) from error

    def _define(self, source: str, names: Sequence[str] = (), index: Sequence[Any] = ()) -> None:
        """Set the source and its columns; DuckDB renames columns that differ only in case."""
        self._from = source
        described = self._rows(f"DESCRIBE SELECT * FROM {source}")
        types = {row[0]: row[1] for row in described}
        self._allow_memory(len(types))
        for name, (column, kind) in zip(names or types, types.items(), strict=False):
            sql, is_number = _identifier(column), _kind(kind) == "number"
            number = f"CAST({sql} AS DOUBLE)" if is_number else self._parsed(sql)
            keeps = kind == "VARCHAR" or (is_number and "DECIMAL" not in kind)
            label = sql if keeps else f"CAST({sql} AS VARCHAR)"
            usual = name not in index and not name.startswith("__index_level_")
            self.columns[name] = Column(name, _kind(kind), sql, number, label, sql, usual)

    def _explained(self, error: Exception) -> TableError:
        """Translate an error of DuckDB or Arrow into one that names the file and the way out."""
        said = str(error)
        for part in self._parts:
            numbers = [c.name for c in part.columns.values() if c.kind == "number" or c.mixed]
            if _CONVERSION in said and (odd := part.odd_value(numbers)):
                return odd
            if any(str(file.path) in said for file in part.files):
                return part._explained(error)
        mine = next((file.name for file in self.files if str(file.path) in said), self.name)
        line = re.search(r"CSV Error on Line: (\d+)", said)
        place = f"line {line[1]} of {mine}" if line else mine
        if found := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", said):
            n = f"more than {found[1]}" if int(found[2]) > int(found[1]) else found[2]
            fact = f"{place} has {n} values where the first line has {found[1]}"
            advice = "correct that line, or the first if it is a title, or restore a file cut off"
            return TableError("ragged", fact, advice)
        if "unterminated quote" in said:
            fact = f"the quotes opened in {place} are never closed"
            return TableError("quote", fact, "close them, or restore the file if it was cut off")
        if "state machine" in said:
            fact = f"{mine} ends some lines in another way than the first ones"
            return TableError("line_ends", fact, "save it with line ends of one kind")
        if "not utf-8 encoded" in said or "Invalid unicode" in said:
            return files.undecodable(mine, "utf-8", int(line[1]) if line else 1)
        if "Permission Error" in said:
            fact = f"{mine} opens a file that it does not name ({said.splitlines()[0]})"
            advice = (
                "name files in quotes, FROM 'people/*.csv', without a database; download others"
            )
            return TableError("query", fact, advice)
        if "Out of Memory" in said:
            fact = f"reading {mine} needs more memory than is allowed ({said.splitlines()[0]})"
            return TableError("too_large", fact, "name fewer columns, features=[...]")
        for file in self.files:  # DuckDB does not name a file with a bad page
            if file.format == "parquet" and (problem := files.bad_page(file)):
                return damaged(file.name, problem)
        if not self.files:  # a query or a database
            said = said.partition("\n\nLINE")[0].strip()  # what follows is SQL of ours
            return TableError("query", said.rstrip("."), "correct the query")
        return damaged(mine, said.split("\n")[0])


def _connect(database: str, folder: str) -> Any:
    """A connection that neither writes files nor loads extensions."""
    config: dict[str, Any] = {
        "memory_limit": f"{_MEMORY}MB",
        "threads": blas_threads(),
        "temp_directory": folder,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    try:
        connection = duckdb.connect(database, read_only=database != ":memory:", config=config)
    except duckdb.Error as error:
        fact = f"{database} cannot be opened ({str(error).splitlines()[0]})"
        advice = "close other programs that use it, restore it if it is damaged, or export its "
        advice += "tables if another program than DuckDB wrote it"
        raise TableError("damaged", fact, advice) from error
    # Names in a query are never Python variables. The statistics of Parquet files ignore NaN, so
    # DuckDB must not rely on them. Nor must it load whole row groups, which may exceed the limit.
    connection.execute(
        "SET GLOBAL python_enable_replacements=false; SET GLOBAL enable_external_file_cache=false; "
        "SET GLOBAL disabled_optimizers='statistics_propagation'; "
        "SET GLOBAL disable_parquet_prefetching=true; "
        "SET enable_progress_bar=true; SET enable_progress_bar_print=false"
    )
    return connection


def _macros(missing: Sequence[str]) -> Iterator[str]:
    """SQL that makes labels and numbers of texts; what is no number is an error."""
    printed = "BETWEEN '!' AND '~'"  # most texts need not be looked at twice, which takes long
    yield (
        f"fairpca_trim(x) AS CASE WHEN left(x, 1) {printed} AND right(x, 1) {printed} THEN x "
        f"ELSE trim(x, {quoted(_BLANKS)}) END"
    )
    x, y = "fairpca_trim(x)", "fairpca_trim(y)"
    yield f"fairpca_label(x) AS CASE WHEN {x} NOT IN {_texts(_MISSING)} THEN x END"
    yield f"fairpca_known(x) AS CASE WHEN {x} NOT IN {_texts([*_MISSING, *missing])} THEN {x} END"
    yield (
        "fairpca_number(x, y) AS CASE WHEN fairpca_known(x) IS NULL THEN NULL "
        f"WHEN regexp_full_match({y}, {quoted(_NUMERAL)}) "
        f"THEN CAST(replace({y}, ',', '') AS DOUBLE) "
        "ELSE CAST('no number: ' || x AS DOUBLE) END"
    )


def _define_query(table: Table, query: str | None, named: Sequence[tuple[str, str]]) -> None:
    """Define a table by one SELECT statement, on a database or on the named files."""
    if query is None:
        rows = table._rows("SELECT schema, name FROM (SHOW ALL TABLES)") or [("main", "people")]
        known = [[part for part in row if part != "main"] for row in rows]
        names = files.first_names([".".join(parts) for parts in known])
        first = ".".join(map(_identifier, known[0]))
        fact = f"{table.name} is a database with the tables {names}"
        raise TableError("query", fact, f"pass query='SELECT * FROM {first}'")
    nodes = _nodes_of(query)
    functions = {node["function_name"] for node in nodes if "function_name" in node}
    if readers := [name for name in functions if re.match(r"read_|sniff_|query|.*scan", name)]:
        fact = f"{readers[0]} lets DuckDB guess what a file holds"
        raise TableError("query", fact, "name the file itself, SELECT * FROM 'people.csv'")
    kinds = {node["type"] for node in nodes if isinstance(node.get("type"), str)}
    mixes = kinds & {"JOIN", "DISTINCT_MODIFIER", "SET_OPERATION_NODE"}
    mixes |= {"GROUP" for node in nodes if node.get("group_expressions")}
    draws = "random" in functions or any(node.get("sample") for node in nodes)
    modifiers = [modifier["type"] for node in nodes for modifier in node.get("modifiers", ())]
    table.unordered = bool(draws or (mixes and "ORDER_MODIFIER" not in modifiers))
    for schema, name in named:
        part = _file_table(schema + name, table._reading, table)
        part._define_view(schema, name)
        table._parts.append(part)
    allowed = [os.path.abspath(file.path) for part in table._parts for file in part.files]
    table._connection.execute(
        f"SET GLOBAL allowed_paths={_texts(allowed)}; SET GLOBAL enable_external_access=false"
    )
    text = query.encode()  # DuckDB counts bytes
    end = next((at for at, _ in duckdb.tokenize(query) if text[at : at + 1] == b";"), None)
    table._define(f"({text[:end].decode()}\n)")


def _nodes_of(query: str) -> list[dict[str, Any]]:
    """The parts of a query as DuckDB parses it; refuses what is not one SELECT statement."""
    nodes = list[dict[str, Any]]()

    def note(node: dict[str, Any]) -> dict[str, Any]:
        nodes.append(node)
        return node

    with duckdb.connect() as connection:
        found = connection.execute("SELECT json_serialize_sql($1::VARCHAR)", [query]).fetchall()
    tree = json.loads(found[0][0], object_hook=note)
    if len(tree.get("statements", ())) != 1:
        fact = tree.get("error_message") or f"these are {len(tree['statements'])} statements"
        raise TableError("query", f"the query cannot be read: {fact}", "pass one SELECT statement")
    return nodes


def _files_in(query: str) -> list[tuple[str, str]]:
    """The files that a query names; DuckDB takes p.csv without quotes for a schema and a table."""
    tables = [node for node in _nodes_of(query) if node.get("type") == "BASE_TABLE"]
    names = {
        (f"{schema}." if (schema := node["schema_name"]) else "", node["table_name"])
        for node in tables
    }
    return sorted(pair for pair in names if files.is_file_name("".join(pair)))


def _define_parquet(table: Table) -> None:
    """Define a table by Parquet or Arrow files, whose types of columns may differ."""
    folder = table._folder
    table.files = [
        files.as_parquet(file, folder) if file.format == "arrow" else file for file in table.files
    ]
    first, numbers, table.n_rows = files.first_schema(table.files)
    # DuckDB would otherwise take the types of the first file for all, and round fractions.
    several = len(table.files) > 1
    table._define(
        f"read_parquet({_paths_of(table)}, union_by_name={str(several).lower()})",
        first.names,
        (first.pandas_metadata or {}).get("index_columns", ()),
    )
    for name, column in table.columns.items():
        if pa.types.is_duration(first.field(name).type):  # DuckDB reads it as nanoseconds
            table.columns[name] = replace(column, kind="date")
        elif column.kind == "text" and name in numbers:  # in another file
            table.columns[name] = replace(column, kind="number", typed=column.number)


def _define_text(table: Table) -> None:
    reading, folder = table._reading, table._folder
    if table.files[0].format == "excel":
        table.files = [files.sheet_as_text(file, reading.sheet, folder) for file in table.files]
        reading = table._reading = replace(reading, encoding=None, decimal=".")
    table.files = [files.as_utf8(file, reading.encoding, folder) for file in table.files]
    dialects = [files.dialect_of(file, reading.header) for file in table.files]
    delimiter, names = dialects[0]
    for file, dialect in zip(table.files, dialects, strict=True):
        refuse_unknown(names, dialect[1], file.name)
        if dialect != dialects[0]:
            fact = f"{file.name} does not begin with the same line as {table.files[0].name}"
            advice = "write all files alike, or join them in a query: "
            advice += "SELECT x, y FROM 'a.csv' UNION ALL SELECT x, y FROM 'b.csv'"
            raise TableError("columns", fact, advice)
    table._from = (
        f"read_csv({_paths_of(table)}, auto_detect=false, header={str(reading.header).lower()}, "
        f"delim={quoted(delimiter)}, quote='\"', escape='\"', comment='', skip=0, strict_mode=true"
    )
    table._text_columns = [f"c{j}" for j in range(len(names))]
    table._allow_memory(len(names))
    for sql, name in zip(table._text_columns, names, strict=True):
        if name not in table.columns:  # several columns may have no name
            label = f"fairpca_label({sql})"
            table.columns[name] = Column(name, "empty", sql, sql, label, label, usual=bool(name))
    head = _head_of(table)
    table._decimal = reading.decimal or _told_decimal(table.name, head)
    for name, found in head.items():
        table.columns[name] = _judged(table, table.columns[name], found)


def _paths_of(table: Table) -> str:
    """SQL: the files, whose names become a column, and maybe those of their folders."""
    paths = _texts(glob.escape(str(file.path)) for file in table.files)
    has_keys = table.files[0].partition
    hive = f"hive_partitioning={str(bool(has_keys)).lower()}, hive_types_autocast=false"
    return f"{paths}, filename='{_FILE}', {hive}"


def _head_of(table: Table) -> dict[str, dict[str, Any]]:
    """What the texts in the first rows of each column look like; columns of no values are left out.

    ``points`` and ``commas`` are the shares of numbers with these decimal marks.
    """
    columns = {column.raw: column.name for column in table.columns.values()}
    found = table._rows(
        f"""
        SELECT
            name, list(DISTINCT raw) FILTER (WHERE fairpca_label(raw) IS NULL) AS nulls,
            bool_and(regexp_full_match(text, {quoted(_DATE)})) AS dates,
            bool_and(lower(text) IN ('true', 'false')) AS flags,
            avg(CAST(regexp_full_match(text, {quoted(_NUMERAL)}) AS INT)) AS points,
            avg(CAST(regexp_full_match(text, {quoted(_COMMA_NUMERAL)}) AS INT)) AS commas,
            min(text) FILTER (WHERE contains(text, ',')) AS comma,
            min(text) FILTER (WHERE contains(text, '.')) AS point
        FROM (
            SELECT name, raw, fairpca_known(raw) AS text FROM (UNPIVOT (
                SELECT {", ".join(columns)} FROM {table._source()} LIMIT {head_rows(len(columns))}
            ) ON COLUMNS(*) INTO NAME name VALUE raw)
        ) GROUP BY name
        """,
        as_dicts=True,
    )
    for row in found:
        table._nulls.update(row["nulls"] or ())
    head = {columns[row["name"]]: row for row in found if row["points"] is not None}
    return {name: head[name] for name in table.columns if name in head}


def head_rows(n_columns: int) -> int:
    """How many first rows tell what a column holds; fewer if there are many columns."""
    return min(HEAD_ROWS, max(1000, _HEAD_ENTRIES // n_columns))


def _told_decimal(where: str, head: Mapping[str, dict[str, Any]]) -> str:
    """The decimal mark that the first rows imply; refuses to guess if they allow both."""
    commas, points = (
        {name for name, found in head.items() if found["comma"] and found[share] == 1}
        for share in ("commas", "points")
    )
    if not commas or points - commas:
        return "."
    dotted = {name for name, found in head.items() if found["point"]}
    plain = [name for name in head if name in dotted and head[name]["points"] == 1]
    if commas - points and (commas & dotted or not plain):
        return ","
    asked = min(commas)
    seen = f"{where} has {head[asked]['comma']!r} in column {asked!r}"
    if plain:
        seen += f" and {head[plain[0]]['point']!r} in column {plain[0]!r}"
    fact = f"{seen}: the comma may be a decimal mark or separate thousands"
    raise TableError("decimal", fact, "say which with decimal=',' or decimal='.'")


def _judged(table: Table, column: Column, found: Mapping[str, Any]) -> Column:
    """Tell from the first rows whether a column of text holds numbers."""
    share, fraction, thousands = "points", "point", "comma"
    if table._decimal == ",":
        share, fraction, thousands = "commas", "comma", "point"
    column = replace(column, number=table._parsed(column.raw))
    if found["dates"]:
        return replace(column, kind="date", typed=f"CAST({column.label} AS TIMESTAMP)")
    if found["flags"]:
        digit = (
            f"CASE lower(fairpca_trim({column.raw})) WHEN 'true' THEN '1' WHEN 'false' THEN '0' "
        )
        number = f"fairpca_number({digit} ELSE {column.raw} END, {digit} ELSE {column.raw} END)"
        return replace(column, kind="number", number=number, typed=f"CAST({number} AS BOOLEAN)")
    if found[share] < 1:
        mixed = found[share] >= _MOSTLY
        typed = column.number if mixed else column.label
        return replace(column, kind="text", typed=typed, odd=True, mixed=mixed)
    told = table._reading.decimal or len(table.missing) > len(table._codes)
    plain = not (told or found[thousands])
    number = f"CAST({table._with_points(column.raw)} AS DOUBLE)" if plain else column.number
    typed = number if found[fraction] else ""
    return replace(column, kind="number", number=number, typed=typed, plain=plain)


def quoted(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    """A name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def _texts(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(quoted, texts))}]"


def _kind(kind: str) -> Kind:
    """The kind of a column of a DuckDB type."""
    if kind.endswith("]") or kind.startswith(("STRUCT", "MAP", "UNION", "BLOB", "BIT")):
        return "other"
    if kind == '"NULL"':
        return "empty"
    if kind.startswith(("DATE", "TIME", "INTERVAL")):
        return "date"
    plain = kind.partition("(")[0]  # without the values of an ENUM
    number = "INT" in plain or plain in ("DECIMAL", "DOUBLE", "FLOAT", "BOOLEAN")
    return "number" if number else "text"


def _identity(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
