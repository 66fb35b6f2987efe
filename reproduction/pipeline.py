"""The whole reproduction: a folder with tables, figures and checked claims."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairpca.datasets import load_lfw
from reproduction import tables
from reproduction.claims import Claim, check_claims
from reproduction.results import Result
from reproduction.runner import Job, plan, run_jobs
from reproduction.tools import Progress, silent, writable_folder, write_text

if TYPE_CHECKING:
    from reproduction.intersections import GroupResult


@dataclass(frozen=True)
class Report:
    """What a reproduction found, and the files it wrote."""

    results: list[Result]
    claims: list[Claim]
    files: list[Path]


def reproduce(
    out: str | os.PathLike[str],
    *,
    datasets: Iterable[str] | None = None,
    methods: Iterable[str] | None = None,
    variants: Iterable[str] | None = None,
    progress: Progress = silent,
) -> Report:
    """Run the paper's experiments and write tables, figures and checked claims.

    Parameters
    ----------
    out : path
        Folder to write to; made if it does not exist. Results of an earlier run there are reused.
    datasets, methods, variants : iterable of str, optional
        Names from ``DATASETS``, ``METHODS`` and ``VARIANTS``; by default all of the paper's.
    progress : callable, optional
        Called with what is being done and the fraction that is done, or None where that is unknown.

    Returns
    -------
    Report

    Examples
    --------
    >>> from reproduction import reproduce
    >>> report = reproduce("paper", datasets=["tcred"])  # doctest: +SKIP
    >>> [claim.finding for claim in report.claims]  # doctest: +SKIP
    """
    jobs = plan(datasets, methods, variants)
    folder = prepare_folder(out)
    results = run_jobs(jobs, folder / "results", progress)
    beyond = run_beyond(jobs, folder / "results", progress)
    progress("drawing figures")
    report = publish(results, folder, beyond)
    if not beyond:
        return report
    from reproduction import faces

    progress("rebuilding faces")
    return replace(report, files=report.files + faces.draw_faces(load_lfw(), folder / "figures"))


def run_beyond(jobs: Sequence[Job], folder: Path, progress: Progress = silent) -> list[GroupResult]:
    """What goes beyond the paper: with LFW, faces by sex and race."""
    from reproduction import intersections

    if not intersections.belongs_to(jobs):
        return []
    progress("faces by sex and race")
    return intersections.run_intersections(folder)


def prepare_folder(out: str | os.PathLike[str]) -> Path:
    """Make the output folder; fail before any computing if files cannot be written or drawn."""
    folder = writable_folder(Path(out))
    writable_folder(folder / "results")
    try:
        from reproduction import drawing  # noqa: F401
    except ImportError as error:
        raise ImportError("the figures need matplotlib: pip install matplotlib pymoo.") from error
    return folder


def publish(results: Sequence[Result], folder: Path, beyond: Sequence[GroupResult] = ()) -> Report:
    """Write tables, claims and figures of these results."""
    from reproduction import drawing, figures, intersections

    claims = check_claims(results)
    texts = {
        "results.csv": tables.as_csv([result.as_row() for result in results]),
        "results.json": tables.as_json(results),
        "claims.csv": tables.as_csv([asdict(claim) for claim in claims]),
        "timing.csv": tables.as_csv(tables.timing(results)),
    }
    if beyond:
        texts[f"{intersections.NAME}.csv"] = tables.as_csv([asdict(result) for result in beyond])
    for name, text in texts.items():
        write_text(folder / name, text)
    files = [folder / name for name in texts] + figures.draw_all(results, folder)
    if beyond:
        draw = partial(intersections.draw_intersections, beyond)
        files += drawing.save(draw, folder / "figures", intersections.NAME)
    return Report(list(results), claims, files)
