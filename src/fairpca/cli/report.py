"""``fairpca report``."""

from __future__ import annotations

from fairpca.cli import options as opt
from fairpca.cli.judging import Request, judge
from fairpca.cli.streams import outputs, progress, put, write_json, write_text


def report_command(
    context: opt.Context,
    files: opt.Files,
    columns: opt.Columns,
    choice: opt.Choice,
    judging: opt.Judging,
    data: opt.OptionalData = None,
    out: opt.PageOut = "report.html",
    json_file: opt.Json = None,
    model_card: opt.Card = None,
    with_rows: opt.WithRows = False,
    quiet: opt.Quiet = False,
) -> None:
    """Write a page: is anyone short-changed, how sure is that, what can be done, who pays?"""
    request = Request(data, files, columns, choice, judging)
    named = {"out": out, "json": json_file, "model_card": model_card}
    with outputs(request.reads, **named) as paths, progress(quiet) as show:
        from fairpca.cli.origin import figures

        found, origin = judge(request, context.obj, show)
        from fairpca.report import model_card as card
        from fairpca.report import render

        show("writing the page")
        write_text(paths["out"], render(found, origin, with_rows=with_rows))
        if json_file is not None:
            write_json(paths["json"], figures(found, origin, with_rows))
        if model_card is not None:
            write_text(paths["model_card"], card(found, origin))
    if not quiet and "-" not in named.values():
        from fairpca.cli.terminal import print_audit

        print_audit(found, origin.notes)
        put(f"written to {' and '.join(name for name in named.values() if name)}")
