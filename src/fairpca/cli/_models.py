"""``fairpca fit``, ``transform`` and ``inspect``: what happens to model files."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

from fairpca.cli import _options as opt
from fairpca.cli._output import output, progress

if TYPE_CHECKING:
    from fairpca._estimators.base import FairProjection
    from fairpca._tables.roles import Roles
    from fairpca._tables.table import FileTable


def fit_command(
    data: opt.Data,
    out: opt.ModelOut,
    group: opt.Group = None,
    components: opt.Rank = opt.DEFAULT_RANK,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    label: opt.Label = None,
    positive: opt.Positive = None,
    encode: opt.Encode = False,
    drop_most: opt.DropMost = False,
    keep_ids: opt.KeepIds = False,
    drop_missing: opt.DropMissing = False,
    standardize: opt.Standardize = True,
    parity: opt.Parity = False,
    normalize: opt.Normalize = False,
    min_group_size: opt.MinGroupSize = 1,
    small_groups: opt.SmallGroupsPolicy = "error",
    encoding: opt.Encoding = "utf-8",
    decimal: opt.Decimal = None,
    missing_value: opt.MissingValues = None,
    no_header: opt.NoHeader = False,
    quiet: opt.Quiet = False,
) -> None:
    """Fit fair PCA and save it as a safetensors file."""
    with output(out, data) as temporary, progress(quiet) as show:
        from fairpca import FairPCA
        from fairpca._models.safetensors import write_model
        from fairpca._models.standardized import StandardizedModel
        from fairpca._moments.prepare import prepare_table
        from fairpca._tables.choices import Choices
        from fairpca.exceptions import quietly

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
            components,
            constraint=None if parity else "pareto",
            normalize=normalize,
            min_group_size=min_group_size,
            small_groups=small_groups,
        )
        prepared = prepare_table(data, choices, encoding, progress=show)
        moments, scale = prepared.moments.standardize() if standardize else (prepared.moments, None)
        with quietly():  # the status is printed
            model.fit_moments(moments)
        roles = prepared.roles
        extra = {"columns": roles.columns, "categories": roles.categories, "group": roles.groups}
        write_model(
            model if scale is None else StandardizedModel.of(model, scale), temporary, extra
        )
    if not quiet and out != "-":
        from fairpca.cli import _terminal as terminal

        terminal.print_notes(prepared, model.small_groups_, model)
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
    quiet: opt.Quiet = False,
) -> None:
    """Project the rows of a file onto the components of a model, in order, as a stream."""
    with progress(quiet) as show:
        from fairpca._models.safetensors import load_model, read_extra
        from fairpca._tables.paths import TextFormat
        from fairpca._tables.table import FileTable
        from fairpca._tables.transform import write_scores

        loaded = load_model(model)
        text = TextFormat(encoding, decimal, tuple(missing_value or ()), not no_header)
        table = FileTable(data, text=text)
        roles = _fitted_roles(loaded, read_extra(model), table, keep or [])
        projection, scale = _parts_of(loaded)
        n_rows, n_dropped = write_scores(
            table,
            roles,
            out,
            projection.get_feature_names_out().tolist(),
            projection.components_ / scale,
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
    roles = Roles(columns, keep=tuple(kept), categories=extra.get("categories", {}))
    if len(roles.feature_names) != model.n_features_in_:
        raise ValueError(
            f"the model has {model.n_features_in_} features, but its file names "
            f"{len(roles.feature_names)} columns; fit it again."
        )
    table.check(roles)
    return roles


def inspect_command(model: opt.Model, as_json: opt.AsJson = False) -> None:
    """Show what is in a model file."""
    from fairpca._models.safetensors import load_model, read_extra
    from fairpca._models.standardized import StandardizedModel

    loaded, extra = load_model(model), read_extra(model)
    projection, _ = _parts_of(loaded)
    standardized = isinstance(loaded, StandardizedModel)
    if as_json:
        names = getattr(loaded, "feature_names_in_", None)
        plain = {
            "model": repr(projection),
            "standardized": standardized,
            "n_components": projection.n_components_,
            "feature_names": None if names is None else list(names),
            "groups": projection.groups_.tolist(),
            "group_sizes": projection.group_sizes_.tolist(),
            "pca_group_errors": projection.pca_group_errors_.tolist(),
            "group_errors": projection.group_errors_.tolist(),
            "status": projection.status_,
            "duality_gap": projection.duality_gap_,
            **extra,
        }
        typer.echo(json.dumps(plain, indent=1))
        return
    from fairpca.cli import _terminal as terminal

    terminal.print_model(projection)
    size = f"{projection.n_components_} components of {projection.n_features_in_} features"
    terminal.print_line(f"{projection!r}: {size}{', standardised' if standardized else ''}")


def _parts_of(model: Any) -> tuple[FairProjection, Any]:
    """The projection of a loaded model, and what it divides the columns by."""
    from fairpca._models.standardized import StandardizedModel

    if isinstance(model, StandardizedModel):
        return model[-1], model[0].scale_
    return model, 1.0
