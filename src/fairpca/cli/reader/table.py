"""A table: rows and named columns, read by DuckDB in record batches."""

from __future__ import annotations

import glob
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from weakref import finalize

import numpy as np

from fairpca._atomic import TEMPORARY
from fairpca._blas import blas_threads
from fairpca.cli.reader import files
from fairpca.cli.reader.files import TableFile, damaged, duckdb, pa
from fairpca.exceptions import TableError

Kind = Literal["number", "text", "date", "empty", "other"]

HEAD_ROWS = 20_000  # first rows, which tell what a column holds
_BATCH_ROWS = 1 << 14  # most rows in a record batch
_MOST_ENTRIES = 1 << 21  # in a record batch or the first rows
_MEMORY = 300  # MB that DuckDB may use, unless there are many columns
_DISK = "10GB"  # most that a query may put on the disk
_FREQUENT = ("", "N/A", "NA", "NULL", "null")  # looked for in all rows, which takes time
_MISSING = (
    *_FREQUENT, "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND",
    "1.#QNAN", "<NA>", "NaN", "n/a", "nan",
)  # fmt: skip
_BLANKS = "".join(filter(str.isspace, map(chr, range(0x3001))))
#: What may stand between thousands, apart from a comma: one of these throughout a number.
_GAPS = " \u00a0\u2009\u202f'’_"
_GROUPS = "|".join(rf"({gap}\d{{3}})+" for gap in f",{_GAPS}")
_DIGITS = rf"(([1-9]\d?\d?({_GROUPS})|\d+)(\.\d*)?|\.\d+)"
#: A number with a decimal point, and maybe marks between thousands.
NUMERAL = rf"[-+]?{_DIGITS}([eE][-+]?\d+)?|[-+]?([iI]nf(inity)?|INF)"
_OPEN = f"[{_BLANKS}]*"
#: An amount of money or a share, without its sign: (1,234) is negative, and 3.4K is 3400.
AMOUNT = (
    rf"{_OPEN}(\({_OPEN}{_DIGITS}{_OPEN}[kKMB]?{_OPEN}\)"
    rf"|[-+−]?{_OPEN}{_DIGITS}{_OPEN}[kKMB]?){_OPEN}"
)
#: Signs of amounts. A column has one of them.
SIGNS = "[$€£¥₹₩%]|USD|EUR|GBP|CHF|JPY|INR|SEK|NOK|DKK"


def with_comma(pattern: str) -> str:
    """A pattern of numbers with a decimal comma in place of the point."""
    return pattern.replace(",", "\0").replace(r"\.", ",").replace("\0", r"\.")


COMMA_NUMERAL = with_comma(NUMERAL)
_NUMERALS = {".": NUMERAL, ",": COMMA_NUMERAL}
#: Marks that the cast of DuckDB does not know, or knows in other places than we do.
MARKS = f"[{_GAPS}]"
FILE = "fairpca_file"  # the column with the path of a row's file
_CONVERSION = "Conversion Error"  # how the message begins, whatever the class
_ERRORS = (duckdb.Error, pa.ArrowException, OSError)
_WRONG_QUERY = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException)
#: Whole numbers that fit 64 bits, and those that only a text holds: 01, or an id of 19 digits.
_WHOLE = r"-?(0|[1-9]\d{0,17})"
_ONLY_TEXT = r"-?(0\d+|\d{19,})"


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
    padded: bool = False  # whether there are zeros in front, as in 00501
    example: str = ""  # an amount such as $31,648, if that is how numbers are written


@dataclass(frozen=True)
class Reading:
    """How a table is read; the options of the command say what each field means."""

    query: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    header: bool = True
    sheet: str | None = None
    missing_values: str | Sequence[str] = ()

    def __post_init__(self) -> None:
        try:
            if self.encoding is not None:
                "a".encode(self.encoding)
        except (LookupError, TypeError):
            fact = f"the encoding {self.encoding!r} is not known"
            raise TableError("encoding", fact, "try 'utf-8' or 'latin-1'") from None
        if self.decimal not in (None, ".", ","):
            fact = f"the decimal point {self.decimal!r} is not known"
            raise TableError("decimal", fact, "pass '.' or ','")


