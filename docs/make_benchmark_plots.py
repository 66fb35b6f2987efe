"""Draw the plots of the benchmarks from the stored tables; run by every build of the site."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

DOCS = Path(__file__).parent
OURS, OTHERS = "#0072B2", "#000000"
LEAST = {"seconds": 1e-4, "MB": 1.0}  # that was measured


def read(name):
    """Rows of a stored table."""
    with (DOCS / f"benchmarks_{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


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
            axis.grid(color="0.9")
            axis.legend(frameon=False, fontsize=8)
        bottom.minorticks_off()
        bottom.set_xticks([float(row["value"]) for row in chosen])
        bottom.xaxis.set_major_formatter(EngFormatter(sep=""))
        bottom.set_xlabel(part)
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("MB beyond the data")
    figure.savefig(folder / "growth.png", dpi=130)


def draw_ratios(folder):
    """Our time in units of the other's, for every row with a competitor."""
    rows = [row for name in ("competitors", "many_groups", "scale") for row in read(name)]
    rows = [row for row in rows if row["ratio"]][::-1]
    figure = Figure(figsize=(9.5, 0.8 + 0.3 * len(rows)), layout="constrained")
    axis = figure.subplots()
    places = range(len(rows))
    axis.axvline(1, color="0.6", linewidth=1)
    axis.plot([float(row["ratio"]) for row in rows], places, "o", color=OURS, label="measured")
    asked = [(row["target"].split(",")[0], place) for row, place in zip(rows, places, strict=True)]
    asked = [(float(limit), place) for limit, place in asked if limit[:1].isdigit()]
    axis.plot(*zip(*asked, strict=True), "|", color="#D55E00", markersize=12, label="at most")
    labels = [f"{row['case']} / {row['compared with']}" for row in rows]
    axis.set_yticks(list(places), labels, fontsize=8)
    axis.set(xscale="log", xlabel="our time / the other's")
    axis.grid(axis="x", color="0.9")
    axis.legend(frameon=False, loc="lower left")
    figure.savefig(folder / "ratios.png", dpi=130)


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
    draw_ratios(folder)
    draw_downstream(folder)


if __name__ == "__main__":
    draw_all()
