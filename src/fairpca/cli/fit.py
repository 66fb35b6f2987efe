"""``fairpca fit``."""

from __future__ import annotations

from fairpca.cli import options as opt
from fairpca.cli.judging import Request, estimator_of, prepared_table
from fairpca.cli.models import save
from fairpca.cli.streams import output, print_line, progress, put


def fit_command(
    files: opt.Files,
    columns: opt.Columns,
    choice: opt.Choice,
    out: opt.ModelOut,
    data: opt.OptionalData = None,
    quiet: opt.Quiet = False,
) -> None:
    """Fit the fair version that report judges with the same options, and save it."""
    request = Request(data, files, columns, choice, opt.Judging())
    name = output(out, request.reads, (".safetensors",), "a model, a safetensors file")
    with name as temporary, progress(quiet) as show:
        from fairpca._input.folds import FoldRule
        from fairpca.exceptions import noted

        model = estimator_of(choice)
        folds = FoldRule(choice.cv, choice.seed) if hasattr(model, "cv") else None
        how = {"rows_up_to": 0, "folds": folds, "whole": False}
        with prepared_table(request, show, **how) as prepared, noted() as caught:
            show("fitting")
            model.fit_moments(prepared.moments)
            save(model, prepared.roles, temporary)
    warned = [f"! {warning.message}" for warning in caught]
    if out == "-":
        for line in warned:
            print_line(line)
    elif not quiet:
        from fairpca.cli.origin import notes_on
        from fairpca.cli.terminal import print_model

        for line in (*warned, *notes_on(prepared.record)):
            put(line)
        print_model(model)
        put(f"written to {out}")
