"""``fairpca report``."""

from __future__ import annotations

import json
import shlex
from os.path import basename, realpath, splitext
from typing import TYPE_CHECKING, Any

import typer

from fairpca.cli import _options as opt
from fairpca.cli._choices import BESIDE_MODEL, check_selected, choices_of, refuse_beside_model
from fairpca.cli._estimator import chosen_estimator, fit_command_of
from fairpca.cli._output import json_output, output, progress, text_output

if TYPE_CHECKING:
    from fairpca._audit.model import ModelAudit
    from fairpca._audit.result import Audit
    from fairpca._moments.prepare import Prepared
    from fairpca._progress import Progress
    from fairpca.report import Provenance

_OF_SCORES = {"probes", "target", "target_positive"}


def report_command(
    context: typer.Context,
    data: opt.OptionalData = None,
    group: opt.Group = None,
    components: opt.Rank = opt.DEFAULT_RANK,
    model: opt.OwnModel = None,
    out: opt.PageOut = "report.html",
    json_file: opt.Json = None,
    model_card: opt.ModelCard = None,
    columns: opt.Columns = None,
    drop: opt.Drop = None,
    label: opt.Label = None,
    positive: opt.Positive = None,
    target: opt.Target = None,
    target_positive: opt.TargetPositive = None,
    probes: opt.Probes = False,
    encode: opt.Encode = False,
    keep_ids: opt.KeepIds = False,
    drop_missing: opt.DropMissing = False,
    drop_most: opt.DropMost = False,
    impute: opt.Impute = None,
    standardize: opt.Standardize = True,
    constraint: opt.ConstraintName = None,
    parity: opt.Parity = False,
    max_disparity: opt.MaxDisparity = None,
    max_error_increase: opt.MaxErrorIncrease = None,
    alpha: opt.Alpha = None,
    criterion: opt.CriterionName = None,
    cv: opt.Cv = None,
    normalize: opt.Normalize = False,
    min_group_size: opt.MinGroupSize = 1,
    small_groups: opt.SmallGroupsPolicy = "error",
    encoding: opt.Encoding = "utf-8",
    decimal: opt.Decimal = None,
    missing_value: opt.MissingValues = None,
    no_header: opt.NoHeader = False,
    sheet: opt.Sheet = None,
    seed: opt.Seed = 0,
    quiet: opt.Quiet = False,
) -> None:
    """Write a page about PCA and fair PCA, or about a model."""
    _refuse_same_names(out=out, json=json_file, model_card=model_card)
    if model is not None:
        refuse_beside_model(context, BESIDE_MODEL | _OF_SCORES | {"seed", "model_card"})
    reads = [*(data or ()), *([model] if model else ())]
    with (
        output(out, reads) as page,
        json_output(json_file, reads) as numbers,
        text_output(model_card, reads) as card,
        progress(quiet) as show,
    ):
        _refuse_other_formats(out, model_card)
        from fairpca.report import render

        made = _fair_report if model is None else _model_report
        prepared, result, provenance = made(context, show)
        # Names of files need not be text.
        page.write_bytes(render(result, provenance).encode("utf-8", "backslashreplace"))
        if numbers is not None:
            json.dump(result.to_dict() | {"data": provenance.to_dict()}, numbers, indent=1)
        if card is not None and model_card is not None:
            card.write(card_for(model_card, result, provenance))
    if not quiet and "-" not in (out, json_file):
        from fairpca.cli import _terminal as terminal

        terminal.print_notes(prepared, getattr(result, "small_groups", []), context.params)
        if model is None:
            terminal.print_audit(result, prepared.group_name)
        else:
            terminal.print_model_audit(result, prepared.group_name)
        written = out if model_card is None else f"{out} and {model_card}"
        terminal.print_line(f"written to {written}", style="dim")


def _fair_report(context: typer.Context, show: Progress) -> tuple[Prepared, Any, Provenance]:
    """PCA and the estimator that the options ask for."""
    from fairpca._audit.fits import recommended
    from fairpca._audit.rows import rows_of
    from fairpca._audit.run import AuditSettings, run_audit
    from fairpca._moments.prepare import MOST_BYTES_IN_MEMORY
    from fairpca.report import Provenance
    from fairpca.report._reading import prepare_data, reading_lines, report_code

    given, choices = context.params, choices_of(context.params)
    estimator, data, encoding = chosen_estimator(given), given["data"] or None, given["encoding"]
    prepared = prepare_data(data, choices, encoding, MOST_BYTES_IN_MEMORY, show)
    settings = AuditSettings(given["standardize"], random_state=given["seed"])
    if given["cv"] is None:
        how = {"standardize": given["standardize"]}
        estimator = recommended(estimator, prepared.moments, settings.n_folds, **how)
    probes = given["probes"] or given["target"] is not None
    check_selected(given["target_positive"], choices.target, prepared.y)
    asked = prepared.y, given["target_positive"], probes
    rows = rows_of(prepared, given["seed"])
    result = run_audit(rows, estimator, settings, show, *asked)
    code = report_code(data, choices, encoding, result, prepared.streamed)
    fit = reading_lines(data, choices, encoding), shlex.join(fit_command_of(context))
    return prepared, result, Provenance.of_prepared(prepared, _typed(context), code, *fit)


def _model_report(context: typer.Context, show: Progress) -> tuple[Prepared, Any, Provenance]:
    """A model as it is."""
    from fairpca.cli._own_model import model_audit, model_code
    from fairpca.report import Provenance

    given, choices = context.params, choices_of(context.params)
    what = given["model"], given["data"] or None
    how = {
        "pos_label": given["target_positive"],
        "probes": given["probes"],
        "random_state": given["seed"],
    }
    prepared, result = model_audit(*what, choices, given["encoding"], show, **how)
    code = model_code(*what, given["encoding"], choices, prepared, **how)
    name = basename(given["model"])
    origin = Provenance.of_prepared(prepared, _typed(context), code, model_file=name)
    return prepared, result, origin


def _typed(context: typer.Context) -> str:
    """The command, to be typed again."""
    return shlex.join(["fairpca", *context.obj])


def card_for(name: str, result: Audit | ModelAudit, provenance: Provenance) -> str:
    """The model card in the format that its file is named for."""
    from fairpca.report import cyclonedx_card, model_card

    if name.lower().endswith(".json"):
        return json.dumps(cyclonedx_card(result, provenance), indent=1) + "\n"
    return model_card(result, provenance)


def _refuse_same_names(**names: str | None) -> None:
    """Refuse one name for two files."""
    named: dict[str, str] = {}
    for option, name in names.items():
        if name is not None and (other := named.setdefault(realpath(name), option)) != option:
            first, second = (f"--{word.replace('_', '-')}" for word in (other, option))
            raise ValueError(f"{first} and {second} both name {name!r}; give each its own file.")


def _refuse_other_formats(out: str, model_card: str | None) -> None:
    """Refuse names that promise something else than is written."""
    name, ending = splitext(out)
    if ending and ending.lower() not in (".html", ".htm"):
        raise ValueError(
            f"--out {out}: the report is a page; pass --out {name}.html. To get a PDF file, print "
            "the page from a browser."
        )
    if model_card is not None and splitext(model_card)[1].lower() not in (".md", ".json"):
        raise ValueError(
            f"--model-card {model_card}: pass a name that ends in .md for Markdown, or in .json "
            "for CycloneDX."
        )
