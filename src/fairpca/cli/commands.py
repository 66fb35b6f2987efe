"""The commands, each a function of the records of options it takes."""

import json

import typer

from fairpca.cli import options as opt
from fairpca.cli import terminal
from fairpca.cli.terminal import outputs, progress, put


def report_command(
    context: typer.Context, request: opt.AuditRequest, output: opt.PageOutput
) -> None:
    """Write a page: is anyone short-changed, and what can be done?

    It says how sure the answer is, and who gains and who pays for a remedy.
    """
    names = {"out": output.out, "json": output.json, "model_card": output.model_card}
    with outputs(request.reads, **names) as paths, progress(output.quiet) as show:
        from fairpca import report
        from fairpca.cli import work

        found, origin, columns = work.judge(request, context.obj, show, with_columns=True)
        show("writing the page")
        page = report.render(found, origin, with_rows=output.with_rows, columns=columns)
        terminal.write_text(paths["out"], page)
        if "json" in paths:
            terminal.write_text(
                paths["json"], work.figures_as_json(found, origin, output.with_rows)
            )
        if "model_card" in paths:
            terminal.write_text(paths["model_card"], report.model_card(found, origin))
    if not output.quiet and "-" not in names.values():
        terminal.print_audit(found, origin.notes)
        put(f"written to {' and '.join(name for name in names.values() if name)}")


def audit_command(
    context: typer.Context, request: opt.AuditRequest, gate: opt.Gate, output: opt.Output
) -> None:
    """Say whether PCA, or a model, short-changes a group.

    Exit codes: 0 done; with --fail-above also 1, a group is described worse than it allows, and 3,
    this cannot be judged.
    """
    with outputs(request.reads, json=output.json) as paths, progress(output.quiet) as show:
        from fairpca.cli import work

        found, origin, _ = work.judge(request, context.obj, show)
        code, line = work.compare(found, gate)
        if "json" in paths:
            asked = None if gate.fail_above is None else vars(gate) | {"exit_code": code}
            terminal.write_text(
                paths["json"], work.figures_as_json(found, origin, output.with_rows, gate=asked)
            )
    silent = output.quiet or output.json == "-"
    if not silent:
        terminal.print_audit(found, origin.notes)
    if code:
        terminal.print_line(line)
        raise typer.Exit(code)
    if line and not silent:
        put(line)


def fit_command(
    request: opt.Request, rules: opt.Rules, out: opt.ModelOut, quiet: opt.Quiet = False
) -> None:
    """Fit and save the fair version that report judges.

    The same options give the same model.
    """
    with outputs(request.reads, model=out) as paths, progress(quiet) as show:
        from fairpca.cli import work

        model, columns, lines = work.fit(request, rules, paths["model"], show)
    if out == "-":
        for line in lines:
            terminal.print_line(line)
    elif not quiet:
        for line in lines:
            put(line)
        terminal.print_model(model, columns)
        put(f"written to {out}")


def columns_command(
    context: typer.Context,
    components: opt.ToKeep,
    files: opt.Files,
    columns: opt.Columns,
    measure: opt.Measure,
    data: opt.OptionalData = None,
    as_json: opt.AsJson = False,
) -> None:
    """Choose -r columns from which every group can be rebuilt.

    It says which columns these are, who gains and who pays.
    """
    with progress(as_json) as show:
        from fairpca.cli import work

        choice = opt.Choice(**vars(measure), components=components)
        request = opt.AuditRequest(data, files, columns, choice)
        found, origin, _ = work.judge(request, context.obj, show, work.columns_of(choice))
    if as_json:
        put(work.figures_as_json(found, origin, False).rstrip())
        return
    terminal.print_columns(found)
    terminal.print_audit(found, origin.notes)


def transform_command(
    model: opt.ModelFile,
    data: opt.Data,
    files: opt.Files,
    out: opt.ScoresOut,
    keep: opt.Keep = None,
    quiet: opt.Quiet = False,
) -> None:
    """Write the scores of rows, in their order, under a model."""
    with progress(quiet) as show:
        from fairpca.cli import work

        n_rows, n_dropped = work.write_scores_of(opt.Request(data, files), model, out, keep, show)
    if not quiet and out != "-":
        left = f", {n_dropped:,} left out for missing values" if n_dropped else ""
        put(f"{n_rows:,} rows written to {out}{left}")


def inspect_command(model: opt.ModelFile, as_json: opt.AsJson = False) -> None:
    """Show what is in a model file."""
    from fairpca._audit.record import plain_json
    from fairpca.cli import work

    _, projection, fitted = work.load(model)
    standardized = projection.get_params().get("standardize", False)  # erasing needs none
    if not as_json:
        terminal.print_model(projection, fitted.groups)
        size = f"{projection.n_features_in_} columns"
        if hasattr(projection, "n_components_"):
            size = f"{projection.n_components_} components of {size}"
        how = ", missing values filled in" if fitted.fill else ""
        how += ", standardised" if standardized else ""
        put(f"{projection!r}: {size}{how}")
        return
    errors, erased = ["pca_group_errors", "group_errors"], ["change", "mean_gap", "raw_mean_gap"]
    held_out = [f"held_out_{name}" for name in (*errors, "changes", "changes_interval")]
    names = ["n_components", "groups", "group_sizes", *errors, "status", "duality_gap", *held_out]
    names += ["baseline_group_errors", "lower_bound", *erased]
    figures = {name: getattr(projection, f"{name}_", None) for name in names}
    found = {name: value for name, value in figures.items() if value is not None}
    own = {
        "model": repr(projection),
        "standardized": standardized,
        "imputed": bool(fitted.fill),
        "feature_names": getattr(projection, "feature_names_in_", None),
    }
    if hasattr(projection, "columns_"):
        own["kept"] = projection.get_feature_names_out()
    known = {"columns": fitted.features, "categories": fitted.categories, "group": fitted.groups}
    put(json.dumps(plain_json(own | found | known), indent=1))
