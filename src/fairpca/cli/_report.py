"""``fairpca report``."""

from __future__ import annotations

import json
import shlex
from typing import Annotated

import typer

from fairpca.cli import _options as opt
from fairpca.cli._output import json_output, output, progress


def report(
    context: typer.Context,
    data: opt.OptionalDataFiles = None,
    group: opt.Group = None,
    components: opt.Rank = opt.DEFAULT_RANK,
    out: Annotated[
        str,
        typer.Option("--out", "-o", metavar="FILE", help="The page to write; - prints it instead."),
    ] = "report.html",
    json_file: opt.Json = None,
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
    seed: Annotated[
        int, typer.Option("--seed", metavar="N", min=0, help="Seed of folds and resamples.")
    ] = 0,
    quiet: opt.Quiet = False,
) -> None:
    """Compare PCA with fair PCA and write one self-contained page about it."""
    if out == json_file:
        raise ValueError(f"--out and --json both name {out!r}; give each a file of its own.")
    rank = opt.rank(components)
    choices = opt.choices(group, columns, drop, label, positive, encode, drop_missing)
    with output(out) as page, json_output(json_file) as numbers, progress(quiet) as show:
        from fairpca._audit.audit import AuditSettings, run_audit
        from fairpca._audit.rows import rows_of
        from fairpca._moments.prepare import MOST_BYTES_IN_MEMORY, prepare
        from fairpca.report import Provenance, render
        from fairpca.report._reading import reading_code

        prepared = prepare(data or None, choices, encoding, MOST_BYTES_IN_MEMORY, show)
        result = run_audit(
            rows_of(prepared, seed),
            opt.estimator(rank, parity, normalize, min_group_size, small_groups),
            AuditSettings(standardize, random_state=seed),
            show,
        )
        call = (
            f"result = audit(X, groups, {result.estimator}, "
            f"standardize={standardize}, random_state={seed})"
        )
        command = shlex.join(["fairpca", *context.obj])
        code = [*reading_code(data or None, choices, encoding), call]
        if prepared.streamed:
            code.insert(0, "# Reads all rows into memory; folds and samples are drawn differently.")
        provenance = Provenance.of_prepared(prepared, command, code)
        # Names of files need not be text.
        html = render(result, provenance).encode("utf-8", "backslashreplace")
        page.write_bytes(html)
        if numbers is not None:
            json.dump(result.to_dict() | {"data": provenance.to_dict()}, numbers, indent=1)
    if not quiet and "-" not in (out, json_file):
        from fairpca.cli import _terminal as terminal

        console = terminal.make_console()
        terminal.print_notes(console, prepared)
        terminal.print_small(console, result.small_groups, min_group_size, small_groups)
        terminal.print_audit(console, result, prepared.group_name)
        terminal.print_line(console, f"written to {out}", style="dim")
