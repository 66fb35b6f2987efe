"""Results as plain numbers, and the files they are kept in.

There is one file per dataset, variant and method. It is written as a whole or not at all, so after
an interruption the next run computes only what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from fairpca import __version__
from reproduction.tools import write_text

_FORMAT = 2


@dataclass(frozen=True)
class Result:
    """One method on one dataset with one number of components r.

    Groups are in sorted order of their labels. ``disparity`` is the error of the group that PCA
    harms minus that of the other; ``pca_harmed_error`` is the error of the harmed group under PCA,
    the cap of c-FPCA. ``duality_gap`` is None where nothing is certified. ``seconds`` is wall-clock
    time and ``cpu_seconds`` that of all threads, both without the pass over the data; PCA is fitted
    once for all r, and its time is that of this one fit.
    """

    dataset: str
    variant: str
    method: str
    r: int
    overall_error: float
    group_1: str
    group_2: str
    error_1: float
    error_2: float
    harmed_group: str
    disparity: float
    pca_harmed_error: float
    alpha: float | None
    duality_gap: float | None
    status: str
    seconds: float
    cpu_seconds: float
    n_eigensolves: int

    @property
    def fairness_measure(self) -> float:
        """The paper's F."""
        return self.disparity**2

    @property
    def largest_error(self) -> float:
        """The error of the worse-off group."""
        return max(self.error_1, self.error_2)

    def as_row(self) -> dict[str, str | int | float | None]:
        """All numbers, derived ones too."""
        row = asdict(self)
        row["fairness_measure"] = self.fairness_measure
        return row


class ResultFiles:
    """The folder of finished jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, dataset: str, variant: str, method: str) -> Path:
        """Where the results of a job are kept."""
        return self.folder / f"{dataset}_{variant}_{method}.json"

    def read(
        self, dataset: str, variant: str, method: str, ranks: Sequence[int]
    ) -> list[Result] | None:
        """The results of a job, or None if this version of fairpca has not finished it."""
        try:
            stored = json.loads(self.path(dataset, variant, method).read_text(encoding="utf-8"))
            results = [Result(**fields) for fields in stored.pop("results")]
        except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
            return None
        complete = stored == header(dataset, variant, method) and all(
            (result.dataset, result.variant, result.method) == (dataset, variant, method)
            for result in results
        )
        return results if complete and [result.r for result in results] == list(ranks) else None

    def write(self, dataset: str, variant: str, method: str, results: Sequence[Result]) -> None:
        """Keep the results of a finished job."""
        content = {
            **header(dataset, variant, method),
            "results": [asdict(result) for result in results],
        }
        write_text(self.path(dataset, variant, method), json.dumps(content, indent=1) + "\n")


def header(dataset: str, variant: str, method: str) -> dict[str, str | int]:
    """What a file of results of this job and version begins with."""
    return {
        "format": _FORMAT,
        "fairpca": __version__,
        "dataset": dataset,
        "variant": variant,
        "method": method,
    }
