"""What people have in files: read as it is meant, told about, or refused; the same in a query."""

from __future__ import annotations

import codecs
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers.command import COMMAND, fails, run
from helpers.marks import posix

N = 60
RNG = np.random.default_rng(0)
NUMBERS = {name: RNG.normal(size=N).round(3) for name in "xyz"}
SEX = ["f", "m"] * (N // 2)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(path, delimiter=",", **columns):
    rows = zip(*columns.values(), strict=True)
    lines = [columns, *rows]
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(f"{delimiter.join(map(str, line))}\n" for line in lines))


def audit(tmp_path, data, *more, code=0):
    words = ["audit", data, "-g", "sex", "-r", "1", "--cv", "2", "--json", "-", *more]
    return json.loads(run(*words, cwd=tmp_path, code=code).stdout)


def features(tmp_path, data, *more):
    return audit(tmp_path, data, *more)["provenance"]["feature_names"]


def values(tmp_path, name, data, *more):
    """The numbers of a column as the command reads them: its scores where it is the only one."""
    fit = ["fit", data, "-g", "sex", "--features", name, "-r", "1", "--no-standardize", "--cv", "0"]
    run(*fit, "--out", "m.safetensors", *more, cwd=tmp_path)
    shown = run("inspect", "m.safetensors", "--json", "-", cwd=tmp_path).stdout
    mean, kept = json.loads(shown)["mean"], json.loads(shown)["components"][0][0]
    words = ["transform", "m.safetensors", data, "--out", "s.parquet", *more]
    run(*words, cwd=tmp_path)
    return pq.read_table("s.parquet").column(0).to_numpy() * kept + mean[0]


AMOUNTS = {
    "dollars": (["$31,648", "-$12", "($1,200.50)"], [31648, -12, -1200.5]),
    "shares": (["8.2 %", "9%", "10.5%"], [8.2, 9, 10.5]),
    "negative": (["(1,234)", "5", "1,000,000"], [-1234, 5, 1e6]),
    "thousands": (["3.4K", "12.0M", "812"], [3400, 12e6, 812]),
    "spaces": (["1 234", "999", "12 345 678"], [1234, 999, 12345678]),
    "no_breaks": (["1\u00a0234", "999", "12\u202f345"], [1234, 999, 12345]),
    "marks": (["1'234", "1_000", "7"], [1234, 1000, 7]),
    "codes": (["USD 1,000", "5 USD", "7.5"], [1000, 5, 7.5]),
}


