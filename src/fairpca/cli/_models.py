"""``fairpca fit``, ``transform`` and ``inspect``: what happens to model files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from fairpca.cli import _options as opt
from fairpca.cli._choices import choices_of
from fairpca.cli._estimator import chosen_estimator
from fairpca.cli._output import model_output, progress, say
from fairpca.cli._words import in_words_of_the_shell

if TYPE_CHECKING:
    from fairpca._estimators.base import FairProjection
    from fairpca._tables.roles import FittedColumns, Roles
    from fairpca._tables.table import FileTable


def fit_command(
    context: typer.Context,
    out: opt.ModelOut,
    data: opt.OptionalData = None,
    group: opt.Group = None,
    components: opt.Rank = opt.DEFAULT_RANK,
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
    constraint: opt.ConstraintName = None,
    parity: opt.Parity = False,
    max_disparity: opt.MaxDisparity = None,
    max_error_increase: opt.MaxErrorIncrease = None,
    alpha: opt.Alpha = None,
    criterion: opt.CriterionName = None,
    cv: opt.Cv = None,
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
    """Fit fair PCA and save it as a safetensors file."""
    with model_output(out, data) as temporary, progress(quiet) as show:
        from fairpca._audit.rows import rows_of
        from fairpca._audit.run import AuditSettings, fit_as_audited
        from fairpca._models.pipeline import ModelPipeline
        from fairpca._models.safetensors import write_model
        from fairpca._moments.prepare import MOST_BYTES_IN_MEMORY
        from fairpca.exceptions import noted
        from fairpca.report._reading import prepare_data

        choices = choices_of(context.params)
        model = chosen_estimator(context.params)
        rows_up_to = MOST_BYTES_IN_MEMORY if cv else 0  # for the folds
        prepared = prepare_data(data or None, choices, encoding, rows_up_to, show)
        settings = AuditSettings(standardize, random_state=seed)
        with noted() as caught:
            model, scale = fit_as_audited(rows_of(prepared, seed), model, settings, show)
        roles = prepared.roles
        extra = {"columns": roles.columns, "categories": roles.categories, "group": roles.groups}
        write_model(ModelPipeline.of(model, scale, _fill_of(roles)), temporary, extra)
    if quiet:
        return
    from fairpca.cli import _terminal as terminal

    warned = [in_words_of_the_shell(str(warning.message)) for warning in caught]
    if out == "-":
        for line in warned:
            say(line)
    else:
        terminal.print_notes(prepared, model.small_groups_, context.params)
        for line in warned:
            terminal.print_line(f"! {line}")
        terminal.print_model(model)
        terminal.print_line(f"written to {out}", style="dim")


def transform_command(
    model: opt.Model,
    data: opt.Data,
    out: opt.ScoresOut,
    keep: opt.Keep = None,
    drop_missing: opt.DropMissing = False,
    encoding: opt.Encoding = "utf-8",
    decimal: opt.Decimal = None,
    missing_value: opt.MissingValues = None,
    no_header: opt.NoHeader = False,
    sheet: opt.Sheet = None,
    quiet: opt.Quiet = False,
) -> None:
    """Write the scores of rows, in their order, under a model."""
    with progress(quiet) as show:
        from fairpca._estimators.projection import encoder_of
        from fairpca._models.safetensors import load_model, read_extra
        from fairpca._tables.paths import TextFormat
        from fairpca._tables.table import FileTable
        from fairpca._tables.transform import write_scores

        loaded = load_model(model)
        missing = tuple(missing_value or ())
        text = TextFormat(encoding, decimal, missing, not no_header, sheet=sheet)
        table = FileTable(data, text=text)
        roles = _fitted_roles(loaded, read_extra(model), table, keep or [])
        projection, scale = parts_of(loaded)
        n_rows, n_dropped = write_scores(
            table,
            roles,
            out,
            projection.get_feature_names_out().tolist(),
            encoder_of(projection) / scale,
            projection.mean_ * scale,
            drop_missing,
            partial(show, "writing scores"),
            reads=[model],
        )
    if not quiet and out != "-":
        from fairpca.cli import _terminal as terminal

        done = f"{n_rows} rows written to {out}"
        done += f", {n_dropped} left out for missing values" if n_dropped else ""
        terminal.print_line(done, "dim")


def _fitted_roles(model: Any, extra: dict[str, Any], table: FileTable, keep: list[str]) -> Roles:
    """The columns that the model was fitted to: by name, or by number when it has no names."""
    from fairpca._tables.choices import split_names
    from fairpca._tables.roles import Roles

    kept = split_names(keep, table.types)
    names = extra.get("columns", getattr(model, "feature_names_in_", None))
    if names is None:
        columns = table.choose(keep=kept).columns
        if len(columns) != model.n_features_in_:
            raise ValueError(
                f"the model was fitted to {model.n_features_in_} columns without names, and "
                f"{table.name} has {len(columns)} columns of numbers besides --keep; pass a file "
                "with just those columns."
            )
    else:
        columns = tuple(map(str, names))
    known = fitted_columns(model, extra, columns)
    roles = Roles(columns, keep=tuple(kept), categories=known.categories, fill=known.fill)
    if len(roles.feature_names) != model.n_features_in_:
        raise ValueError(
            f"the model has {model.n_features_in_} features, but its file names "
            f"{len(roles.feature_names)} columns; fit it again."
        )
    table.check(roles)
    return roles


def inspect_command(model: opt.Model, as_json: opt.AsJson = False) -> None:
    """Show what is in a model file."""
    from fairpca._models.pipeline import ModelPipeline
    from fairpca._models.safetensors import load_model, read_extra

    loaded, extra = load_model(model), read_extra(model)
    projection, _ = parts_of(loaded)
    standardized, imputed = (
        isinstance(loaded, ModelPipeline) and array is not None
        for array in (getattr(loaded, "scale", None), getattr(loaded, "fill", None))
    )
    if as_json:
        names = getattr(loaded, "feature_names_in_", None)
        plain = {
            "model": repr(projection),
            "standardized": standardized,
            "imputed": imputed,
            "n_components": projection.n_components_,
            "feature_names": None if names is None else list(names),
            "groups": projection.groups_.tolist(),
            "group_sizes": projection.group_sizes_.tolist(),
            "pca_group_errors": projection.pca_group_errors_.tolist(),
            "group_errors": projection.group_errors_.tolist(),
            "status": projection.status_,
            "duality_gap": projection.duality_gap_,
            **_held_out_figures(projection),
            **extra,
        }
        typer.echo(json.dumps(plain, indent=1))
        return
    from fairpca.cli import _terminal as terminal

    terminal.print_model(projection)
    size = f"{projection.n_components_} components of {projection.n_features_in_} features"
    how = ", missing values imputed" if imputed else ""
    how += ", standardised" if standardized else ""
    terminal.print_line(f"{projection!r}: {size}{how}")


def _held_out_figures(projection: FairProjection) -> dict[str, Any]:
    """What a cross-validated fit knows about rows not fitted to; empty for others."""
    if not hasattr(projection, "held_out_changes_"):
        return {}
    figures = ("pca_group_errors", "group_errors", "changes", "changes_interval")
    return {
        f"held_out_{figure}": getattr(projection, f"held_out_{figure}_").tolist()
        for figure in figures
    }


def parts_of(model: Any) -> tuple[FairProjection, Any]:
    """The projection of a loaded model, and what it divides the columns by."""
    from fairpca._models.pipeline import ModelPipeline

    if isinstance(model, ModelPipeline):
        return model[-1], 1.0 if model.scale is None else model.scale
    return model, 1.0


def fitted_columns(model: Any, extra: dict[str, Any], columns: Sequence[str]) -> FittedColumns:
    """What a loaded model knows of its columns, which are these."""
    from fairpca._models.pipeline import ModelPipeline
    from fairpca._tables.roles import FittedColumns, Roles

    categories, fill = extra.get("categories", {}), {}
    features = Roles(tuple(columns), categories=categories).feature_names
    if isinstance(model, ModelPipeline) and model.fill is not None:
        medians = dict(zip(features, model.fill.tolist(), strict=False))
        fill = {name: medians[name] for name in columns if name in medians}
    return FittedColumns(categories, fill)


def _fill_of(roles: Roles) -> Any:
    """What stands in for missing values of each feature: those of text columns have none."""
    import numpy as np

    if not roles.fill:
        return None
    return np.array([roles.fill.get(name, 0.0) for name in roles.feature_names])
