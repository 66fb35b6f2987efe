"""Tables of weights, as R, SPSS and spreadsheets write them: the PCA that somebody has.

A row for each column of the data: its name, then ``mean`` and ``scale`` if they are known, then a
weight for each component. Lines above and below, such as the titles of SPSS, are skipped, and so
are communalities. A blank weight is 0: SPSS leaves small ones out. Weights need not be orthonormal:
loadings that were multiplied by deviations or rotated span the same space, which is what is judged.
"""

from __future__ import annotations

import csv
import re
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from fairpca._typing import Array
from fairpca.report.text import counted

_MEANS = ("mean", "means", "center", "centre")
_SCALES = ("scale", "sd", "std")
_NO_WEIGHTS = ("h2", "u2", "com", "communality", "uniqueness", "initial", "extraction")
_DEPENDENT = 1e-10  # Weights depend on each other if less than this share is their own.
_OTHER_UNITS = 5.0  # Means and deviations of other rows in the same units differ by less.
_FAR = 2.0  # deviations between the means


class Weights(NamedTuple):
    """What a table of weights says of each column of the data."""

    names: list[str]
    mean: Array | None
    scale: Array | None
    weights: Array  # of shape (n_features, n_components)
    n_blank: int  # how many weights were left out

    def notes(self, standardize: bool) -> list[str]:
        """What the table does not say."""
        said = []
        if self.mean is None:
            also = ""
            if self.scale is None and standardize:
                also = " and standardised"
            said.append(
                f"The table of weights has no means: columns are centred{also} by these rows."
            )
        if self.n_blank:
            said.append(f"{counted(self.n_blank, 'blank weight')} counted as 0.")
        return said


def read_weights(path: str) -> Weights:
    """Read a table of weights; each mistake has a message of its own."""
    rows = _rows_of(path)
    places = [i for i, row in enumerate(rows) if _is_weights(row)]
    if not places:
        raise ValueError(
            f"{path} does not hold weights: no line has a name and then numbers; it needs a line "
            "for each column of the data with its name, its mean and scale if they are known, and "
            "a weight for each component."
        )
    table = rows[places[0] : places[-1] + 1]
    above = [row for row in rows[: places[0]] if sum(map(bool, row)) > 1 or not row[0]]
    width = max(map(len, table))
    header = [f"component {j}" for j in range(width)]
    if above:
        header = [name.casefold() for name in above[-1]]
    if len(above) > 1 and all(above[-2][:2]) and all(above[-1][:2]):
        raise ValueError(
            f"{path}: {', '.join(above[-1])} are neither names nor weights; correct it."
        )
    for row in table:
        if len(row) != len(header):
            raise ValueError(
                f"{path}: the line of {row[0]!r} has {len(row)} cells, but the line of names has "
                f"{len(header)}; give every line as many, blank ones included."
            )
    names = [row[0] for row in table]
    twins = sorted({name for name in names if names.count(name) > 1})
    if twins:
        raise ValueError(f"{path} names {twins[0]!r} twice; leave one line out.")
    columns = {
        title: [_number(path, row[0], cell) for row, cell in zip(table, cells, strict=True)]
        for title, cells in list(zip(header, zip(*table, strict=True), strict=True))[1:]
    }
    mean = _known(path, columns, _MEANS)
    scale = _known(path, columns, _SCALES)
    if scale is not None and not (scale > 0).all():
        raise ValueError(f"{path}: scales must be above 0, because columns are divided by them.")
    others = [own for name, own in columns.items() if name not in _NO_WEIGHTS]
    if not others:
        raise ValueError(f"{path} holds no weights; add a column of them for each component.")
    weights = np.array(others, float).T
    blank = np.isnan(weights)
    return Weights(names, mean, scale, np.where(blank, 0.0, weights), int(blank.sum()))


