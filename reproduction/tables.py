"""All results as one tidy table, and the timing of the exact solver against the printed search."""

from __future__ import annotations

import csv
import io
import json
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy
import sklearn

from fairpca import __version__
from reproduction.results import Result

SEARCHES = {"u-fpca-golden": "u-fpca", "c-fpca-golden": "c-fpca"}


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows with the same keys, as comma-separated text with a header."""
    stream = io.StringIO()
    if rows:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return stream.getvalue()


def as_json(results: Sequence[Result]) -> str:
    """All results and what they were computed with."""
    content = {
        "environment": {
            "fairpca": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "machine": platform.machine(),
        },
        "results": [result.as_row() for result in results],
    }
    return json.dumps(content, indent=1, allow_nan=False) + "\n"


def timing(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Golden section against the exact solver: time, eigensolves, and what they reached.

    Sums over all numbers of components; the speedup is in seconds of all threads, which other work
    on the machine disturbs less. ``largest_excess`` is by how much a c-FPCA result exceeds
    its own cap; zero when none does.
    """
    by_key = {(r.dataset, r.variant, r.method, r.r): r for r in results}
    pairs: dict[tuple[str, str, str], list[tuple[Result, Result]]] = {}
    for (dataset, variant, method, rank), searched in by_key.items():
        exact = by_key.get((dataset, variant, SEARCHES.get(method, ""), rank))
        if exact is not None:
            pairs.setdefault((dataset, variant, exact.method), []).append((searched, exact))
    rows = []
    for (dataset, variant, method), both in pairs.items():
        searched_all, exact_all = zip(*both, strict=True)
        row: dict[str, Any] = {"dataset": dataset, "variant": variant, "method": method}
        for name, group in (("golden", searched_all), ("exact", exact_all)):
            row[f"{name}_seconds"] = sum(result.seconds for result in group)
            row[f"{name}_cpu_seconds"] = sum(result.cpu_seconds for result in group)
            row[f"{name}_eigensolves"] = sum(result.n_eigensolves for result in group)
            row[f"{name}_largest_excess"] = (
                max(max(result.largest_error - result.pca_harmed_error, 0.0) for result in group)
                if method == "c-fpca"
                else None
            )
        row["speedup"] = row["golden_cpu_seconds"] / row["exact_cpu_seconds"]
        rows.append(row)
    return rows
