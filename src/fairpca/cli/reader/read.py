"""Open files, folders, databases and queries as tables.

A query finds views of ours under the names of files, and so reads them as their paths are read:
DuckDB would guess types by the first rows, and round or drop what does not fit. It can open no file
that it does not name, so that none of its inputs is written over.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fairpca.cli.reader import files
from fairpca.cli.reader.files import TableFile, duckdb, pa, refuse_twin_names
from fairpca.cli.reader.table import Column, Reading, Table, identifier, quoted, quoted_list
from fairpca.cli.reader.text import define_text
from fairpca.exceptions import TableError

#: Functions that a query may call to read a file; what they read has our types.
_READERS = ("read_csv", "read_csv_auto", "read_parquet", "parquet_scan")
#: Durations in Parquet files, which DuckDB reads as whole numbers, as it has them.
_DURATIONS = {
    "s": "to_seconds({})",
    "ms": "to_milliseconds({})",
    "us": "to_microseconds({})",
    "ns": "to_microseconds({} // 1000)",
}


def is_query(text: Any) -> bool:
    """Whether a text is a query and not a path; comments and brackets may come first."""
    start = r"(?is)(\s|\(|--[^\n]*\n|/\*.*?\*/)*(select\*|(select|with|from)\s)"
    return isinstance(text, str) and bool(re.match(start, text)) and not os.path.exists(text)


def input_paths(data: Any) -> list[str]:
    """The files and folders that are read, as absolute paths; of a query those that it names."""
    if isinstance(data, Mapping):
        return []
    given = files.list_of(data)
    if is_query(data):
        given = ["".join(names) for names in _files_in(_by_names(data))]
    found = {path for name in map(str, given) for path in (name, *glob.glob(name, recursive=True))}
    return [path if path == "-" else os.path.abspath(path) for path in sorted(found)]


def open_table(data: Any, **options: Any) -> Table:
    """Open a table, or a mapping of names to arrays; the options are fields of Reading."""
    reading = Reading(**options)
    if isinstance(data, Mapping):
        table = Table("the data", reading)
        path = Path(table.folder, "data.parquet")
        files.pq.write_table(pa.table(dict(data)), path)
        table.files = [TableFile(path, "the data", "parquet")]
        _define_parquet(table)
    elif is_query(data):
        query = _by_names(data)
        table = Table("the query", reading, input_paths(query))
        _define_query(table, query, _files_in(query))
    else:
        table = _file_table(data, reading)
    table.connection.execute("SET lock_configuration=true")  # no query can change it
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
    name = first
    if len(others) > 1:
        name += f" and {len(others)} more"
    elif others:
        name += f" and {others[0]}"
    for file in found:
        if file.partition.keys() != found[0].partition.keys():
            fact = f"the folders of {file.name} do not name the same columns as those of {first}"
            raise TableError("columns", fact, "move it, or pass only files that belong together")
    table = Table(name, reading, input_paths(data), query=query)
    table.files = found
    if kind in ("parquet", "arrow"):
        _define_parquet(table)
    else:
        define_text(table)
    keys = {
        part.partition("=")[0] for file in found for part in file.path.parts[:-1] if "=" in part
    }
    if found[0].partition:  # DuckDB reads the whole path
        refuse_twin_names(table.name, [*table.columns, *keys], "rename the column, or the folder")
    for key in found[0].partition:
        values = {file.partition[key] for file in found}
        sql = identifier(key)
        column = Column(key, "text", sql, f"CAST({sql} AS DOUBLE)", sql, sql, usual=False)
        if all(map(files.is_number, values)):
            column = replace(column, kind="number")
        if all(value.isdecimal() and str(int(value)) == value for value in values):  # not 01
            column = replace(column, typed=f"CAST({sql} AS BIGINT)")
        table.columns[key] = column
    return table


def _define_query(table: Table, query: str | None, named: Sequence[tuple[str, str]]) -> None:
    """Define a table by one SELECT statement, on a database or on the named files."""
    if query is None:
        rows = table.rows("SELECT schema, name FROM (SHOW ALL TABLES)") or [("main", "people")]
        known = [[part for part in row if part != "main"] for row in rows]
        names = files.first_names([".".join(parts) for parts in known])
        first = ".".join(map(identifier, known[0]))
        fact = f"{table.name} is a database with the tables {names}"
        raise TableError("query", fact, f"pass query='SELECT * FROM {first}'")
    nodes = _nodes_of(query)
    functions = {node["function_name"] for node in nodes if "function_name" in node}
    if readers := [name for name in functions if re.match(r"read_|sniff_|query|.*scan", name)]:
        fact = f"{readers[0]} in a query takes the name of a file, folder or pattern and no options"
        raise TableError("query", fact, "name the file itself, SELECT * FROM 'people.csv'")
    kinds = {node["type"] for node in nodes if isinstance(node.get("type"), str)}
    mixes = kinds & {"JOIN", "DISTINCT_MODIFIER", "SET_OPERATION_NODE"}
    mixes |= {"GROUP" for node in nodes if node.get("group_expressions")}
    draws = "random" in functions or any(node.get("sample") for node in nodes)
    modifiers = [modifier["type"] for node in nodes for modifier in node.get("modifiers", ())]
    table.unordered = bool(draws or (mixes and "ORDER_MODIFIER" not in modifiers))
    for schema, name in named:
        part = _file_table(schema + name, table.reading, table)
        part.define_view(schema, name)
        table.parts.append(part)
    paths = [os.path.abspath(file.path) for part in table.parts for file in part.files]
    allowed = [*paths, *map(glob.escape, paths)]  # the latter as they stand in the views
    table.connection.execute(
        f"SET GLOBAL allowed_paths={quoted_list(allowed)}; SET GLOBAL enable_external_access=false"
    )
    text = query.encode()  # DuckDB counts bytes
    end = next((at for at, _ in duckdb.tokenize(query) if text[at : at + 1] == b";"), None)
    table.define(f"({text[:end].decode()}\n)")
    numbers = {c.name for part in table.parts for c in part.columns.values() if c.kind == "number"}
    for name, column in table.columns.items():
        if column.kind == "text" and name in numbers:  # a text only to keep 007 apart from 7
            table.columns[name] = replace(column, kind="number")


def _by_names(query: str) -> str:
    """The query with the names of files in place of calls that read them with types of their own.

    DuckDB would guess the types; under its name we read a file as its path is read.
    """
    text = query.encode()  # DuckDB counts bytes
    calls = [node for node in _nodes_of(query) if node.get("type") == "TABLE_FUNCTION"]
    for node in sorted(calls, key=lambda node: -int(node["query_location"])):
        function = node["function"]
        given = [argument["expression"] for argument in function["arguments"]]
        if len(given) != 1:
            continue
        name = given[0].get("literal", {}).get("text", "")
        if function["function_name"] in _READERS and files.is_file_name(name):
            start = node["query_location"]
            end = text.index(b")", given[0]["query_location"] + given[0]["query_location_length"])
            text = text[:start] + quoted(name).encode() + text[end + 1 :]
    return text.decode()


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
        ((schema := node["schema_name"]) and f"{schema}.", node["table_name"]) for node in tables
    }
    return sorted(pair for pair in names if files.is_file_name("".join(pair)))


def _define_parquet(table: Table) -> None:
    """Define a table by Parquet or Arrow files, whose types of columns may differ."""
    if table.files[0].format == "arrow":
        table.files = [files.as_parquet(file, table.folder) for file in table.files]
    first, numbers, table.n_rows = files.first_schema(table.files)
    # DuckDB would otherwise take the types of the first file for all, and round fractions.
    several = len(table.files) > 1
    table.define(
        f"read_parquet({table.paths_in_sql()}, union_by_name={several})",
        first.names,
        (first.pandas_metadata or {}).get("index_columns", ()),
    )
    for name, column in table.columns.items():
        if pa.types.is_duration(first.field(name).type):
            typed = _DURATIONS[first.field(name).type.unit].format(column.raw)
            table.columns[name] = replace(column, kind="date", typed=typed)
        elif column.kind == "text" and name in numbers:  # in another file
            table.columns[name] = replace(column, kind="number", typed=column.number)
