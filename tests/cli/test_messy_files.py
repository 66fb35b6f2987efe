"""Generated messy files of known content: nothing is read wrongly, and nothing is lost in silence.

A file may be refused, with a reason. If it is read, then every row counts, every number is the one
that was written, labels are as they were written, and every column is used or listed as left out.
"""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from helpers.command import run
from helpers.files import read_table
from helpers.marks import slow_case

from fairpca.exceptions import TableError

FILES, BLOCKS = 40, 8  # 320 files
BLANKS = ["", "NA", "n/a", "NULL", "nan", "#N/A"]


def grouped(value, gap, point, places):
    """A number with a mark between thousands, and a decimal mark."""
    return f"{value:,.{places}f}".replace(",", "\0").replace(".", point).replace("\0", gap)


def plain(rng, n, point):
    places = int(rng.integers(0, 5))
    values = np.round(rng.normal(size=n) * 10.0 ** rng.integers(0, 5), places)
    return values, [f"{v:.{places}f}".replace(".", point) for v in values]


def scientific(rng, n, point):
    values = np.array([float(f"{v:.3e}") for v in rng.normal(size=n) * 1e8])
    return values, [f"{v:.3e}".replace(".", point) for v in values]


def thousands(rng, n, point):
    gap = rng.choice([" ", "\u00a0", "\u202f", "'", "_", "," if point == "." else "."])
    values = np.round(rng.uniform(-2e6, 2e6, n), 2)
    return values, [grouped(v, gap, point, 2) for v in values]


def money(rng, n, point):
    sign = str(rng.choice(["$", "£", "€", "USD", "CHF"]))
    gap = "," if point == "." else "."
    values = np.round(rng.uniform(-9e5, 9e5, n), 2)
    texts = [f"{sign}{grouped(abs(v), gap, point, 2)}" for v in values]
    if rng.random() < 0.5:
        return values, [f"({t})" if v < 0 else t for v, t in zip(values, texts, strict=True)]
    return values, [f"-{t}" if v < 0 else t for v, t in zip(values, texts, strict=True)]


def percent(rng, n, point):
    gap = str(rng.choice(["", " ", "\u00a0"]))
    values = np.round(rng.uniform(-20, 120, n), 1)
    return values, [f"{v:.1f}{gap}%".replace(".", point) for v in values]


def short(rng, n, point):
    values = np.round(rng.uniform(1, 900, n), 1)
    scale = rng.choice(["", "K", "M"], n)
    factor = np.array([{"": 1.0, "K": 1e3, "M": 1e6}[s] for s in scale])
    texts = [f"{v:.1f}{s}".replace(".", point) for v, s in zip(values, scale, strict=True)]
    return values * factor, texts


def flags(rng, n, point):
    values = rng.integers(0, 2, n)
    words = rng.choice([["false", "true"], ["False", "True"], ["FALSE", "TRUE"]])
    return values.astype(float), [words[v] for v in values]


def scale(rng, n, point):
    values = rng.integers(1, 6, n)
    return values.astype(float), [str(v) for v in values]


NUMBERS = [plain, plain, scientific, thousands, money, percent, short, flags, scale]

WORDS = ["yes", "no", 'say "so"', "one, two; three", "a\nb"]


def digits(rng, n):
    """Dates as whole numbers."""
    return [str(20_240_101 + 100 * m + d) for m, d in rng.integers(0, 12, (n, 2))]


def currencies(rng, n):
    """Amounts in two currencies."""
    return [f"{v} {'$€'[i % 2]}" for i, v in enumerate(rng.integers(1, 99, n))]


#: Columns that are no numbers, or none that measure anything.
OTHERS = {
    "codes": lambda rng, n: [f"{v:05d}" for v in rng.integers(1, 99_999, n)],
    "day": lambda rng, n: [f"2024-{m:02d}-{d:02d}" for m, d in rng.integers(1, 13, (n, 2))],
    "digits": digits,
    "words": lambda rng, n: rng.choice(WORDS, n),
    "mixed": currencies,
    "versions": lambda rng, n: [f"{a}.{b}.{c}" for a, b, c in rng.integers(0, 9, (n, 3))],
    "sizes": lambda rng, n: [f"{v}M" for v in rng.integers(1, 99, n)],
    "patient_id": lambda rng, n: rng.permutation(n),
    "empty": lambda rng, n: [""] * n,
}
LABELS = [["f", "m"], ["01", "1"], ["1", "2"], ["a b", "A B"], ["1.0", "1"], ["ü", "ß"], ["-", "+"]]


