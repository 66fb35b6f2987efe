"""``fairpca fit``, ``transform`` and ``inspect``: what happens to model files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from fairpca.cli import _options as opt
from fairpca.cli._output import follow, output, progress

if TYPE_CHECKING:
    from fairpca._estimators.base import FairProjection


def fit(
    data: opt.DataFiles,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The model file to write; - for standard output."
        ),
    ],
    group: opt.Group = None,
    components: opt.Rank = opt.DEFAULT_RANK,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    label: opt.Label = None,
    positive: opt.Positive = None,
    encode: opt.Encode = False,
    drop_missing: opt.DropMissing = False,
    standardize: opt.Standardize = True,
    parity: opt.Parity = False,
    normalize: opt.Normalize = False,
    min_group_size: opt.MinGroupSize = 1,
    small_groups: opt.SmallGroups = "error",
    encoding: opt.Encoding = "utf-8",
    quiet: opt.Quiet = False,
) -> None:
    """Fit fair PCA and save it as a safetensors file."""
    rank = opt.rank(components)
    choices = opt.choices(group, columns, drop, label, positive, encode, drop_missing)
    with output(out) as temporary, progress(quiet) as show:
        from fairpca._models.safetensors import StandardizedModel, save_model
        from fairpca._moments.prepare import prepare
        from fairpca.exceptions import quietly

        prepared = prepare(data or None, choices, encoding, progress=show)
        moments = prepared.moments
        scale = None
        if standardize:
            moments, scale = moments.standardize()
        model = opt.estimator(rank, parity, normalize, min_group_size, small_groups)
        with quietly():
            model.fit_moments(moments)
        extra = {
            "columns": prepared.layout.columns,
            "categories": prepared.layout.categories,
            "group": list(choices.groups),
        }
        whole = model if scale is None else StandardizedModel.of(model, scale)
        save_model(whole, temporary, extra)
    if not quiet and out != "-":
        from fairpca.cli import _terminal as terminal

        console = terminal.make_console()
        terminal.print_notes(console, prepared)
        terminal.print_small(console, model.small_groups_, min_group_size, small_groups)
        terminal.print_model(console, model)
        terminal.print_line(console, f"written to {out}", style="dim")


def transform(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by fairpca fit.")],
    data: opt.DataFiles,
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="FILE", help="CSV or Parquet file for the scores; - prints CSV."
        ),
    ],
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            help="Columns to copy unchanged, such as an id (repeat, or separate by commas).",
            show_default=False,
        ),
    ] = None,
    drop_missing: opt.DropMissing = False,
    encoding: opt.Encoding = "utf-8",
    quiet: opt.Quiet = False,
) -> None:
    """Project the rows of a file onto the components of a model, in order, as a stream."""
    with progress(quiet) as show:
        from fairpca._tables.transform import transform_steps

        steps = transform_steps(model, data, out, keep or [], drop_missing, encoding)
        n_rows, n_dropped = follow(show, steps)
    if not quiet and out != "-":
        from fairpca.cli import _terminal as terminal

        text = f"{n_rows} rows written to {out}"
        text += f", {n_dropped} left out for missing values" if n_dropped else ""
        terminal.print_line(terminal.make_console(), text, "dim")


def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="File written by fairpca fit.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what is in a model file."""
    from sklearn.pipeline import Pipeline

    from fairpca._models.safetensors import load_model, read_extra

    loaded, extra = load_model(model), read_extra(model)
    standardized = isinstance(loaded, Pipeline)
    projection: FairProjection = loaded[-1] if isinstance(loaded, Pipeline) else loaded
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

    console = terminal.make_console()
    terminal.print_model(console, projection)
    terminal.print_line(
        console,
        f"{projection!r}: {projection.n_components_} components of {projection.n_features_in_} "
        f"features{', standardised' if standardized else ''}",
    )
