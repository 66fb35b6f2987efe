"""``fairpca transform``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from fairpca.cli import options as opt
from fairpca.cli.judging import Request, opened, split_names
from fairpca.cli.streams import progress, put


def transform_command(
    model: opt.ModelFile,
    data: opt.Data,
    out: opt.ScoresOut,
    files: opt.Files,
    keep: opt.Keep = None,
    drop_missing: opt.DropMissing = False,
    quiet: opt.Quiet = False,
) -> None:
    """Write the scores of rows, in their order, under a model."""
    with progress(quiet) as show:
        from fairpca._estimators.projection import encoder_of
        from fairpca._tables.prepare import model_roles
        from fairpca._tables.write import write_scores
        from fairpca.cli.models import loaded, saved_projection

        whole, fitted = loaded(model)
        projection = saved_projection(whole)
        table, _ = opened(Request(data, files, opt.Columns(), opt.Choice(), opt.Judging()))
        with table:
            kept = split_names(keep, table.columns)
            roles = model_roles(table, fitted, keep=kept)
            n_rows, n_dropped = write_scores(
                table,
                replace(roles, drop_missing=drop_missing),
                out,
                projection.get_feature_names_out().tolist(),
                encoder_of(projection),
                projection.mean_,
                progress=partial(show, "writing scores"),
                reads=[model],
            )
    if not quiet and out != "-":
        left = f", {n_dropped:,} left out for missing values" if n_dropped else ""
        put(f"{n_rows:,} rows written to {out}{left}")
