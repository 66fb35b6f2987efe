"""Beyond the paper: the faces of LFW by sex and race, eight groups at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from fairpca import FairPCA, GroupMoments, MinMaxPCA
from fairpca.datasets import load_lfw
from reproduction import drawing
from reproduction.results import header
from reproduction.runner import Job
from reproduction.tools import quietly, write_text

NAME = "lfw_sex_by_race"
RANKS = (5, 10, 15)

#: Each with the method whose colour and marker it has in the figures.
COMPARED: Mapping[str, tuple[str, Callable[[int], Any]]] = {
    "PCA": ("pca", lambda r: FairPCA(r, alpha=1.0)),
    "c-FPCA": ("c-fpca", lambda r: FairPCA(r, constraint="no_worse")),
    "least largest error": ("fairpca", lambda r: MinMaxPCA(r, criterion="error", center="overall")),
}


@dataclass(frozen=True)
class GroupResult:
    """Error of one group under one method with r components, and the figures over all groups."""

    r: int
    method: str
    group: str
    rows: int
    error: float
    overall_error: float
    spread: float
    duality_gap: float
    status: str


def belongs_to(jobs: Sequence[Job]) -> bool:
    """Whether these jobs compare women with men in all of LFW."""
    return ("lfw", "unbalanced", "c-fpca") in [job.names for job in jobs]


def run_intersections(folder: Path, load: Callable[[], Bunch] = load_lfw) -> list[GroupResult]:
    """All results; those of an earlier run in the folder are not computed again."""
    path = folder / f"{NAME}.json"
    head = header("lfw", "sex by race", ", ".join(COMPARED))
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        results = [GroupResult(**fields) for fields in stored.pop("results")]
        if stored == head:
            return results
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        pass
    results = list(_fit_all(load()))
    content = {**head, "results": [asdict(result) for result in results]}
    write_text(path, json.dumps(content, indent=1) + "\n")
    return results


def _fit_all(lfw: Bunch) -> Iterator[GroupResult]:
    groups = np.column_stack([lfw.sensitive_features, lfw.race])
    moments = GroupMoments.from_data(lfw.data, groups)
    for r in RANKS:
        for name, (_, make) in COMPARED.items():
            with quietly():
                fit = make(r).fit(moments)
            for group, rows, error in zip(
                fit.groups_, fit.group_sizes_, fit.group_errors_, strict=True
            ):
                yield GroupResult(
                    r=r,
                    method=name,
                    group=str(group),
                    rows=int(rows),
                    error=float(error),
                    overall_error=fit.reconstruction_error_,
                    spread=fit.disparity_,
                    duality_gap=fit.duality_gap_,
                    status=fit.status_,
                )


def draw_intersections(results: Sequence[GroupResult]) -> Any:
    """Errors of the groups, one line each, with a panel for each number of components."""
    ranks = sorted({result.r for result in results})
    sizes = {result.group: result.rows for result in results}
    places = {group: -i for i, group in enumerate(sizes)}
    figure, axes = drawing.grid(1, len(ranks), 1.6 + 2.4 * len(ranks), 3.4, sharey=True)
    for r, panel in zip(ranks, axes[0], strict=True):
        for method, (like, _) in COMPARED.items():
            chosen = [x for x in results if (x.r, x.method) == (r, method)]
            look = drawing.LOOKS[like]
            panel.plot(
                [x.error for x in chosen],
                [places[x.group] for x in chosen],
                color=look.color,
                marker=look.marker,
                linestyle="",
            )
        panel.set_title(f"{r} components")
        panel.set_xlabel("Group error")
    axes[0, 0].set_yticks(list(places.values()), [f"{g} ({n})" for g, n in sizes.items()])
    looks = {method: drawing.LOOKS[like] for method, (like, _) in COMPARED.items()}
    drawing.legend_below(
        figure,
        [
            drawing.handle(name, look.color, look.marker, linestyle="")
            for name, look in looks.items()
        ],
    )
    return figure
