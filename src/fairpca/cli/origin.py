"""Where an audit comes from: what became of the data, and how to repeat it."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import replace
from os.path import basename
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairpca.cli.judging import Request, split_names
from fairpca.cli.options import words
from fairpca.report.text import counted, percent, some_names

if TYPE_CHECKING:
    from fairpca._audit.record import Audit, LeftOut, ModelAudit
    from fairpca._tables.prepare import Prepared, Record
    from fairpca.report import Origin

SCHEMA_VERSION = 2  # of audit.schema.json, which says what --json writes
_NOT_USED = {
    "text": "no numbers (--encode uses text)",
    "date": "dates are no numbers",
    "empty": "empty",
    "identifier": "looks like an id (--features uses it)",
    "row numbers": "looks like row numbers (--features uses it)",
    "index": "a column without a name, as pandas writes its index",
    "other": "no numbers",
}


def figures(found: Audit | ModelAudit, origin: Origin, with_rows: bool) -> dict[str, Any]:
    """What ``--json`` writes."""
    own = {"schema_version": SCHEMA_VERSION, "origin": origin.to_dict()}
    return own | found.to_dict(with_rows)


def left_out(record: Record) -> list[LeftOut]:
    """What the reader left out, for the audit's record."""
    from fairpca._audit.record import LeftOut

    columns = [
        LeftOut("column", name, 0, _NOT_USED[reason])
        for name, reason in record.left_out.items()
        if reason in _NOT_USED
    ]
    rows = [LeftOut("rows", "", record.n_dropped, "missing values")] if record.n_dropped else []
    return [*columns, *rows]


def notes_on(record: Record) -> list[str]:
    """What became of the data when they were read, a sentence each."""
    notes = []
    if record.constant:
        notes.append(f"Columns that do not vary: {some_names(record.constant)}.")
    if record.filled:
        filled = [f"{name} ({n:,})" for name, n in record.filled.items()]
        shares = [f"{label} {percent(share)}" for label, share in record.filled_shares.items()]
        notes.append(
            f"Missing numbers filled in with the median: {some_names(filled)}; share of each "
            f"group’s numbers: {some_names(shares)}. A number that was filled in is easy to "
            "describe, so a group with many looks better off than it is."
        )
    for odd in record.sentinels:
        notes.append(
            f"Column {odd.column} holds {odd.value:g} in {counted(odd.n_rows, 'row')}, far from "
            f"all others ({odd.next_value:g}); it may stand for a missing value (--missing-value)."
        )
    for twins in record.twin_labels:
        notes.append(f"Groups that may be the same: {some_names([repr(twin) for twin in twins])}.")
    if record.unordered:
        notes.append("The query has no ORDER BY, so folds may differ when it is run again.")
    return notes


def origin_of(
    request: Request, prepared: Prepared, found: Audit | ModelAudit, argv: Sequence[str]
) -> Origin:
    """Where an audit comes from, and how to repeat it."""
    from fairpca.report import Origin

    fit = step = ""
    if request.model_file is None:
        start = ["fairpca", "fit", *(request.data or ()), *words(request.columns, request.files)]
        fit = shlex.join([*start, *words(request.choice), "--out", "model.safetensors"])
        plain = replace(
            request.choice, cv=0, constraint=None, alpha=None, max_disparity=None, criterion=None,
            max_error_increase=None,
        )  # fmt: skip
        step = f"{shlex.join([*start, *words(plain)])} --max-error-increase {{step}}"
        step += " --out model.safetensors"
    return Origin(
        source=_source(request, prepared),
        sha256=_sha256(prepared.table.inputs),
        n_read=prepared.record.n_rows,
        streamed=prepared.streamed,
        notes=notes_on(prepared.record),
        model_file=basename(request.model_file or ""),
        command=shlex.join(["fairpca", *argv]),
        code=_code(request, prepared, found),
        fit_command=fit,
        step_command=step,
    )


def _source(request: Request, prepared: Prepared) -> str:
    """What the data are called on a page, which may be passed on: no folders."""
    from fairpca._tables.read import is_query

    if not request.data:
        return "check-up data (NHANES 2017–2018)"
    source = prepared.table.name
    return source if is_query(request.data[0]) else basename(source.rstrip("/")) or source


def _sha256(inputs: Sequence[Any]) -> str:
    """The checksum of the only file that was read; empty for none or several."""
    if len(inputs) != 1 or not Path(inputs[0]).is_file():
        return ""
    with open(inputs[0], "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _code(request: Request, prepared: Prepared, found: Audit | ModelAudit) -> str:
    """Lines of Python that make the audit again; none for a table of weights."""
    columns, files, judging = request.columns, request.files, request.judging
    if judging.loadings is not None:
        return ""
    groups = list(prepared.roles.groups)
    if request.data:
        source = request.data[0] if len(request.data) == 1 else list(request.data)
        renamed = {"weight": "sample_weight", "missing_value": "missing_values"}
        given = {renamed.get(k, k): v for k, v in (vars(columns) | vars(files)).items()}
        for name in ("features", "drop"):
            given[name] = split_names(given[name], prepared.table.columns)
        header = ", header=False" if given.pop("no_header") else ""
        del given["group"]
        call = _call(repr(source), repr(groups), **given)
        labels, lines = "table.sensitive_features", [f"table = read_table({call}{header})"]
    else:
        labels = f"table.{'sensitive_features' if groups == ['age_group'] else groups[0]}"
        lines = ["from fairpca.datasets import load_checkup", "", "table = load_checkup()"]
    asked = {
        "pos_label": judging.target_positive,
        "probes": judging.probes,
        "reference": judging.reference,
        "judge_from": 0 if judging.judge_from == 30 else judging.judge_from,
        "random_state": request.choice.seed,
    }
    rows = [", sample_weight=table.sample_weight"] if columns.weight else []
    rows += [", y=table.target"] if columns.target else []
    own, name = found.provenance.alternative, "audit"
    arguments = ["table.data", labels, own]
    names = [own.partition("(")[0], "audit"]
    if judging.model is not None:
        name, names = "audit_model", ["audit_model", "load_model"]
        arguments = [f"load_model({judging.model!r})", "table.data", labels]
    names += ["read_table"] if request.data else []
    call = f"{name}({_call(*arguments, **asked)}{''.join(rows)})"
    return "\n".join([f"from fairpca import {', '.join(names)}", *lines, f"result = {call}"])


def _call(*given: str, **named: Any) -> str:
    """Arguments of a call, without those that are not set."""
    return ", ".join([*given, *(f"{k}={v!r}" for k, v in named.items() if v)])
