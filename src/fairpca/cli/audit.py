"""``fairpca audit``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from fairpca.cli import options as opt
from fairpca.cli.judging import Request, judge
from fairpca.cli.streams import outputs, print_line, progress, put, write_json

if TYPE_CHECKING:
    from fairpca._audit.record import Audit, ModelAudit

EXCEEDED, CANNOT_JUDGE = 1, 3


def audit_command(
    context: opt.Context,
    files: opt.Files,
    columns: opt.Columns,
    choice: opt.Choice,
    judging: opt.Judging,
    data: opt.OptionalData = None,
    fail_above: opt.FailAbove = None,
    fail_on: opt.FailOn = "interval",
    json_file: opt.Json = None,
    with_rows: opt.WithRows = False,
    quiet: opt.Quiet = False,
) -> None:
    """Say whether PCA, or a model, short-changes a group; with --fail-above, by the exit code.

    Exit codes: 0 done, 1 a group is described worse than --fail-above allows, 3 this cannot be
    judged.
    """
    request = Request(data, files, columns, choice, judging)
    with outputs(request.reads, json=json_file) as paths, progress(quiet) as show:
        from fairpca.cli.origin import figures

        found, origin = judge(request, context.obj, show)
        code, line = _gate(found, fail_above, fail_on == "estimate")
        if json_file is not None:
            gate = {"fail_above": fail_above, "fail_on": fail_on, "exit_code": code}
            shown = figures(found, origin, with_rows)
            write_json(paths["json"], shown | {"gate": gate if fail_above is not None else None})
    if not quiet and json_file != "-":
        from fairpca.cli.terminal import print_audit

        print_audit(found, origin.notes)
    if code:
        print_line(line)
        raise typer.Exit(code)
    if line and not quiet and json_file != "-":
        put(line)


def _gate(found: Audit | ModelAudit, limit: float | None, by_estimate: bool) -> tuple[int, str]:
    """The exit code, and one line that says what was compared with what."""
    from fairpca._audit.verdict import Case, groups_above
    from fairpca.report import sentences
    from fairpca.report.text import percent, percent_range

    if limit is None:
        return 0, ""
    if found.verdict.case is Case.CANNOT_JUDGE:
        return CANNOT_JUDGE, sentences.say(found).headline
    by_share = found.verdict.by_share
    above = groups_above(found.groups, limit, by_share=by_share, estimate=by_estimate)
    row = above[0] if above else found.group(found.verdict.group)
    gap = sentences.gap_of(found, row.baseline)
    ends = "" if gap is None else f"{percent(gap.value)} ({percent_range(gap.low, gap.high)})"
    which = "the estimate" if by_estimate else "the lower end"
    verb = "exceeds" if above else "does not exceed"
    more = f"; so do {len(above) - 1} more groups" if len(above) > 1 else ""
    return EXCEEDED if above else 0, (
        f"{sentences.judged(found)}: error of {sentences.name(found, row.label)} ({row.n:,} "
        f"people) against {sentences.against(found, row.label)}: {ends}; {which} {verb} "
        f"--fail-above {percent(limit)}{more}. {sentences.measured(found)}."
    )
