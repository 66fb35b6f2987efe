"""Make ``rand_health.csv.gz``, the table of :func:`fairpca.datasets.load_rand_health`.

The source is a file in the wheel of statsmodels, which declares it to be in the public domain::

    pip install statsmodels
    python -m reproduction.pack_rand_health
"""

from __future__ import annotations

import csv
import gzip
import importlib.util
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from fairpca import datasets

RAND_HEALTH = Path(datasets.__file__).parent / "rand_health.csv.gz"


class Column(NamedTuple):
    """A column of the source, and how many decimals of it are kept."""

    source: str
    decimals: int


COLUMNS = {
    "doctor_visits": Column("mdvis", 0),
    "chronic_diseases": Column("disea", 1),
    "mental_health": Column("mhi", 1),
    "general_health": Column("xghindx", 1),
    "physical_limitation": Column("physlm", 2),
    "health_good": Column("hlthg", 0),
    "health_fair": Column("hlthf", 0),
    "health_poor": Column("hlthp", 0),
    "log_income": Column("linc", 2),
    "log_family_size": Column("lfam", 2),
    "education": Column("educdec", 1),
    "age": Column("xage", 1),
    "female": Column("female", 0),
    "child": Column("child", 0),
    "black": Column("black", 0),
}


def pack_rand_health(target: Path = RAND_HEALTH) -> None:
    """Write the bundled table. The same rows give the same text: no time stamp, no name."""
    with source_file().open(encoding="ascii", newline="") as stream:
        rows = first_years(csv.DictReader(stream))
    text = "".join(",".join(row) + "\n" for row in [list(COLUMNS), *rows])
    target.write_bytes(gzip.compress(text.encode("ascii"), mtime=0))


def source_file() -> Path:
    """The table of all years of all people, in the installed statsmodels."""
    spec = importlib.util.find_spec("statsmodels")
    if spec is None or spec.origin is None:
        raise ImportError("statsmodels holds the source of this table: pip install statsmodels.")
    return Path(spec.origin).parent / "datasets" / "randhie" / "src" / "randhie.csv"


def first_years(years: Iterable[dict[str, str]]) -> list[list[str]]:
    """One row for each person: the first year, unless race is imputed or a value is missing."""
    seen, rows = set(), []
    for year in years:
        known = year["black"] in ("0", "1") and all(year[c.source] for c in COLUMNS.values())
        if year["zper"] not in seen and known:
            rows.append([_with_decimals(year[c.source], c.decimals) for c in COLUMNS.values()])
        seen.add(year["zper"])
    return rows


def _with_decimals(value: str, decimals: int) -> str:
    """``13.73189`` as 13.7, ``12.0`` as 12: no zeros at the end."""
    return f"{round(float(value), decimals):g}"


if __name__ == "__main__":
    pack_rand_health()
