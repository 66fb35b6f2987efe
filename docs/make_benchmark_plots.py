"""Plots and summaries made from the stored measurements, for ``docs/make_pages.py``."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

DOCS = Path(__file__).parent
OURS, OTHERS = "#0072B2", "#000000"
LEAST = {"seconds": 1e-4, "MB": 1.0}  # that was measured
PARTS_SHOWN = {"core", "many_groups"}  # tables whose column "part" says something to readers

# Job in plain words, table, case, competitor as the table has it, competitor in plain words.
SUMMARY = [
    ("1,000,000 rows, 50 columns", "core", "1,000,000 x 50", "PCA", "scikit-learn's PCA"),
    ("100,000 rows, 500 columns", "core", "100,000 x 500", "PCA", "scikit-learn's PCA"),
    ("1,000 rows, 20 columns", "core", "1,000 x 20", "PCA", "scikit-learn's PCA"),
    (
        "ten groups, 1,000,000 rows, 50 columns",
        "many_groups",
        "FairPCA, 1,000,000 x 50, 10 groups, r = 10",
        "PCA",
        "scikit-learn's PCA",
    ),
    (
        "cross-validated, 100,000 rows, 50 columns",
        "folds",
        "100000 x 50, 2 groups",
        "FairPCA",
        "FairPCA, not cross-validated",
    ),
    (
        "cross-validated, 1,000 rows, 50 columns",
        "folds",
        "1000 x 50, 2 groups",
        "FairPCA",
        "FairPCA, not cross-validated",
    ),
    (
        "equal errors, 500 columns",
        "competitors",
        "parity, d = 500, r = 5",
        "the authors' golden section",
        "the paper's authors' search",
    ),
    (
        "equal errors, 500 columns",
        "competitors",
        "parity, d = 500, r = 5",
        "EigOpt's, Brent on the dual",
        "EigOpt's method (Shen et al. 2025)",
    ),
    (
        "least largest loss, 2 groups, 10 columns",
        "competitors",
        "least largest loss, d = 10, 2 groups, r = 3",
        "SDP, Clarabel",
        "semidefinite program (Samadi et al. 2018)",
    ),
    (
        "least largest loss, 16 groups, 1,000 columns",
        "many_groups",
        "least largest loss, d = 1000, 16 groups, r = 3",
        "multiplicative weights",
        "multiplicative weights (Samadi et al. 2018)",
    ),
    (
        "Nash welfare, 4 groups, 40 columns",
        "welfare",
        "Nash welfare, d = 40, 4 groups, r = 5",
        "SDP, Clarabel",
        "semidefinite program (Tantipongpipat et al. 2019)",
    ),
    (
        "robust error, RAND health data",
        "welfare",
        "robust error, RAND health, r = 3",
        "Riemannian subgradients",
        "Riemannian subgradients (Vu et al. 2022)",
    ),
    (
        "a Parquet file, 10,000,000 rows, 50 columns",
        "scale",
        "Parquet 10,000,000 x 50",
        "reading and X.T @ X",
        "reading the file and one product",
    ),
    (
        "a stream, 100 blocks of 4,000 rows, 50 columns",
        "scale",
        "partial_fit, 100 blocks of 4,000 x 50",
        "IncrementalPCA",
        "scikit-learn's IncrementalPCA",
    ),
    (
        "Dask on two workers, 2,000,000 rows, 50 columns",
        "scale",
        "dask 2,000,000 x 50, two worker processes",
        "svd_compressed",
        "PCA by dask's svd_compressed",
    ),
    (
        "sparse, 200,000 rows, 50,000 columns",
        "scale",
        "sparse 200,000 x 50,000, 0.1%, r = 20",
        "TruncatedSVD",
        "scikit-learn's TruncatedSVD",
    ),
]

# Rows of the table of held-out changes that its page shows, with the names that users know.
HELD_OUT_METHODS = {
    "u-FPCA": "u-FPCA",
    "c-FPCA": "c-FPCA",
    "min-max loss": 'MinMaxPCA(center="overall")',
    "efficient": "FairPCA",
    "efficient, cv=10": "FairPCACV",
    "best stop for the other half": "best stop in hindsight",
}
HELD_OUT_DATA = [
    ("70 public tables to report", "d/4, d/2"),
    ("LSAC, 26551 x 10", "5"),
    ("LSAC, 26551 x 10", "8"),
    ("TCRED, 30000 x 22", "6"),
]
HELD_OUT_COLUMNS = ["harmed group", "other group", "harmed worse", "both worse", "of"]


def read(name):
    """Rows of a stored table."""
    with (DOCS / f"benchmarks_{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def measured(table, case, competitor):
    """Our seconds and the competitor's; the first row of the table that is about both."""
    for row in read(table):
        if table == "core":
            if row["data"] == case:
                return float(row["FairPCA seconds"]), float(row["PCA seconds"])
        elif row["case"].startswith(case) and row["compared with"].startswith(competitor):
            return float(row["seconds"]), float(row["its seconds"])
    raise ValueError(f"benchmarks_{table}.csv has no row about {case!r} and {competitor!r}.")


