"""``fairpca audit``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from fairpca.cli import _options as opt
from fairpca.cli._output import json_output, progress, say


def audit(
    data: opt.OptionalDataFiles = None,
    group: opt.Group = None,
    components: Annotated[
        int | None,
        typer.Option(
            "--components",
            "-r",
            metavar="N",
            help="Look at this number of components only.",
            show_default="all",
        ),
    ] = None,
    max_disparity: Annotated[
        float | None,
        typer.Option(
            "--max-disparity",
            metavar="NUMBER",
            help="Exit with code 1 when the difference between the group errors exceeds this.",
            show_default=False,
        ),
    ] = None,
    json_file: opt.Json = None,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    label: opt.Label = None,
    positive: opt.Positive = None,
    encode: opt.Encode = False,
    drop_missing: opt.DropMissing = False,
    standardize: opt.Standardize = True,
    normalize: opt.Normalize = False,
    min_group_size: opt.MinGroupSize = 1,
    small_groups: opt.SmallGroups = "error",
    encoding: opt.Encoding = "utf-8",
    quiet: opt.Quiet = False,
) -> None:
    """Show the group errors of plain PCA for every number of components."""
    if max_disparity is not None and not 0 <= max_disparity < float("inf"):
        raise ValueError(
            f"--max-disparity {max_disparity}: pass the largest difference that is all right, 0 or "
            "more, such as 0.1."
        )
    choices = opt.choices(group, columns, drop, label, positive, encode, drop_missing)
    with json_output(json_file) as numbers, progress(quiet) as show:
        from fairpca._audit.rank_curve import pca_errors_by_rank
        from fairpca._moments.prepare import prepare

        prepared = prepare(data or None, choices, encoding, progress=show)
        moments = prepared.moments
        if standardize:
            moments, _ = moments.standardize()
        chosen = opt.estimator(1, False, normalize, min_group_size, small_groups)
        settled: Any = chosen._settle_groups(moments)
        errors = pca_errors_by_rank(settled.moments, normalize)
        rows = _rows(errors, settled.compared, components)
        too_large = [
            row for row in rows if max_disparity is not None and row["disparity"] > max_disparity
        ]
        labels = settled.moments.groups.tolist()
        if numbers is not None:
            plain = {
                "groups": labels,
                "group_sizes": settled.moments.counts.tolist(),
                "standardized": standardize,
                "normalized": normalize,
                "compared": settled.compared.tolist(),
                "small_groups": settled.small,
                "max_disparity": max_disparity,
                "exceeded": bool(too_large),
                "pca": rows,
            }
            json.dump(plain, numbers, indent=1)
    if not quiet and json_file != "-":
        from fairpca.cli import _terminal as terminal

        console = terminal.make_console()
        terminal.print_notes(console, prepared)
        terminal.print_small(console, settled.small, min_group_size, small_groups)
        marked = [row["n_components"] for row in too_large]
        terminal.print_ranks(console, labels, settled.compared.tolist(), rows, marked)
    if too_large:
        worst = max(row["disparity"] for row in too_large)
        say(f"disparity {worst:.4g} exceeds --max-disparity {max_disparity:g}.")
        raise typer.Exit(1)


def _rows(errors: Any, compared: Any, components: int | None) -> list[dict[str, Any]]:
    """Errors and disparity for each number of components, or for the one asked for."""
    ranks = range(1, len(errors) + 1)
    if components is not None and components not in ranks:
        raise ValueError(f"-r {components}: pass a number of components from 1 to {len(errors)}.")
    return [
        {
            "n_components": r,
            "group_errors": errors[r - 1].tolist(),
            "disparity": float(errors[r - 1, compared].max() - errors[r - 1, compared].min()),
        }
        for r in (ranks if components is None else [components])
    ]
