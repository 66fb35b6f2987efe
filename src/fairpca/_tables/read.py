"""Tables in files, folders, databases and queries, read by DuckDB.

Labels in text files stay as they are written: 01 and 1 are two groups. A column whose first rows
hold plain numbers is declared as DOUBLE, which is fast; a later value in another notation is an
error. Other columns of numbers arrive as text, and are converted here, batch by batch.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from weakref import finalize

import numpy as np

from fairpca._blas import blas_threads
from fairpca._tables import files
from fairpca._tables.files import TableFile, damaged, duckdb, pa, pc, refuse_unknown
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
_NO_NUMBER = r'column "(c\d+)"\. Could not convert string "(.*?)" to'  # how DuckDB says so
_FILE = "fairpca_file"  # the column with the path of a row's file
_NULL = pa.scalar(None, pa.string())
_ERRORS = (duckdb.Error, pa.ArrowException, OSError)


@dataclass(frozen=True)
class Column:
    """A column of a table, and the SQL that reads it."""

    name: str
    kind: Kind
    raw: str  # as it is stored
    number: str  # as DOUBLE, or as text that is yet to be converted
    label: str
    usual: bool = True  # False for an index or a part of the path: no feature unless it is named
    plain: bool = False  # whether DuckDB can convert its texts to DOUBLE
    flags: bool = False  # whether its texts are "true" and "false"
    odd: tuple[int, str] | None = None  # the first text that is no number, and its row
    mixed: bool = False  # whether most of its other values are numbers


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
    """The files and folders that are read, as absolute paths; of a query those that it quotes."""
    if isinstance(data, Mapping):
        return []
    given = files.list_of(data)
    if is_query(data):
        given = [path for _, path in re.findall(r"""(['"])(.+?)\1""", data)]
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
        usual = Reading(missing_values=reading.missing_values)
        if given := [f"{n}=" for n, value in vars(reading).items() if value != getattr(usual, n)]:
            fact = f"a query says by itself how files are read, without {', '.join(given)}"
            raise TableError("query", fact, "use SELECT * FROM read_csv('people.csv', ...)")
        table = Table("the query", reading, input_paths(data))
        csv = r"""(?i)\b(?:from|join)\s+(['"])([^'"]+\.(?:csv|tsv)(?:\.gz|\.zst)?)\1"""
        for _, path in re.findall(csv, data):
            table._view_of_csv(path)
        _define_query(table, data)
    else:
        table = _file_table(data, reading)
    table._connection.execute("SET lock_configuration=true")  # no query can change it
    return table


def _file_table(data: Any, reading: Reading) -> Table:
    found = files.find_files(data)
    first, *others = [file.name for file in found]
    kind = found[0].format
    if kind == "database":
        table = Table(first, reading, [found[0].path], str(found[0].path))
        _define_query(table, reading.query)
        return table
    for option, fits in {"query": "a DuckDB database", "sheet": "a spreadsheet"}.items():
        if getattr(reading, option) is not None and (option, kind) != ("sheet", "excel"):
            fact = f"{option}= is for {fits}, and {first} is none"
            raise TableError(option, fact, "leave it out; a query names its file itself")
    more = f" and {others[0] if len(others) == 1 else f'{len(others)} more'}" if others else ""
    for file in found:
        if file.partition.keys() != found[0].partition.keys():
            fact = f"the folders of {file.name} do not name the same columns as those of {first}"
            raise TableError("columns", fact, "move it, or pass only files that belong together")
    table = Table(first + more, reading, input_paths(data))
    table.files = found
    (_define_parquet if kind in ("parquet", "arrow") else _define_text)(table)
    for key in found[0].partition:
        numbers = all(files.is_number(file.partition.get(key, "")) for file in found)
        sql = _identifier(key)
        table.columns[key] = Column(key, "number" if numbers else "text", sql, sql, sql, False)
    return table


class Table:
    """Rows and named columns, wherever they are; see :func:`open_table`."""

    def __init__(
        self, name: str, reading: Reading, inputs: Sequence[Any] = (), database: str = ":memory:"
    ) -> None:
        self.name, self._reading = name, reading  # the name is for messages
        given = reading.missing_values
        #: Texts that stand for a missing number, besides the usual ones.
        self.missing = [str(v) for v in ([given] if np.isscalar(given) else given)]
        codes = [float(value) for value in self.missing if files.is_number(value)]
        self._missing_numbers = pa.array(codes, pa.float64())
        self._decimal = reading.decimal or "."
        self.inputs = list(inputs)  # files and folders that must not be written to
        self.files: Sequence[TableFile] = ()
        self.n_rows = 0  # of Parquet files, which tell it
        self.unordered = False  # whether rows may come in another order next time
        self.columns: dict[str, Column] = {}
        self._from = ""  # SQL: what follows FROM, or the beginning of a call of read_csv
        self._text_columns: Sequence[str] = ()  # SQL: all columns of text files
        self._nulls = set(_FREQUENT)  # texts for missing values, with others of the first rows
        self._folder = tempfile.mkdtemp(prefix="fairpca-")
        self._cleanup = finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._connection = _connect(database, self._folder)

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
        columns = [self.columns[name] for name in (*numbers, *labels, *kept)]
        uses = ["number"] * len(numbers) + ["label"] * len(labels)
        uses += ["number" if name in numbers else "raw" for name in kept]
        sql = [getattr(column, use) for column, use in zip(columns, uses, strict=True)]
        listed = ", ".join(f"{value} AS v{j}" for j, value in enumerate(sql))
        fast = {c.raw for c in columns[: len(numbers)] if c.plain and c.name not in labels}
        source = self._source() if "raw" in uses else self._source(fast, sorted(self._nulls))
        some = "" if limit is None else f" LIMIT {limit}"
        n_rows, last, show = 0, 0.0, progress or (lambda fraction: None)
        most = max(1024, _BATCH_ENTRIES // len(sql))
        # Cursors allow other queries meanwhile, but they cannot tell how far they are.
        cursor = self._connection if progress else self._connection.cursor()
        before = [_identity(file.path) for file in self.files]
        try:
            rows = cursor.sql(f"SELECT {listed} FROM {source}{some}")
            for batch in rows.to_arrow_reader(min(_BATCH_ROWS, most)):
                arrays = [
                    self._converted(column, use, array, n_rows)
                    for column, use, array in zip(columns, uses, batch.columns, strict=True)
                ]
                yield pa.record_batch(arrays, batch.schema.names)
                n_rows += batch.num_rows
                done = n_rows / self.n_rows if self.n_rows else cursor.query_progress() / 100
                last = max(last, min(1.0, done))
                show(last)
        except _ERRORS as error:
            raise self._explained(error) from error
        for file, identity in zip(self.files, before, strict=True):
            if _identity(file.path) != identity:
                fact = f"{file.name} was changed while it was being read"
                raise TableError("changed", fact, "read it again when it is complete")
        show(1.0)

    def _converted(self, column: Column, use: str, values: Any, first_row: int) -> Any:
        """Texts of a text file as numbers or labels, without those that mean a missing value."""
        if use == "label" and column.raw in self._text_columns:
            return pc.if_else(pc.is_valid(_known(values, _MISSING)), values, _NULL)
        if use != "number":
            return values
        if pa.types.is_string(values.type):
            texts = _known(values, [*_MISSING, *self.missing])
            values, odd = _numbers_of(texts, self._decimal, column.flags)
            if odd >= 0:
                place = self.place_of(first_row + odd + 1)
                raise self.odd_value(column.name, texts[odd].as_py(), place)
        if len(self._missing_numbers):
            coded = pc.is_in(values, value_set=self._missing_numbers)
            values = pc.if_else(coded, pa.scalar(None, pa.float64()), values)
        return values

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
        first = (batch.column(0) for batch in self.batches([name], limit=HEAD_ROWS))
        return pa.types.is_floating(self.types_of([name])[0]) or any(
            pc.any(pc.not_equal(values, pc.floor(values))).as_py() for values in first
        )

    def place_of(self, row: int) -> str:
        """The place of a row, counted from 1, as "line 7 of people.csv"."""
        file = _FILE if self.files else "NULL"
        unit, first = ("line", self._reading.header) if self._text_columns else ("row", 0)
        found = self._rows(
            f"SELECT file, {row} - min(n) + 1 FROM (SELECT {file} AS file, row_number() OVER () AS "
            f"n FROM {self._source()}) GROUP BY file HAVING {row} BETWEEN min(n) AND max(n)"
        )
        names = {str(file.path): file.name for file in self.files}
        (path, within) = found[0]
        return f"{unit} {within + first} of {names.get(path, self.name)}"

    def odd_value(self, name: str, value: str, place: str) -> TableError:
        """The error for a text among numbers."""
        fact = f"{place} has {value!r} in column {name!r}, which otherwise holds numbers"
        advice = (
            "correct the value (or leave out the line, if it holds names), say that it stands for "
            f"a missing one, missing_values=[{value!r}], or leave the column out, drop=[{name!r}]"
        )
        point = "," if re.fullmatch(r"\d{1,3}(\.\d{3}){2,}", value) else ""
        if self.columns[name].plain and re.fullmatch(_numeral(self._decimal), value):
            point = self._decimal  # passed by the user, it makes us look for thousands everywhere
        advice += f"; with decimal={point!r} it is read as a number" if point else ""
        problem = "decimal" if point else "odd_value"
        return TableError(problem, fact, advice, column=name, value=value)

    def close(self) -> None:
        """Close the connection and remove temporary files."""
        self._connection.close()
        self._cleanup()

    def _source(self, fast: Container[str] = (), nulls: Sequence[str] = ("",)) -> str:
        """SQL: the rows; the columns of text files are VARCHAR, the fast ones DOUBLE."""
        if not self._text_columns:
            return self._from
        types = [f"{c}: '{'DOUBLE' if c in fast else 'VARCHAR'}'" for c in self._text_columns]
        point = f"decimal_separator={quoted(self._decimal)}, nullstr={_texts(nulls)}"
        return f"{self._from}, {point}, columns={{{', '.join(types)}}})"

    def _allow_memory(self, n_columns: int) -> None:
        """Allow more memory if there are many columns: a vector of each must fit."""
        self._connection.execute(f"SET memory_limit='{max(_MEMORY, 2 * n_columns)}MB'")

    def _view_of_csv(self, path: str) -> None:
        """Make a view of a CSV file under its own name, which queries find before the file.

        DuckDB would guess the dialect, and lose lines or columns; here it guesses only types.
        """
        file, decimal = files.find_files(path)[0], "."
        delimiter, _ = files.dialect_of(file, header=True)
        with suppress(TableError):  # a column that the query may not read can be either
            decimal = _file_table(file.path, Reading())._decimal
        self._rows(
            f"CREATE OR REPLACE VIEW {_identifier(path)} AS FROM read_csv({quoted(path)}, "
            f"header=true, delim={quoted(delimiter)}, quote='\"', escape='\"', comment='', skip=0, "
            f"strict_mode=true, nullstr={_texts(_MISSING)}, decimal_separator={quoted(decimal)})"
        )

    def _rows(self, sql: str) -> list[Any]:
        try:
            return list(self._connection.cursor().sql(sql).fetchall())
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
            number = f"CAST({sql} AS DOUBLE)" if is_number else sql
            keeps = kind == "VARCHAR" or (is_number and "DECIMAL" not in kind)
            label = sql if keeps else f"CAST({sql} AS VARCHAR)"
            usual = name not in index and not name.startswith("__index_level_")
            self.columns[name] = Column(name, _kind(kind), sql, number, label, usual)

    def _explained(self, error: Exception) -> TableError:
        """Translate an error of DuckDB or Arrow into one that names the file and the way out."""
        said = str(error)
        mine = next((file.name for file in self.files if str(file.path) in said), self.name)
        line = re.search(r"CSV Error on Line: (\d+)", said)
        place = f"line {line[1]} of {mine}" if line else mine
        if self._text_columns and (found := re.search(_NO_NUMBER, said, re.S)):
            name = next(c.name for c in self.columns.values() if c.raw == found[1])
            return self.odd_value(name, found[2].strip(), place)
        if found := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", said):
            n = f"more than {found[1]}" if int(found[2]) > int(found[1]) else found[2]
            fact = f"{place} has {n} values where the first line has {found[1]}"
            advice = "correct that line, or the first if it is a title, or restore a file cut off"
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
        for file in self.files:  # DuckDB does not name a file with a bad page
            if file.format == "parquet" and (problem := files.bad_page(file)):
                return damaged(file.name, problem)
        if not self.files:
            return TableError("query", said.strip().rstrip("."), "correct the query")
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


def _define_query(table: Table, query: str | None) -> None:
    """Define a table by one SELECT statement, on a database or on files."""
    if query is None:
        rows = table._rows("SELECT schema, name FROM (SHOW ALL TABLES)") or [("main", "people")]
        known = [[part for part in row if part != "main"] for row in rows]
        names = files.first_names([".".join(parts) for parts in known])
        first = ".".join(map(_identifier, known[0]))
        fact = f"{table.name} is a database with the tables {names}"
        raise TableError("query", fact, f"pass query='SELECT * FROM {first}'")
    try:
        statements = table._connection.extract_statements(query)
    except duckdb.Error as error:
        raise table._explained(error) from error
    kinds = [str(statement.type).rpartition(".")[2] for statement in statements]
    if kinds != ["SELECT"]:
        fact = f"a table is one SELECT statement, and this is {' and '.join(kinds) or 'none'}"
        raise TableError("query", fact, "pass one that only reads")
    outside = re.sub(r"(?i)\bover\s*\([^)]*\)", "", query)  # a window orders no rows
    draws = re.search(r"(?i)\b(using\s+sample|tablesample|random\s*\()", query)
    joins = re.search(
        r"(?i)\b(join|group\s+by|distinct|union|intersect|except|from\s+[^\s(]+(\s+\w+)?\s*,)",
        query,
    )
    ordered = re.search(r"(?i)\border\s+by\b", outside)
    table.unordered = bool(draws or (joins and not ordered))
    text = query.encode()  # DuckDB counts bytes
    end = next((at for at, _ in duckdb.tokenize(query) if text[at : at + 1] == b";"), None)
    table._define(f"({text[:end].decode()}\n)")


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
    for name in numbers & table.columns.keys():  # they may be text in another file
        table.columns[name] = replace(table.columns[name], kind="number")


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
            advice = "write all files alike, or read them in a query: SELECT * FROM read_csv(...)"
            raise TableError("columns", fact, advice)
    table._from = (
        f"read_csv({_paths_of(table)}, auto_detect=false, header={str(reading.header).lower()}, "
        f"delim={quoted(delimiter)}, quote='\"', escape='\"', comment='', skip=0, strict_mode=true"
    )
    table._text_columns = [f"c{j}" for j in range(len(names))]
    table._allow_memory(len(names))
    for sql, name in zip(table._text_columns, names, strict=True):
        if name not in table.columns:  # several columns may have no name
            table.columns[name] = Column(name, "text", sql, sql, sql, usual=bool(name))
    head = _head_of(table)
    table._decimal = reading.decimal or _told_decimal(table.name, head)
    for name, texts in head.items():
        table.columns[name] = _judged(table, table.columns[name], texts)


def _paths_of(table: Table) -> str:
    """SQL: the files, whose names become a column, and maybe those of their folders."""
    paths = _texts(glob.escape(str(file.path)) for file in table.files)
    has_keys = table.files[0].partition
    hive = f"hive_partitioning={str(bool(has_keys)).lower()}, hive_types_autocast=false"
    return f"{paths}, filename='{_FILE}', {hive}"


def _head_of(table: Table) -> dict[str, Any]:
    """The first rows of each column as text; missing values are null."""
    rows, head = head_rows(len(table.columns)), {}
    schema = pa.schema([(f"v{j}", pa.string()) for j in range(len(table.columns))])
    first = pa.Table.from_batches(table.batches(kept=[*table.columns], limit=rows), schema)
    for name, texts in zip(table.columns, first.columns, strict=True):
        missing = pc.and_(pc.is_valid(texts), pc.is_null(_known(texts, _MISSING)))
        table._nulls.update(pc.unique(texts.filter(missing)).to_pylist())
        head[name] = _known(texts, [*_MISSING, *table.missing])
    return head


def head_rows(n_columns: int) -> int:
    """How many first rows tell what a column holds; fewer if there are many columns."""
    return min(HEAD_ROWS, max(1000, _HEAD_ENTRIES // n_columns))


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
        dotted = {n: c for n, c in head.items() if pc.any(pc.match_substring(c, ".")).as_py()}
        plain = [name for name in dotted if _share(dotted[name], _numeral(".")) == 1]
        if plain and not commas & dotted.keys():  # nothing shows that "." marks thousands
            fact = f"{where} writes fractions with ',' in {min(commas)!r}, with '.' in {plain[0]!r}"
            raise TableError("decimal", fact, "say which with decimal=',' or decimal='.'")
        return ","
    asked = min(commas)
    value = next(text for text in head[asked].to_pylist() if text and "," in text)
    fact = f"{value!r} in column {asked!r} of {where} may be a fraction or thousands"
    raise TableError("decimal", fact, "say which with decimal=',' or decimal='.'")


def _judged(table: Table, column: Column, head: Any) -> Column:
    """Tell from the first rows whether a column of text holds numbers."""
    decimal, flags = table._decimal, _share(head, "(?i)true|false") == 1
    if head.null_count == len(head):
        return replace(column, kind="empty")
    if _share(head, _DATE) == 1:
        return replace(column, kind="date")
    _, odd = _numbers_of(head, decimal, flags)
    if odd >= 0:
        mixed = _share(head, _numeral(decimal)) >= _MOSTLY
        return replace(column, odd=(odd + 1, head[odd].as_py()), mixed=mixed)
    told = table._reading.decimal or len(table.missing) > len(table._missing_numbers)
    marked = pc.any(pc.match_substring(head, "," if decimal == "." else ".")).as_py()
    return replace(column, kind="number", flags=flags, plain=not (told or flags or marked))


def _known(texts: Any, missing: Sequence[str]) -> Any:
    """Texts without blanks around them; null if they stand for a missing value."""
    trimmed = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.is_in(trimmed, value_set=pa.array(missing)), _NULL, trimmed)


def _numbers_of(texts: Any, decimal: str, flags: bool) -> tuple[Any, int]:
    """Texts as numbers, and the position of the first that is none; -1 if all are numbers."""
    if decimal == ".":
        with suppress(pa.ArrowInvalid):  # the usual notation, which takes a third of the time
            return texts.cast("float64"), -1
    for flag, digit in (("true", "1"), ("false", "0")) if flags else ():
        texts = pc.replace_substring_regex(texts, f"(?i)^{flag}$", digit)
    odd = pc.index(pc.match_substring_regex(texts, f"^({_numeral(decimal)})$"), False).as_py()
    if odd >= 0:
        return None, odd
    plain = pc.replace_substring(texts, "," if decimal == "." else ".", "")
    return pc.replace_substring(plain, ",", ".").cast("float64"), odd


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