def in_words(ratio):
    """How our time compares, in words that need no convention."""
    if ratio < 0.95:
        return f"is {1 / ratio:.{0 if ratio < 0.1 else 1}f} times faster"
    return "is equally fast" if ratio <= 1.05 else f"takes {ratio:.1f} times as long"


def summary():
    """The first table of the benchmarks page."""
    rows = []
    for job, table, case, competitor, name in SUMMARY:
        ours, its = measured(table, case, competitor)
        rows.append(
            {
                "job": job,
                "ours, s": f"{ours:.2g}",
                "compared with": name,
                "theirs, s": f"{its:.2g}",
                "fairpca": in_words(ours / its),
            }
        )
    return rows


def held_out():
    """The table of the page about held-out rows, from the stored one, which is much longer."""
    with (DOCS / "held_out.csv").open(newline="", encoding="utf-8") as file:
        stored = list(csv.DictReader(file))
    rows = []
    for data in HELD_OUT_DATA:
        for row in stored:
            if (row["data"], row["r"]) == data and row["method"] in HELD_OUT_METHODS:
                names = {
                    "data": row["data"].removesuffix(" to report"),
                    "r": row["r"],
                    "method": HELD_OUT_METHODS[row["method"]],
                }
                rows.append(names | {column: row[column] for column in HELD_OUT_COLUMNS})
    return rows


def shown(name):
    """A stored table as its page shows it, without columns that only the scripts need."""
    rows = read(name)
    hidden = {"target", "status"} | (set() if name in PARTS_SHOWN else {"part"})
    columns = [
        column for column in rows[0] if column not in hidden and any(row[column] for row in rows)
    ]
    return [{column: row[column] for column in columns} for row in rows]


def slope(points):
    """The exponent with which the last half of the points grows, by least squares of logarithms."""
    x, y = np.log(points).T
    last = slice(len(x) // 2 if len(x) > 3 else 0, None)
    return float(np.polyfit(x[last], y[last], 1)[0])


def draw_growth(folder):
    """Seconds above, extra memory below, against rows, features, components and groups."""
    rows = read("growth")
    parts = list(dict.fromkeys(row["part"] for row in rows))
    figure = Figure(figsize=(2.6 * len(parts), 5.2), layout="constrained")
    axes = figure.subplots(2, len(parts), squeeze=False, sharex="col")
    for part, (top, bottom) in zip(parts, axes.T, strict=True):
        chosen = [row for row in rows if row["part"] == part]
        for axis, column in ((top, "seconds"), (bottom, "MB")):
            for prefix, name, color in (("", "FairPCA", OURS), ("its ", "PCA", OTHERS)):
                points = [
                    (float(row["value"]), max(float(row[prefix + column]), LEAST[column]))
                    for row in chosen
                    if row[prefix + column]
                ]
                label = f"{name}, slope {round(slope(points), 1) + 0.0:.1f}"
                axis.plot(*zip(*points, strict=True), "o-", color=color, label=label)
            axis.set(xscale="log", yscale="log")
            low, high = axis.get_ylim()
            if high < 20 * low:  # otherwise noise fills the panel
                axis.set_ylim(low / 4, high * 4)
            axis.grid(color="0.9")
            axis.legend(frameon=False, fontsize=8)
        bottom.minorticks_off()
        bottom.set_xticks([float(row["value"]) for row in chosen])
        bottom.xaxis.set_major_formatter(EngFormatter(sep=""))
        bottom.set_xlabel(part)
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("MB beyond the data")
    figure.savefig(folder / "growth.png", dpi=130)


def draw_downstream(folder):
    """Gain of each group in each use of the scores, with its interval; hollow if it holds 0."""
    rows = read("downstream")
    parts = list(dict.fromkeys(row["part"] for row in rows))
    figure = Figure(figsize=(9.5, 7.5), layout="constrained")
    for axis, part in zip(figure.subplots(len(parts), 1, sharex=True), parts, strict=True):
        chosen = [row for row in rows if row["part"] == part]
        measures = list(dict.fromkeys(row["measure"] for row in chosen))
        groups = list(dict.fromkeys(row["group"] for row in chosen))
        styles = dict(zip(groups, (("#D55E00", "^", -0.13), (OURS, "o", 0.13)), strict=True))
        axis.axvline(0, color="0.6", linewidth=1)
        for group, (color, marker, _) in styles.items():
            axis.plot([], [], marker, color=color, label=group)
        for row in chosen:
            color, marker, shift = styles[row["group"]]
            place = measures.index(row["measure"]) + shift
            axis.plot([float(row["from"]), float(row["to"])], [place, place], color=color)
            face = color if row["beyond chance"] else "white"
            axis.plot(float(row["gain, %"]), place, marker, color=color, markerfacecolor=face)
        axis.set_yticks(range(len(measures)), measures)
        axis.set_ylim(len(measures) - 0.5, -0.5)
        axis.set_title(part, loc="left", fontsize=10)
        axis.grid(axis="x", color="0.9")
        axis.legend(frameon=False, loc="lower right")
    axis.set_xlabel(
        "gain on held-out people, % of the figure under PCA; right of the line is better"
    )
    figure.savefig(folder / "downstream.png", dpi=110)


def draw_all() -> None:
    """Draw into the folder of static files."""
    folder = DOCS / "_static" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    draw_growth(folder)
    draw_downstream(folder)