def cell(text, mark, always):
    text = str(text)
    if always or any(c in text for c in (mark, '"', "\n")):
        return '"' + text.replace('"', '""') + '"'
    return text


def messy(seed, folder):
    """A file, its options, numbers by column, other columns, and labels."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(40, 160))
    mark = str(rng.choice([",", ";", "\t", "|"]))
    point = str(rng.choice([".", ","])) if mark != "," else "."
    numbers, columns = {}, {}
    for j in range(int(rng.integers(2, 7))):
        values, texts = NUMBERS[rng.integers(len(NUMBERS))](rng, n, point)
        gone = rng.random(n) < rng.choice([0, 0, 0.1])
        blank = str(rng.choice(BLANKS))
        numbers[f"x{j}"] = np.where(gone, np.nan, values)
        columns[f"x{j}"] = [blank if g else t for g, t in zip(gone, texts, strict=True)]
    others = rng.choice([*OTHERS], int(rng.integers(0, 4)), replace=False).tolist()
    columns |= {name: [*OTHERS[name](rng, n)] for name in others}
    labels = [str(label) for label in rng.choice(LABELS[rng.integers(len(LABELS))], n)]
    columns["group"] = labels
    names = rng.permutation([*columns]).tolist()
    always = rng.random() < 0.3
    lines = [names, *zip(*(columns[name] for name in names), strict=True)]
    end = str(rng.choice(["\n", "\r\n"]))
    text = end.join(mark.join(cell(value, mark, always) for value in line) for line in lines)
    encoding = str(rng.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"]))
    if encoding == "cp1252" and "\u202f" in text:
        encoding = "utf-8"
    raw = (text + end * int(rng.integers(0, 3))).encode(encoding)
    name = str(rng.choice(["d.csv", "d.csv", "d.txt", "d.CSV", "d.csv.gz"]))
    path = folder / name
    path.write_bytes(gzip.compress(raw) if name.endswith("gz") else raw)
    told = {"encoding": encoding} if encoding == "cp1252" else {}
    return path, told, numbers, others, labels


@pytest.mark.parametrize("block", [0, *(slow_case(block) for block in range(1, BLOCKS))])
def test_messy_files(block, tmp_path):
    refused = list[str]()
    for seed in range(block * FILES, (block + 1) * FILES):
        folder = tmp_path / str(seed)
        folder.mkdir()
        path, told, numbers, others, labels = messy(seed, folder)
        try:
            found = read_table(path, "group", missing="available", **told)
        except TableError as error:
            refused.append(f"{seed}: {error.fact}")
            continue
        assert found.sensitive_features.tolist() == labels, seed
        listed = {*found.feature_names, *found.record.left_out}
        assert listed == {*numbers, *others}, seed
        assert not {*found.feature_names} & {*others}, seed
        for name in found.feature_names:
            read = found.data[name].to_numpy()
            np.testing.assert_allclose(read, numbers[name], rtol=1e-12, err_msg=f"{seed} {name}")
        lost = {name for name in numbers if name in found.record.left_out}
        assert not lost, (seed, lost, found.record.left_out)
    assert len(refused) <= 0.2 * FILES, refused


@pytest.mark.parametrize("seed", range(4))
def test_the_command_says_what_it_left_out(seed, tmp_path):
    path, told, numbers, others, _ = messy(seed, tmp_path)
    words = ["audit", path, "-g", "group", "-r", "1", "--json", "-", "--keep-duplicates"]
    words += [word for name, value in told.items() for word in (f"--{name}", value)]
    found = json.loads(run(*words, cwd=tmp_path).stdout)
    left_out = {row["name"] for row in found["left_out"] if row["what"] == "column"}
    assert {*found["provenance"]["feature_names"]} | left_out == {*numbers, *others}
