"""``fairpca audit``."""

from __future__ import annotations

import json
from math import inf
from typing import TYPE_CHECKING, Any

import typer

from fairpca.cli import _options as opt
from fairpca.cli._output import json_output, progress, say

if TYPE_CHECKING:
    from fairpca._estimators.base import FairProjection
    from fairpca._moments.group_moments import GroupMoments


def audit_command(
    data: opt.OptionalData = None,
    group: opt.Group = None,
    components: opt.OneRank = None,
    max_disparity: opt.MaxDisparity = None,
    json_file: opt.Json = None,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    label: opt.Label = None,
    positive: opt.Positive = None,
    encode: opt.Encode = False,
    drop_most: opt.DropMost = False,
    keep_ids: opt.KeepIds = False,
    drop_missing: opt.DropMissing = False,
    standardize: opt.Standardize = True,
    normalize: opt.Normalize = False,
    min_group_size: opt.MinGroupSize = 1,
    small_groups: opt.SmallGroupsPolicy = "error",
    encoding: opt.Encoding = "utf-8",
    decimal: opt.Decimal = None,
    missing_value: opt.MissingValues = None,
    no_header: opt.NoHeader = False,
    quiet: opt.Quiet = False,
) -> None:
    """Show the group errors of plain PCA for every number of components."""
    limit = inf if max_disparity is None else max_disparity
    with json_output(json_file, data) as numbers, progress(quiet) as show:
        from fairpca import FairPCA
        from fairpca._tables.choices import Choices
        from fairpca.report._reading import prepare_data

        choices = Choices(
            group,
            columns,
            drop,
            label,
            encode,
            drop_missing,
            positive,
            keep_ids,
            drop_most,
            decimal=decimal,
            missing_values=missing_value,
            no_header=no_header,
        )
        model = FairPCA(
            1, normalize=normalize, min_group_size=min_group_size, small_groups=small_groups
        )
        prepared = prepare_data(data or None, choices, encoding, progress=show)
        moments = prepared.moments.standardize()[0] if standardize else prepared.moments
        result = _pca_by_rank(moments, model, components)
        result |= {
            "standardized": standardize,
            "max_disparity": max_disparity,
            "exceeded": any(row["disparity"] > limit for row in result["pca"]),
        }
        if numbers is not None:
            json.dump(result, numbers, indent=1)
    if not quiet and json_file != "-":
        from fairpca.cli import _terminal as terminal

        terminal.print_notes(prepared, result["small_groups"], model)
        terminal.print_ranks(result, limit)
    if result["exceeded"]:
        worst = max(row["disparity"] for row in result["pca"])
        say(f"disparity {worst:.4g} exceeds --max-disparity {limit:g}.")
        raise typer.Exit(1)


def _pca_by_rank(
    moments: GroupMoments, model: FairProjection, components: int | None
) -> dict[str, Any]:
    """Errors and disparity of PCA for each number of components, or for the one asked for."""
    from fairpca._audit.rank_curve import pca_errors_by_rank

    settled: Any = model._settle(moments)
    errors, compared = pca_errors_by_rank(settled.moments, model.normalize), settled.compared
    ranks = range(1, len(errors) + 1)
    if components is not None and components not in ranks:
        raise ValueError(f"-r {components}: pass a number of components from 1 to {len(errors)}.")
    return {
        "groups": settled.moments.groups.tolist(),
        "group_sizes": settled.moments.counts.tolist(),
        "normalized": model.normalize,
        "compared": compared.tolist(),
        "small_groups": settled.small,
        "pca": [
            {
                "n_components": r,
                "group_errors": errors[r - 1].tolist(),
                "disparity": float(errors[r - 1, compared].max() - errors[r - 1, compared].min()),
            }
            for r in (ranks if components is None else [components])
        ],
    }
