"""The command ``fairpca reproduce``: parses, calls :mod:`fairpca.reproduction`, prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairpca.cli._output import progress

if TYPE_CHECKING:
    from rich.table import Table

    from fairpca.reproduction import Claim

Names = list[str] | None
_PAPER = "pelegrina2022"


def reproduce_command(
    dataset: Annotated[
        Names,
        typer.Option(
            metavar="NAME", help="tcred, lfw, lsac or lsac-without-other; repeat for several."
        ),
    ] = None,
    method: Annotated[
        Names,
        typer.Option(
            metavar="NAME", help="pca, fairpca, mofpca, u-fpca, c-fpca, ...; repeat for several."
        ),
    ] = None,
    variant: Annotated[
        Names, typer.Option(metavar="NAME", help="unbalanced or balanced; repeat for both.")
    ] = None,
    study: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Another study's published tables; --study list names them."
        ),
    ] = _PAPER,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", help="Folder for tables and figures; a run there is resumed."
        ),
    ] = Path("reproduction"),
) -> None:
    """Repeat a paper's experiments, figures and claims.

    Without options everything of Pelegrina and Duarte (2022) is run: three datasets, unbalanced and
    balanced, five methods and the printed golden-section searches; with LFW, beyond the paper,
    faces by sex and race. What an earlier run finished in the output folder is reused.
    """
    from fairpca import reproduction

    if study == "list":
        _list_studies()
        return
    if study != _PAPER:
        if dataset or method or variant:
            raise ValueError(
                f"--dataset, --method and --variant belong to --study {_PAPER}; the study {study} "
                "is always run as a whole. Leave them out."
            )
        _reproduce_study(study, out)
        return
    with progress(quiet=False) as show:
        report = reproduction.reproduce(
            out, datasets=dataset, methods=method, variants=variant, progress=show
        )
    _show_findings(report.claims, report.files, out)


def _list_studies() -> None:
    from fairpca.cli import _terminal as terminal
    from fairpca.reproduction import STUDIES

    terminal.print_line(f"{_PAPER:<20} the paper of this library's method (default)")
    for study in STUDIES.values():
        terminal.print_line(f"{study.name:<20} {study.title}")


def _reproduce_study(name: str, out: Path) -> None:
    from fairpca import reproduction

    with progress(quiet=False) as show:
        report = reproduction.reproduce_study(name, out, progress=show)
    _show_findings(report.claims, report.files, out / name)


def _show_findings(claims: list[Claim], files: list[Path], out: Path) -> None:
    from fairpca.cli import _terminal as terminal

    table = _table_of(claims)
    if table.row_count:
        terminal.print_table(table)
    terminal.print_line(f"{len(files)} files written to {out}")


def _table_of(claims: list[Claim]) -> Table:
    from rich.table import Table

    table = Table(title="What the paper says of its results, and what we find", show_lines=True)
    for heading in ("data", "statement", "finding", "numbers"):
        table.add_column(heading, overflow="fold")
    for claim in claims:
        if claim.finding != "not run":
            table.add_row(claim.variant, claim.statement, claim.finding, claim.numbers)
    return table
