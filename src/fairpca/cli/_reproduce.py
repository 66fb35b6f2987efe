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


def reproduce_command(
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
    from fairpca import reproduction

    with progress(quiet=False) as show:
        report = reproduction.reproduce(
            out, datasets=dataset, methods=method, variants=variant, progress=show
        )
    from fairpca.cli import _terminal as terminal

    table = _table_of(report.claims)
    if table.row_count:
        terminal.print_table(table)
    terminal.print_line(f"{len(report.files)} files written to {out}")


def _table_of(claims: list[Claim]) -> Table:
    from rich.table import Table

    table = Table(title="What the paper says of its results, and what we find", show_lines=True)
    for heading in ("data", "statement", "finding", "numbers"):
        table.add_column(heading, overflow="fold")
    for claim in claims:
        if claim.finding != "not run":
            table.add_row(claim.variant, claim.statement, claim.finding, claim.numbers)
    return table