@pytest.mark.parametrize("data", ["a.csv", "SELECT * FROM 'a.csv'"])
@pytest.mark.parametrize("name", AMOUNTS)
def test_amounts_are_numbers(name, data, tmp_path):
    texts, truth = AMOUNTS[name]
    write("a.csv", "|", amount=texts * (N // 3), **NUMBERS, sex=SEX)
    np.testing.assert_allclose(values(tmp_path, "amount", data), truth * (N // 3), rtol=1e-12)


def test_amounts_with_a_decimal_comma(tmp_path):
    texts = ["€ 1.234,56", "-7,5 €", "12.000,00 €"]
    comma = {name: [f"{v}".replace(".", ",") for v in column] for name, column in NUMBERS.items()}
    write("a.csv", ";", amount=texts * (N // 3), **comma, sex=SEX)
    found = values(tmp_path, "amount", "a.csv")
    np.testing.assert_allclose(found, [1234.56, -7.5, 12000] * (N // 3), rtol=1e-12)
    write("b.csv", ";", amount=["€ 1.234", "€ 12.500"] * (N // 2), **NUMBERS, sex=SEX)
    assert "pass --decimal" in fails("audit", "b.csv", "-g", "sex", cwd=tmp_path)


@pytest.mark.parametrize(
    "texts", [["$5", "€6"], ["5 %", "6"], ["23M", "24F"], ["23M", "24M"], ["5-6", "7"]]
)
def test_texts_that_are_no_amounts(texts, tmp_path):
    write("a.csv", amount=texts * (N // 2), **NUMBERS, sex=SEX)
    assert features(tmp_path, "a.csv") == [*"xyz"]


def test_a_late_amount_with_another_sign_is_named(tmp_path):
    texts = ["$5"] * 25_000
    sex = SEX[:2] * 12_500
    x = np.random.default_rng(0).normal(size=25_000).round(6)  # no row repeats another
    write("a.csv", amount=[*texts[:-1], "€5"], x=x, sex=sex)
    line = fails("audit", "a.csv", "-g", "sex", "-r", "1", cwd=tmp_path)
    assert "line 25001" in line
    assert "'€5'" in line


def test_a_folder_named_like_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write("home/x.csv", wrong=NUMBERS["x"], other=NUMBERS["y"], sex=SEX)
    write("~/x.csv", **NUMBERS, sex=SEX)
    for data in ("./~/x.csv", "*/x.csv", "~"):
        (tmp_path / "home" / "x.csv").rename(tmp_path / "kept") if data == "*/x.csv" else None
        if data != "~":
            assert features(tmp_path, data) == [*"xyz"]
    (tmp_path / "kept").rename(tmp_path / "home" / "x.csv")
    assert features(tmp_path, "~/x.csv") == ["wrong", "other"]  # the home folder


def test_a_database_named_like_an_extension(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "plain.db")) as database:
        database.register("given", pa.table({**NUMBERS, "sex": SEX}))
        database.execute("CREATE TABLE people AS FROM given")
    for name in ("md:x.db", "sqlite:x.db", "http:x.db"):
        (tmp_path / "plain.db").rename(tmp_path / name)
        assert features(tmp_path, name, "--query", "FROM people") == [*"xyz"]
        (tmp_path / name).rename(tmp_path / "plain.db")


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_column_that_one_part_lacks(order, tmp_path):
    Path("parts").mkdir()
    tables = [pa.table({**NUMBERS, "sex": SEX}), pa.table({"x": NUMBERS["x"], "sex": SEX})]
    for name, table in zip(order, tables, strict=True):
        pq.write_table(table, f"parts/{name}.parquet")
    line = fails("audit", "parts", "-g", "sex", cwd=tmp_path)
    assert "no column 'y' in" in line


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("data", ["a.parquet", "SELECT * FROM 'a.parquet'"])
def test_durations_are_no_features(data, unit, tmp_path):
    lasts = pa.array(np.arange(N).astype(f"timedelta64[{unit}]"))
    pq.write_table(pa.table({**NUMBERS, "lasts": lasts, "sex": SEX}), "a.parquet")
    assert features(tmp_path, data) == [*"xyz"]


@pytest.mark.parametrize("data", ["a.csv", "SELECT * FROM 'a.csv'"])
def test_a_late_zero_in_front_does_not_lose_a_column(data, tmp_path):
    sex = SEX[:2] * 12_500
    x = np.random.default_rng(0).normal(size=25_000).round(6)  # no row repeats another
    late = [*(np.arange(24_999) * 7 % 500), "00012"]
    write("a.csv", x=x, late=late, sex=sex)
    assert features(tmp_path, data, "--keep-duplicates") == ["x", "late"]


@pytest.mark.parametrize(
    "mark", [codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE]
)
def test_a_file_of_a_byte_order_mark_only(mark, tmp_path):
    Path("a.csv").write_bytes(mark)
    assert "a.csv is empty" in fails("audit", "a.csv", "-g", "sex", cwd=tmp_path)


@pytest.mark.parametrize("encoding", ["utf-32", "utf-16", "utf-8-sig"])
def test_encodings_that_begin_with_a_mark(encoding, tmp_path):
    write("a.csv", **{"größe": NUMBERS["x"]}, y=NUMBERS["y"], sex=SEX)
    Path("b.csv").write_text(Path("a.csv").read_text(), encoding=encoding)
    for more in ([], ["--encoding", encoding]):
        assert features(tmp_path, "b.csv", *more) == ["größe", "y"]


def test_a_quoted_line_break_keeps_its_form(tmp_path):
    labels = ['"a\r\nb"', '"a\nb"'] * (N // 2)
    rows = zip(NUMBERS["x"], NUMBERS["y"], labels, strict=True)
    text = "x,y,sex\r\n" + "".join(f"{x},{y},{label}\r\n" for x, y, label in rows)
    Path("a.csv").write_bytes(text.encode())
    labels = {row["label"] for row in audit(tmp_path, "a.csv")["groups"]}
    assert labels == {"a\r\nb", "a\nb"}


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_parquet('people/*.parquet')",
        "SELECT t.* FROM read_parquet ('people/a.parquet') AS t WHERE t.x > -9",
        "WITH p AS (FROM parquet_scan('people/a.parquet')) FROM p",
        "SELECT * FROM read_csv('a.csv')",
    ],
)
def test_readers_in_a_query_read_with_our_types(query, tmp_path):
    Path("people").mkdir()
    pq.write_table(pa.table({**NUMBERS, "sex": SEX}), "people/a.parquet")
    write("a.csv", **NUMBERS, sex=["01", "1"] * (N // 2))
    found = audit(tmp_path, query)
    assert found["provenance"]["feature_names"] == [*"xyz"]
    if "csv" in query:
        assert {row["label"] for row in found["groups"]} == {"01", "1"}
    before = Path("people/a.parquet").read_bytes()
    words = [
        "audit",
        query,
        "-g",
        "sex",
        "--json",
        "people/a.parquet" if "csv" not in query else "a.csv",
    ]
    assert "is a file that is read" in fails(*words, cwd=tmp_path)
    assert Path("people/a.parquet").read_bytes() == before


@pytest.mark.parametrize(
    "call",
    ["read_csv('a.csv', delim=';')", "read_csv(['a.csv'])", "read_json('a.csv')", "glob('*')"],
)
def test_other_readers_in_a_query_are_refused(call, tmp_path):
    write("a.csv", **NUMBERS, sex=SEX)
    fails("audit", f"SELECT * FROM {call}", "-g", "sex", cwd=tmp_path)


@pytest.mark.parametrize("address", ["s3://bucket/a.parquet", "https://host/a.csv"])
@pytest.mark.parametrize("form", ["{}", "FROM '{}'", "FROM read_parquet('{}')"])
def test_addresses_are_told_apart_from_files(address, form, tmp_path):
    line = fails("audit", form.format(address), "-g", "sex", cwd=tmp_path)
    assert "download the file" in line
    assert "Python" in line


def test_the_address_of_a_file_is_its_path(tmp_path):
    line = fails("audit", "file:///tmp/my%20file.csv", "-g", "sex", cwd=tmp_path)
    assert "pass the path alone, '/tmp/my file.csv'" in line


def test_names_of_columns_that_a_spreadsheet_would_run(tmp_path):
    columns = {"-1+2": ["a"] * N, "@x": ["b"] * N, **NUMBERS, "sex": SEX}
    pq.write_table(pa.table({**columns, "raw": [b"=1"] * N}), "a.parquet")
    run("fit", "a.parquet", "-g", "sex", "-r", "1", "-o", "m.safetensors", cwd=tmp_path)
    words = ["transform", "m.safetensors", "a.parquet"]
    run(*words, "--keep", "-1+2", "--keep", "@x", "--out", "s.csv", cwd=tmp_path)
    assert Path("s.csv").read_text().splitlines()[0].split(",")[:2] == ['"\'-1+2"', '"\'@x"']
    assert "'raw' (binary)" in fails(*words, "--keep", "raw", "--out", "r.csv", cwd=tmp_path)


@posix
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_a_query_runs(number, tmp_path):
    write("a.csv", **NUMBERS, sex=SEX)
    query = "SELECT a.* FROM 'a.csv' a, 'a.csv' b, 'a.csv' c, 'a.csv' d, 'a.csv' e, 'a.csv' f"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [*COMMAND, "audit", f"{query} ORDER BY a.x * b.y", "-g", "sex", "--fail-above", "0.1"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(scratch)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    try:
        while not any(scratch.iterdir()) and process.poll() is None:
            time.sleep(0.01)  # until it has opened its table
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 128 + number, errors.decode()
    assert b"Traceback" not in errors
    assert not list(scratch.iterdir())


def test_a_query_may_fill_some_of_the_disk_only(tmp_path):
    from fairpca.cli.reader.read import open_table

    write("a.csv", **NUMBERS, sex=SEX)
    table = open_table("SELECT * FROM 'a.csv'")
    setting = "SELECT value FROM duckdb_settings() WHERE name = 'max_temp_directory_size'"
    assert table.rows(setting) == [("9.3 GiB",)]
    table.close()
