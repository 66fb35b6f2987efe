"""``fairpca audit``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from fairpca.cli import _options as opt
from fairpca.cli._choices import BESIDE_MODEL, choices_of, refuse_beside_model
from fairpca.cli._limits import DisparityLimits, compared_with_limits, judged, loses_nothing
from fairpca.cli._output import json_output, progress, say

if TYPE_CHECKING:
    from fairpca import FairPCA
    from fairpca._moments.prepare import Prepared
    from fairpca._progress import Progress

SCHEMA_VERSION = 1  # of audit.schema.json, which says what --json writes
_LIMITS = {
    "max_disparity", "max_relative_disparity", "normalize", "min_group_size", "small_groups",
}  # fmt: skip


def audit_command(
    context: typer.Context,
    data: opt.OptionalData = None,
    group: opt.Group = None,
    components: opt.OneRank = None,
    model: opt.OwnModel = None,
    max_disparity: opt.DisparityLimit = None,
    max_relative_disparity: opt.RelativeLimit = None,
    held_out: opt.OnHeldOut = False,
    json_file: opt.Json = None,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    label: opt.LabelOrTarget = None,
    positive: opt.Positive = None,
    encode: opt.Encode = False,
    keep_ids: opt.KeepIds = False,
    drop_missing: opt.DropMissing = False,
    drop_most: opt.DropMost = False,
    impute: opt.Impute = None,
    standardize: opt.Standardize = True,
    normalize: opt.Normalize = False,
    min_group_size: opt.MinGroupSize = 1,
    small_groups: opt.SmallGroupsPolicy = "error",
    encoding: opt.Encoding = "utf-8",
    decimal: opt.Decimal = None,
    missing_value: opt.MissingValues = None,
    no_header: opt.NoHeader = False,
    sheet: opt.Sheet = None,
    seed: opt.Seed = 0,
    quiet: opt.Quiet = False,
) -> None:
    """Show the group errors of PCA or of a model, and check limits.

    Without -r: for every number of components.
    """
    limits = DisparityLimits(max_disparity, max_relative_disparity)
    judged_by = "pca" if model is None else "model"
    if model is not None:
        refuse_beside_model(context, BESIDE_MODEL | _LIMITS)
    elif held_out and components is None:
        raise ValueError("--held-out is for one number of components; pass for example -r 3.")
    reads = [*(data or ()), *([model] if model else ())]
    with json_output(json_file, reads) as numbers, progress(quiet) as show:
        from fairpca import FairPCA, __version__
        from fairpca._audit.model import FLATTERY
        from fairpca._moments.prepare import MOST_BYTES_IN_MEMORY
        from fairpca.cli._own_model import judge_model
        from fairpca.report._reading import prepare_data

        choices = choices_of(context.params)
        pca = FairPCA(
            components or 1,
            alpha=1,
            normalize=normalize,
            min_group_size=min_group_size,
            small_groups=small_groups,
        )
        if model is not None:
            prepared, result = judge_model(model, data, choices, encoding, pca, limits, show)
        else:
            rows_up_to = MOST_BYTES_IN_MEMORY if held_out else 0
            prepared = prepare_data(data or None, choices, encoding, rows_up_to, show)
            result = _pca_by_rank(prepared, pca, standardize, components, limits)
        if held_out:
            result |= _held_out(prepared, pca, standardize, seed, limits, result, show)
        result |= {
            "standardized": result.get("standardized", standardize),
            "max_disparity": max_disparity,
            "max_relative_disparity": max_relative_disparity,
            "exceeded": any(row["exceeded"] for row in result[judged_by]),
        }
        if numbers is not None:
            head = {
                "schema_version": SCHEMA_VERSION,
                "fairpca_version": __version__,
                "source": prepared.source,
                "model_file": model,
                "group": list(prepared.roles.groups),
            }
            json.dump(head | result, numbers, indent=1)
    if not quiet and json_file != "-":
        from fairpca.cli import _terminal as terminal

        terminal.print_notes(prepared, result["small_groups"], context.params)
        terminal.print_ranks(result, result[judged_by], _which_rows(result, model))
        if model is not None:
            terminal.print_line(FLATTERY)
        if all(loses_nothing(found, max(result["group_variances"])) for found in result[judged_by]):
            terminal.print_nothing_lost()
    if limits.given:
        line = _beside_limits(result, model, limits)
        if result["exceeded"]:
            say(line)
            raise typer.Exit(1)
        if not quiet and json_file != "-":
            terminal.print_line(line)


def _beside_limits(result: dict[str, Any], model: str | None, limits: DisparityLimits) -> str:
    """One line: the worst figures beside their limits, and which rows they are about."""
    found, what = (result["pca"], "PCA") if model is None else (result["model"], model)
    of, variance = f"{what} {_which_rows(result, model)}", max(result["group_variances"])
    return compared_with_limits(found, limits, result["groups"], result["compared"], variance, of)


def _which_rows(result: dict[str, Any], model: str | None) -> str:
    """Which rows the errors are about."""
    if model is not None:
        return "on these rows"
    return f"held out in {result['folds']} folds" if result["folds"] else "on the rows fitted to"


def _pca_by_rank(
    prepared: Prepared,
    model: FairPCA,
    standardize: bool,
    components: int | None,
    limits: DisparityLimits,
) -> dict[str, Any]:
    """Errors and disparity of PCA for each number of components, or for the one asked for."""
    from fairpca._audit.rank_curve import pca_errors_by_rank

    moments = prepared.moments.standardize()[0] if standardize else prepared.moments
    settled: Any = model._settle(moments)
    errors, compared = pca_errors_by_rank(settled.moments, model.normalize), settled.compared
    ranks = range(1, len(errors) + 1)
    if components is not None and components not in ranks:
        raise ValueError(f"-r {components}: pass a number of components from 1 to {len(errors)}.")
    operand = settled.measured(model.normalize)
    overall, variance = errors @ operand.shares, float(operand.traces.max())
    return {
        "groups": settled.moments.groups.tolist(),
        "group_sizes": settled.moments.counts.tolist(),
        "group_variances": operand.traces.tolist(),
        "normalized": model.normalize,
        "compared": compared.tolist(),
        "small_groups": settled.small,
        "folds": 0,
        "pca": [
            judged(r, errors[r - 1], overall[r - 1], compared, variance, limits)
            for r in (ranks if components is None else [components])
        ],
    }


def _held_out(
    prepared: Prepared,
    model: FairPCA,
    standardize: bool,
    seed: int,
    limits: DisparityLimits,
    result: dict[str, Any],
    show: Progress,
) -> dict[str, Any]:
    """The errors of rows that PCA was not fitted to, in place of the others."""
    from fairpca._audit.new_rows import held_out_pca
    from fairpca._audit.rows import rows_of
    from fairpca._audit.run import AuditSettings

    n_folds = AuditSettings().n_folds
    folds, errors = held_out_pca(model, rows_of(prepared, seed), standardize, n_folds, seed, show)
    r, variance = result["pca"][0]["n_components"], max(result["group_variances"])
    figures = errors.group_errors, errors.overall, result["compared"]
    found = judged(r, *figures, variance, limits)
    return {"folds": folds, "pca": [found]}
