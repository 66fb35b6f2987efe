"""``fairpca report``."""

from __future__ import annotations

import json
import shlex
from os.path import realpath

import typer

from fairpca.cli import _options as opt
from fairpca.cli._output import json_output, output, progress


def report_command(
    context: typer.Context,
    data: opt.OptionalData = None,
    group: opt.Group = None,
    components: opt.Rank = opt.DEFAULT_RANK,
    out: opt.PageOut = "report.html",
    json_file: opt.Json = None,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    label: opt.Label = None,
    positive: opt.Positive = None,
    target: opt.Target = None,
    probes: opt.Probes = False,
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
    seed: opt.Seed = 0,
    quiet: opt.Quiet = False,
) -> None:
    """Compare PCA with fair PCA and write one self-contained page about it."""
    if json_file is not None and realpath(out) == realpath(json_file):
        raise ValueError(f"--out and --json both name {out!r}; give each a file of its own.")
    with (
        output(out, data) as page,
        json_output(json_file, data) as numbers,
        progress(quiet) as show,
    ):
        from fairpca import FairPCA
        from fairpca._audit.audit import AuditSettings, run_audit
        from fairpca._audit.fits import recommended
        from fairpca._audit.rows import rows_of
        from fairpca._moments.prepare import MOST_BYTES_IN_MEMORY
        from fairpca._tables.choices import Choices
        from fairpca.report import Provenance, render
        from fairpca.report._reading import prepare_data, report_code

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
            target,
            decimal,
            missing_value,
            no_header,
        )
        model = FairPCA(
            components,
            constraint=None if parity else "pareto",
            normalize=normalize,
            min_group_size=min_group_size,
            small_groups=small_groups,
        )
        prepared = prepare_data(data or None, choices, encoding, MOST_BYTES_IN_MEMORY, show)
        settings = AuditSettings(standardize, random_state=seed)
        model = recommended(model, prepared.moments, settings.n_folds)
        probes = probes or target is not None
        result = run_audit(rows_of(prepared, seed), model, settings, show, prepared.y, probes)
        command = shlex.join(["fairpca", *context.obj])
        code = report_code(data or None, choices, encoding, result, prepared.streamed)
        provenance = Provenance.of_prepared(prepared, command, code)
        # Names of files need not be text.
        page.write_bytes(render(result, provenance).encode("utf-8", "backslashreplace"))
        if numbers is not None:
            json.dump(result.to_dict() | {"data": provenance.to_dict()}, numbers, indent=1)
    if not quiet and "-" not in (out, json_file):
        from fairpca.cli import _terminal as terminal

        terminal.print_notes(prepared, result.small_groups, model)
        terminal.print_audit(result, prepared.group_name)
        terminal.print_line(f"written to {out}", style="dim")