def pca_of(path: str, read: Weights, X: Array, standardize: bool) -> Pipeline:
    """The PCA of a table of weights, for rows X of its columns.

    What the table does not say is taken from X: the means, and, without means, the deviations.
    """
    mean = read.mean
    scale = read.scale
    bare = scale is None and mean is None
    if not bare and not standardize:
        raise ValueError(f"{path} says how columns are scaled; leave out --no-standardize.")
    if bare and standardize:
        deviations = X.std(axis=0)
        scale = np.where(deviations > 0, deviations, 1.0)
    if mean is None:
        mean = X.mean(axis=0)
    else:
        _refuse_other_units(path, read, X)
    if scale is None:
        scale = np.ones(len(mean))
    d, r = read.weights.shape
    basis, triangle = np.linalg.qr(read.weights)
    sizes = np.abs(np.diag(triangle))
    if r > d or sizes.min() <= _DEPENDENT * sizes.max():
        raise ValueError(
            f"{path}: the {r} columns of weights depend on each other; keep one for each component."
        )
    scaler = StandardScaler()
    scaler.mean_ = mean
    scaler.scale_ = scale
    scaler.var_ = scale**2
    scaler.n_features_in_ = d
    scaler.feature_names_in_ = np.asarray(read.names, object)
    pca = PCA(n_components=r)
    pca.components_ = basis.T
    pca.mean_ = np.zeros(d)
    pca.n_components_ = r
    pca.n_features_in_ = d
    return Pipeline([("scale", scaler), ("pca", pca)])


def _refuse_other_units(path: str, read: Weights, X: Array) -> None:
    """Refuse means and scales that these columns can only have in other units."""
    for j, name in enumerate(read.names):
        own_mean = float(X[:, j].mean())
        own_scale = float(X[:, j].std())
        mean = float(read.mean[j])  # type: ignore[index]
        times = np.inf
        if mean:
            times = own_mean / mean
        apart = abs(own_mean - mean) > _FAR * own_scale
        if read.scale is not None:
            spread = own_scale / float(read.scale[j])
            apart = spread > 0 and 0.5 < times / spread < 2
            times = spread
        if apart and 0 < times < np.inf and not 1 / _OTHER_UNITS < times < _OTHER_UNITS:
            raise ValueError(
                f"{path} was made in other units than these rows: its mean of {name!r} is "
                f"{mean:.3g}, but theirs is {own_mean:.3g}; multiply the column of the data, or "
                "its mean and scale in the table, so that they agree."
            )


def _rows_of(path: str) -> list[list[str]]:
    """The cells of the lines, by the delimiter that makes most of them lines of weights."""
    content = Path(path).read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", "replace")  # as SPSS writes on Windows
    found = []
    for delimiter in (",", ";", "\t", "|"):
        lines = csv.reader(text.splitlines(), delimiter=delimiter)
        rows = [[cell.strip() for cell in line] for line in lines if any(map(str.strip, line))]
        if delimiter != ",":
            rows = [[row[0], *(cell.replace(",", ".") for cell in row[1:])] for row in rows]
        found.append(rows)
    return max(found, key=lambda rows: sum(map(_is_weights, rows)))


def _is_weights(row: list[str]) -> bool:
    """Whether a line has a name, and behind it numbers or blanks only."""
    numbers = [_is_number(cell) for cell in row[1:] if cell]
    return bool(row[0]) and bool(numbers) and all(numbers)


def _is_number(cell: str) -> bool:
    return re.fullmatch(r"[-+−]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", cell, re.IGNORECASE) is not None


def _number(path: str, name: str, cell: str) -> float:
    """The number in a cell; NaN if it is blank."""
    if not cell:
        return float("nan")
    if not _is_number(cell) or not isfinite(float(cell.replace("−", "-"))):
        raise ValueError(f"{path}: the line of {name!r} holds {cell!r}; give finite numbers.")
    return float(cell.replace("−", "-"))


def _known(path: str, columns: dict[str, list[Any]], titles: tuple[str, ...]) -> Array | None:
    """Take the column of one of these titles out, if there is one."""
    given = [columns.pop(title) for title in titles if title in columns]
    if not given:
        return None
    values = np.array(given[0], float)
    if np.isnan(values).any():
        raise ValueError(f"{path}: a {titles[0]} is blank; give one for every column, or none.")
    return values
