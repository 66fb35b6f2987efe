"""The commands, each a function of a record of options."""

import click

from fairpca.cli import options as opt
from fairpca.cli import terminal
from fairpca.cli.options import Asked
from fairpca.cli.terminal import outputs, progress, put


@opt.command(*opt.FIT, *opt.JUDGED, *opt.FIGURES, *opt.PAGE)
def report_command(asked: Asked) -> None:
    """Write a page: is a group described worse, and what can be done?

    It says how sure the answer is, and what a remedy changes for each group.

    For example:
      fairpca report
      fairpca report people.csv --group sex -r 3 --out people.html
      fairpca report new.csv --group sex --model model.safetensors
    """
    names = {"out": asked.out, "json": asked.json, "model_card": asked.model_card}
    with outputs(asked, **names) as paths, progress(asked.quiet) as show:
        from fairpca.cli import work
        from fairpca.report import model_card, render

        found, origin, columns = work.judge(asked, show, both=True)
        show("writing the page")
        page = render(found, origin, with_rows=asked.with_rows, columns=columns)
        terminal.write_text(paths["out"], page)
        if "json" in paths:
            terminal.write_text(paths["json"], work.figures_as_json(found, origin, asked.with_rows))
        if "model_card" in paths:
            terminal.write_text(paths["model_card"], model_card(found, origin))
    if not asked.quiet and "-" not in names.values():
        terminal.print_audit(found, origin)
        put(f"written to {', '.join(name for name in names.values() if name)}")


@opt.command(*opt.FIT, *opt.JUDGED, *opt.GATE, *opt.FIGURES, opt.COMPARE)
def audit_command(asked: Asked) -> None:
    """Say whether PCA, or a model, describes a group worse.

    Exit codes: 0 done, 2 wrong use. With --fail-above 0 says it is shown that no group is described
    worse than it allows, 1 that a group is, 4 that neither is shown, 3 that nothing can be judged.

    For example:
      fairpca audit people.csv --group sex -r 3
      fairpca audit people.csv --group sex -r 3 --fail-above 0.1
      fairpca audit new.csv --group sex --loadings weights.csv --json -
    """
    with outputs(asked, json=asked.json) as paths, progress(asked.quiet) as show:
        from fairpca.cli import work

        before = work.earlier_figures(asked)
        found, origin, _ = work.judge(asked, show)
        changes = work.changes_since(before, found, origin)
        answer, line = work.compare(found, asked)
        code = 0
        gate = None
        if answer is not None:
            code = work.EXIT_CODES[answer.answer]
            gate = opt.values(asked, opt.GATE) | {"exit_code": code}
            gate |= {"answer": answer.answer.value, "units_needed": answer.units_needed}
        if "json" in paths:
            figures = work.figures_as_json(
                found, origin, asked.with_rows, gate=gate, changes=changes
            )
            terminal.write_text(paths["json"], figures)
    silent = asked.quiet or asked.json == "-"
    if not silent:
        terminal.print_audit(found, origin)
        if changes is not None:
            put(terminal.fill("compare.txt", path=asked.compare, changes=changes))
    if code:
        terminal.print_line(line)
        click.get_current_context().exit(code)
    if line and not silent:
        put(line)


@opt.command(*opt.FIT, opt.MODEL_OUT, opt.QUIET)
def fit_command(asked: Asked) -> None:
    """Fit and save the fair version that report judges.

    The same options give the same model.

    For example:
      fairpca fit people.csv --group sex -r 3 --out model.safetensors
      fairpca fit people.csv --group sex -r 3 --max-error-increase 0.03 --out model.safetensors
      fairpca fit "SELECT * FROM 'people.parquet' WHERE age > 20" -g sex -o model.safetensors
    """
    with outputs(asked, model=asked.out) as paths, progress(asked.quiet) as show:
        from fairpca.cli import work

        model, roles, lines = work.fit(asked, paths["model"], show)
    if asked.out == "-":
        for line in lines:
            terminal.print_line(line)
    elif not asked.quiet:
        put("\n".join([*lines, terminal.about_model(model, roles), f"written to {asked.out}"]))


@opt.command(
    *opt.TABLE, opt.KEPT_COLUMNS, *opt.MEASURE, *opt.JUDGING_FOLDS, *opt.RULES, *opt.FIGURES
)
def columns_command(asked: Asked) -> None:
    """Choose -r columns from which every group can be rebuilt.

    It says which columns these are, and what the choice changes for each group.

    For example:
      fairpca columns -r 3
      fairpca columns people.csv --group sex -r 5
      fairpca columns survey.parquet --group sex --weight w -r 8 --json found.json
    """
    unused = [opt.MARGINS, *opt.JUDGED]
    asked = opt.changed(asked, **{option.name: option.default for option in unused})
    with outputs(asked, json=asked.json) as paths, progress(asked.quiet) as show:
        from fairpca.cli import work

        found, origin, _ = work.judge(asked, show, keep_columns=True)
        if "json" in paths:
            figures = work.figures_as_json(found, origin, asked.with_rows)
            terminal.write_text(paths["json"], figures)
    if not asked.quiet and asked.json != "-":
        terminal.print_audit(found, origin)


@opt.command(opt.MODEL, opt.DATA, *opt.FILES, opt.ROWS, opt.SCORES_OUT, opt.KEEP, opt.QUIET)
def transform_command(asked: Asked) -> None:
    """Write the scores of rows, in their order, under a model.

    For example:
      fairpca transform model.safetensors new.csv --out scores.csv
      fairpca transform model.safetensors new.parquet --keep id --out scores.parquet
      cat new.csv | fairpca transform model.safetensors - --out -
    """
    with progress(asked.quiet) as show:
        from fairpca.cli import work

        n_rows, n_dropped = work.write_scores_of(asked, show)
    if not asked.quiet and asked.out != "-":
        line = f"{n_rows:,} rows written to {asked.out}"
        if n_dropped:
            line += f", {n_dropped:,} left out for missing values"
        put(line)


@opt.command(opt.MODEL, opt.JSON)
def inspect_command(asked: Asked) -> None:
    """Show what is in a model file.

    For example:
      fairpca inspect model.safetensors
      fairpca inspect model.safetensors --json model.json
      fairpca inspect model.safetensors --json - | jq .held_out_changes
    """
    from fairpca.cli import work

    with outputs(asked, json=asked.json) as paths:
        _, model, fitted = work.load(asked.model)
        if "json" in paths:
            terminal.write_text(paths["json"], work.model_as_json(model, fitted))
    if asked.json != "-":
        put(terminal.about_model(model, fitted))