class Table:
    """Rows and named columns, wherever they are; `read` opens and defines them."""

    def __init__(
        self,
        name: str,
        reading: Reading,
        inputs: Sequence[Any] = (),
        database: str = ":memory:",
        query: Table | None = None,
    ) -> None:
        self.name = name  # for messages
        self.reading = reading
        given: Any = reading.missing_values
        if np.isscalar(given):
            given = [given]
        #: Texts that stand for a missing number, besides the usual ones.
        self.missing = list(map(str, given))
        self.codes = [float(value) for value in self.missing if files.is_number(value)]
        self.decimal = reading.decimal or "."
        self.inputs = list(inputs)  # files and folders that must not be written to
        self.files: Sequence[TableFile] = ()
        self.n_rows = 0  # of Parquet files, which tell it
        self.unordered = False  # whether rows may come in another order next time
        self.columns: dict[str, Column] = {}
        self.from_sql = ""  # SQL: what follows FROM, or the beginning of a call of read_csv
        self.text_columns: Sequence[str] = ()  # SQL: all columns of text files
        self.nulls = set(_FREQUENT)  # texts for missing values, with others of the first rows
        self.parts: list[Table] = []  # the files that a query names
        if query is not None:
            self.folder: str = query.folder
            self.connection: Any = query.connection
            return
        self.folder = tempfile.mkdtemp(prefix=TEMPORARY)
        self.connection = _connect(database, self.folder)
        self._cleanup = finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        if database == ":memory:":
            texts = [text for text in self.missing if not files.is_number(text)]
            for macro in _macros(texts):
                self.connection.execute(f"CREATE MACRO {macro}")

    def batches(
        self,
        numbers: Sequence[str] = (),
        labels: Sequence[str] = (),
        kept: Sequence[str] = (),
        limit: int | None = None,
        progress: Callable[[float], object] | None = None,
        hashed: bool = False,
    ) -> Iterator[Any]:
        """Record batches of the columns of these names, in the order of the rows.

        Columns that are kept are as they are stored, unless they are among the numbers. With
        ``hashed``, the last column is a number for the row.
        """
        as_text = bool(kept)  # a column that is kept must not lose texts such as NA
        plain = [name for name in numbers if self.columns[name].plain and name not in labels]
        fast = [self.columns[name].raw for name in plain if not as_text]  # read as DOUBLE
        exact = {name: self._number(name, as_text, fast) for name in numbers}
        uses = [exact[name] for name in numbers]
        uses += [self.columns[name].label for name in labels]
        uses += [exact.get(name, self.columns[name].raw) for name in kept]
        listed = [f"{sql} AS v{j}" for j, sql in enumerate(uses)]
        if hashed:
            listed.append(f"hash({', '.join(f'v{j}' for j in range(len(uses)))}) AS h")
        query = f"SELECT {', '.join(listed)} FROM {self.source(as_text, fast)}"
        if limit is not None:
            query += f" LIMIT {limit}"
        n_rows = 0
        last = 0.0
        show = progress or (lambda fraction: None)
        most = max(1024, _MOST_ENTRIES // len(uses))
        # Cursors allow other queries meanwhile, but they cannot tell how far they are.
        cursor = self.connection
        if not progress:
            cursor = cursor.cursor()
        before = [_identity(file.path) for file in self.files]
        try:
            for batch in cursor.sql(query).to_arrow_reader(min(_BATCH_ROWS, most)):
                yield batch
                n_rows += batch.num_rows
                done = cursor.query_progress() / 100
                if self.n_rows:
                    done = n_rows / self.n_rows
                last = max(last, min(1.0, done))
                show(last)
        except _ERRORS as error:
            odd = _CONVERSION in str(error) and self.odd_value(numbers, as_text)
            raise odd or self._explained(error) from error
        for file, identity in zip(self.files, before, strict=True):
            if _identity(file.path) != identity:
                fact = f"{file.name} was changed while it was being read"
                raise TableError("changed", fact, "read it again when it is complete")
        show(1.0)

    def _number(self, name: str, as_text: bool, fast: Sequence[str] = ()) -> str:
        """SQL: a column as DOUBLE, without codes for missing values."""
        column = self.columns[name]
        sql = column.number
        if column.raw in fast:
            sql = column.raw
        elif as_text and column.plain:
            sql = self.parsed(column.raw)
        for code in self.codes:
            sql = f"nullif({sql}, {code!r}::DOUBLE)"
        return sql

    def parsed(self, text: str) -> str:
        """SQL: a text as DOUBLE, whatever the notation."""
        return f"fairpca_number({text}, {self.with_points(text)})"

    def with_points(self, text: str) -> str:
        """SQL: a text with a decimal point."""
        if self.decimal == ",":
            return f"translate({text}, ',.', '.,')"
        return text

    def types_of(self, names: Sequence[str]) -> list[Any]:
        """The Arrow types of columns, as they are stored."""
        listed = ", ".join(self.columns[name].raw for name in names) or "1"
        empty = self.connection.cursor().sql(f"SELECT {listed} FROM {self.source()} LIMIT 0")
        return list(empty.to_arrow_table().schema.types)[: len(names)]

    def place_of(self, row: int) -> str:
        """The place of a row, counted from 1, as "line 7 of people.csv"."""
        paths = FILE if self.files else "NULL"
        found = self.rows(
            f"SELECT file, {row} - min(n) + 1 FROM (SELECT {paths} AS file, "
            f"row_number() OVER () AS n FROM {self.source()}) "
            f"GROUP BY file HAVING {row} BETWEEN min(n) AND max(n)"
        )
        path, n = found[0]
        file = next((file for file in self.files if str(file.path) == path), None)
        if file is None:
            return f"row {n} of {self.name}"
        if not self.text_columns:
            return f"row {n} of {file.name}"
        return f"line {files.line_of(file, n - 1 + self.reading.header)} of {file.name}"

    def odd_value(self, names: Sequence[str], as_text: bool = False) -> TableError | None:
        """The error for the first text among the numbers of these columns, if there is one."""
        odd = ", ".join(f"TRY(coalesce({self._number(n, as_text)}, 0)) IS NULL" for n in names)
        texts = ", ".join(f"CAST({self.columns[name].raw} AS VARCHAR)" for name in names)
        found = self.rows(
            "SELECT n, j, text FROM (SELECT row_number() OVER () AS n, "
            f"list_position([{odd}], true) AS j, [{texts}][j] AS text "
            f"FROM {self.source(as_text)}) WHERE j > 0 LIMIT 1"
        )
        if not found:
            return None
        row, j, text = found[0]
        name = names[j - 1]
        value = text.strip(_BLANKS)
        fact = f"{self.place_of(row)} has {value!r} in column {name!r}"
        advice = (
            "correct the value (or leave out the line, if it holds names), say that it stands for "
            f"a missing one, missing_values=[{value!r}], or leave the column out, drop=[{name!r}]"
        )
        column = self.columns[name]
        point = ""
        if column.plain and re.fullmatch(_NUMERALS[self.decimal], value):
            point = self.decimal  # passed by the user, it makes us look for thousands everywhere
        elif re.fullmatch(r"\d{1,3}(\.\d{3}){2,}", value):
            point = ","
        problem = "odd_value"
        if point:
            problem = "decimal"
            advice += f"; with decimal={point!r} it is read as a number"
        if column.kind == "number" or column.mixed:
            fact += ", which otherwise holds numbers"
        else:
            fact += ", which is no number"
        return TableError(problem, fact, advice, column=name, value=value)

    def close(self) -> None:
        """Close the connection and remove temporary files."""
        self.connection.close()
        self._cleanup()

    def source(self, as_text: bool = True, fast: Sequence[str] = ()) -> str:
        """SQL: the rows; of text files as text, without the usual texts for missing values."""
        if not self.text_columns:
            return self.from_sql
        nulls = [""]
        if not as_text:
            nulls = sorted(self.nulls)
        kinds = dict.fromkeys(self.text_columns, "VARCHAR") | dict.fromkeys(fast, "DOUBLE")
        types = [f"{name}: '{kind}'" for name, kind in kinds.items()]
        how = f"decimal_separator={quoted(self.decimal)}, nullstr={quoted_list(nulls)}"
        return f"{self.from_sql}, {how}, columns={{{', '.join(types)}}})"

    def paths_in_sql(self) -> str:
        """SQL: the files, whose names become a column, and maybe those of their folders."""
        paths = quoted_list(glob.escape(str(file.path)) for file in self.files)
        has_keys = bool(self.files[0].partition)
        hive = f"hive_partitioning={has_keys}, hive_types_autocast=false"
        return f"{paths}, filename='{FILE}', {hive}"

    def allow_memory(self, n_columns: int) -> None:
        """Allow more memory if there are many columns: a vector of each must fit."""
        self.connection.execute(f"SET memory_limit='{max(_MEMORY, 2 * n_columns)}MB'")

    def define_view(self, schema: str, name: str) -> None:
        """Let a query find these files under a name, with types that lose nothing."""
        view = identifier(name)
        if schema:
            view = f"{identifier(schema[:-1])}.{view}"
            self.rows(f"CREATE SCHEMA IF NOT EXISTS {identifier(schema[:-1])}")
        sql = {name: column.typed for name, column in self.columns.items() if name}
        unknown = [self.columns[name] for name, typed in sql.items() if not typed]
        kinds = [
            f"bool_{way}(regexp_full_match(fairpca_known({column.raw}), {quoted(pattern)}))"
            for way, pattern in (("and", _WHOLE), ("or", _ONLY_TEXT))
            for column in unknown
        ]
        found: Sequence[Any] = ()
        if kinds:
            found = self.rows(f"SELECT {', '.join(kinds)} FROM {self.source()}")[0]
        for column, whole, as_text in zip(unknown, found, found[len(unknown) :], strict=False):
            exact = column.number
            if as_text:
                exact = column.label
            elif whole:
                exact = f"CAST(fairpca_known({column.raw}) AS BIGINT)"
            sql[column.name] = exact
        listed = ", ".join(f"{value} AS {identifier(name)}" for name, value in sql.items())
        source = self.source(as_text=False)
        self.rows(f"CREATE VIEW {view} AS SELECT {listed} FROM {source}")

    def rows(self, sql: str, as_dicts: bool = False) -> list[Any]:
        """The rows of a query."""
        try:
            found = self.connection.cursor().sql(sql)
            if as_dicts:
                return list(found.to_arrow_table().to_pylist())
            return list(found.fetchall())
        except _ERRORS as error:
            raise self._explained(error) from error

    def define(self, source: str, names: Sequence[str] = (), index: Sequence[Any] = ()) -> None:
        """Set the source and its columns; DuckDB renames columns that differ only in case."""
        self.from_sql = source
        described = self.rows(f"DESCRIBE SELECT * FROM {source}")
        types = {row[0]: row[1] for row in described}
        self.allow_memory(len(types))
        for name, (column, kind) in zip(names or types, types.items(), strict=False):
            sql = identifier(column)
            own = _kind(kind)
            number = self.parsed(sql)
            label = f"CAST({sql} AS VARCHAR)"
            if own == "number":
                number = f"CAST({sql} AS DOUBLE)"
            if kind == "VARCHAR" or (own == "number" and "DECIMAL" not in kind):
                label = sql
            usual = name not in index and not name.startswith("__index_level_")
            self.columns[name] = Column(name, own, sql, number, label, sql, usual)

    def _explained(self, error: Exception) -> TableError:
        """Translate an error of DuckDB or Arrow into one that names the file and the way out."""
        said = str(error)
        wrong_query = isinstance(error, _WRONG_QUERY)
        for part in self.parts:
            numbers = [c.name for c in part.columns.values() if c.kind == "number" or c.mixed]
            if _CONVERSION in said and (odd := part.odd_value(numbers)):
                return odd
            if any(str(file.path) in said for file in part.files) and not wrong_query:
                return part._explained(error)
        mine = next((file.name for file in self.files if str(file.path) in said), self.name)
        for file in self.files:  # it may be a hidden copy
            said = said.replace(str(file.path), file.name)
        line = 1
        place = mine
        if found := re.search(r"CSV Error on Line: (\d+)", said):
            line = int(found[1])
            place = f"line {line} of {mine}"
        if found := re.search(r"Expected Number of Columns: (\d+) Found: (\d+)", said):
            n = found[2]
            if int(n) > int(found[1]):
                n = f"more than {found[1]}"
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
            return files.undecodable(mine, "utf-8", line)
        if "Permission Error" in said:
            fact = f"{mine} opens a file that it does not name ({said.splitlines()[0]})"
            advice = (
                "name files in quotes, FROM 'people/*.csv', without a database; download others"
            )
            return TableError("query", fact, advice)
        if "max_temp_directory_size" in said or "No space left" in said:
            fact = f"{mine} needs more than {_DISK} of temporary disk, or more than there is"
            advice = "take fewer rows or columns in a query, or let TMPDIR name a larger disk"
            return TableError("disk", fact, advice)
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
        "max_temp_directory_size": _DISK,
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
    # DuckDB must not rely on them. It must not load whole row groups, which may exceed the limit,
    # nor turn a long IN (...) into a join, which loses the order of the rows.
    connection.execute(
        "SET GLOBAL python_enable_replacements=false; SET GLOBAL enable_external_file_cache=false; "
        "SET GLOBAL disabled_optimizers='statistics_propagation,in_clause'; "
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
    x = "fairpca_trim(x)"
    y = "fairpca_trim(y)"
    yield f"fairpca_label(x) AS CASE WHEN {x} NOT IN {quoted_list(_MISSING)} THEN x END"
    nulls = quoted_list([*_MISSING, *missing])
    yield f"fairpca_known(x) AS CASE WHEN {x} NOT IN {nulls} THEN {x} END"
    yield (
        "fairpca_number(x, y) AS CASE WHEN fairpca_known(x) IS NULL THEN NULL "
        f"WHEN regexp_full_match({y}, {quoted(NUMERAL)}) "
        f"THEN CAST(regexp_replace({y}, {quoted(f'[,{_GAPS}]')}, '', 'g') AS DOUBLE) "
        "ELSE CAST('no number: ' || x AS DOUBLE) END"
    )
    bare = "replace(y, sign, '')"
    yield (
        "fairpca_amount(x, y, sign) AS CASE WHEN fairpca_known(x) IS NULL THEN NULL "
        f"WHEN regexp_full_match({bare}, {quoted(AMOUNT)}) AND (sign <> '%' OR contains(y, '%')) "
        f"THEN CAST(regexp_replace({bare}, '[^0-9.]', '', 'g') AS DOUBLE) "
        f"* CASE WHEN regexp_matches({bare}, '[-−(]') THEN -1 ELSE 1 END "
        f"* CASE regexp_extract({bare}, '[kKMB]') WHEN 'B' THEN 1e9 WHEN 'M' THEN 1e6 "
        "WHEN '' THEN 1 ELSE 1e3 END ELSE CAST('no amount: ' || x AS DOUBLE) END"
    )


def head_rows(n_columns: int) -> int:
    """How many first rows tell what a column holds; fewer if there are many columns."""
    return min(HEAD_ROWS, max(1000, _MOST_ENTRIES // n_columns))


def quoted(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A name of a column in SQL."""
    return '"' + name.replace('"', '""') + '"'


def quoted_list(texts: Iterable[str]) -> str:
    """Texts in SQL."""
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
    if "INT" in plain or plain in ("DECIMAL", "DOUBLE", "FLOAT", "BOOLEAN"):
        return "number"
    return "text"


def _identity(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns
