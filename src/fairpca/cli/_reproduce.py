"""The command ``fairpca reproduce``: parses, calls :mod:`fairpca.reproduction`, prints."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from fairpca.reproduction import Claim, Job, Result, Step

Names = list[str] | None


def reproduce(
    dataset: Annotated[
        Names,
        typer.Option(help="tcred, lfw, lsac or lsac-without-other; repeat for several."),
    ] = None,
    method: Annotated[
        Names,
        typer.Option(help="pca, fairpca, mofpca, u-fpca, c-fpca, ...; repeat for several."),
    ] = None,
    variant: Annotated[Names, typer.Option(help="unbalanced or balanced; repeat for both.")] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for tables and figures; a run there is resumed.")
    ] = Path("reproduction"),
) -> None:
    """Run the paper's experiments, draw its figures and check its claims.

    Without options everything is run: three datasets, unbalanced and balanced, five methods and the
    printed golden-section searches; with LFW, beyond the paper, faces by sex and race. What an
    earlier run finished in the output folder is reused.
    """
    from rich.console import Console

    from fairpca.reproduction import plan, prepare, publish, run, run_beyond

    console = Console()
    jobs = plan(dataset, method, variant)
    folder = prepare(out)
    results = _with_progress(jobs, run(jobs, folder / "results"), console)
    with console.status("faces by sex and race"):
        beyond = run_beyond(jobs, folder / "results")
    with console.status("drawing figures"):
        report = publish(results, folder, beyond)
    _print_claims(report.claims, console)
    console.print(f"{len(report.files)} files written to {folder}", soft_wrap=True)


def _with_progress(jobs: list[Job], steps: Iterator[Step], console: Console) -> list[Result]:
    """Consume the steps, showing how far each dataset is."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    totals: dict[str, int] = {}
    for job in jobs:
        totals[_title(job)] = totals.get(_title(job), 0) + len(job.dataset.ranks)
    results: list[Result] = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[now]}"),
    )
    with Progress(*columns, console=console) as progress:
        bars = {
            title: progress.add_task(title, total=total, start=False, now="")
            for title, total in totals.items()
        }
        for step in steps:
            results.append(step.result)
            bar = bars[_title(step.job)]
            progress.start_task(bar)
            now = "resumed" if step.resumed else f"{step.job.method.title}, r = {step.result.r}"
            progress.update(bar, advance=1, now=now)
    return results


def _title(job: Job) -> str:
    return f"{job.dataset.title}, {job.variant}"


def _print_claims(claims: list[Claim], console: Console) -> None:
    from rich.table import Table

    table = Table(title="What the paper says of its results, and what we find", show_lines=True)
    for heading in ("data", "statement", "finding", "numbers"):
        table.add_column(heading, overflow="fold")
    for claim in claims:
        if claim.finding != "not run":
            table.add_row(claim.variant, claim.statement, claim.finding, claim.numbers)
    if table.row_count:
        console.print(table)
