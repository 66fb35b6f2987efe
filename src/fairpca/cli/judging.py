"""From options to an audit: what ``audit`` and ``report`` share, and the estimator of ``fit``.

Like ``tables``, this is imported by the commands when they run: it loads numerical libraries.
"""

from __future__ import annotations

import csv
import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import replace
from os.path import basename
from pathlib import Path
from typing import Any

from fairpca import FairPCA, FairPCACV, MinMaxPCA, audit, audit_model
from fairpca._audit.models import model_from_loadings
from fairpca._audit.record import Audit, ModelAudit, with_group_columns
from fairpca._estimators.base import FairProjection
from fairpca._input.folds import FoldRule
from fairpca._progress import Progress
from fairpca._tables.prepare import Prepared
from fairpca._tables.read import is_query
from fairpca.cli.options import AuditRequest, Choice, Judging, words
from fairpca.cli.tables import arguments, left_out, load, notes_on, prepared_table, split_names
from fairpca.report import Origin


def estimator_of(choice: Choice) -> FairProjection:
    """The estimator that ``fit`` saves and ``report`` judges, by the same options."""
    names = ("standardize", "normalize", "min_group_size", "small_groups")
    shared: dict[str, Any] = {name: getattr(choice, name) for name in names}
    own = ("constraint", "alpha", "max_disparity", "max_error_increase")
    given: dict[str, Any] = {name: v for name in own if (v := getattr(choice, name)) is not None}
    if choice.criterion is not None:
        if given:
            other = next(iter(given)).replace("_", "-")
            raise ValueError(
                f"--criterion {choice.criterion} is for MinMaxPCA, which knows no --{other}; pass "
                "one of them."
            )
        return MinMaxPCA(choice.components, criterion=choice.criterion, **shared)
    if given.get("constraint") == "none":
        given["constraint"] = None
    if choice.alpha is not None or choice.cv == 0:
        return FairPCA(choice.components, **given, **shared)
    salt = choice.seed or None
    return FairPCACV(choice.components, cv=choice.cv, random_state=salt, **given, **shared)


def judge(
    request: AuditRequest, argv: Sequence[str], show: Progress
) -> tuple[Audit | ModelAudit, Origin]:
    """The audit of PCA or of a model, and where it comes from."""
    choice, judging = request.choice, request.judging
    model: Any = None
    how: dict[str, Any] = {"folds": FoldRule(choice.cv or 10, choice.seed)}
    if request.model_file is not None:
        model, how, request = _model_of(request)
    with prepared_table(request, show, **how) as prepared:
        groups, names = prepared.sensitive_features, list(prepared.roles.groups)
        same = ("probes", "reference", "judge_from", "small_gap")
        options: dict[str, Any] = {name: getattr(judging, name) for name in same}
        options |= {"sample_weight": prepared.sample_weight, "random_state": choice.seed}
        options |= {"y": prepared.target, "pos_label": judging.target_positive}
        found: Audit | ModelAudit
        if model is None:
            X = prepared.moments if prepared.streamed else prepared.data
            found = audit(X, groups, estimator_of(choice), **options, progress=show)
        elif prepared.streamed:
            raise ValueError(
                f"{prepared.table.name} is too large to keep in memory, which the audit of a model "
                "needs; take a sample of the rows with a query."
            )
        else:
            found = audit_model(model, prepared.data, groups, **options)
        found = with_group_columns(found, names)
        found = replace(found, left_out=[*found.left_out, *left_out(prepared.record)])
        return found, _origin(request, prepared, found, argv)


def _model_of(request: AuditRequest) -> tuple[Any, dict[str, Any], AuditRequest]:
    """A model, how its rows are read, and the request for its columns."""
    own, judging = "--model" if request.judging.model else "--loadings", request.judging
    if judging.model is not None and judging.loadings is not None:
        raise ValueError("--model and --loadings both name what is judged; pass one of them.")
    rest = replace(request.columns, group=None, target=None, weight=None)
    if given := words(rest, replace(request.choice, seed=0)):
        raise ValueError(
            f"{own} is judged as it is, with its own columns and components; leave out {given[0]}."
        )
    if not request.data:
        raise ValueError(f"{own} needs rows to be judged by: name a file too.")
    if judging.loadings is not None:
        model, names = _read_loadings(judging.loadings)
        return model, {}, replace(request, columns=replace(request.columns, features=names))
    model, fitted = load(str(judging.model))
    group = request.columns.group or list(fitted.groups)
    request = replace(request, columns=replace(request.columns, group=group))
    return model, {"fitted": fitted}, request


def _read_loadings(path: str) -> tuple[Any, list[str]]:
    """The PCA that a table of weights describes, and the names of its columns.

    A row for each column of the data: ``name``, ``mean`` and ``scale`` (0 and 1 if they are left
    out), and a weight in each further column, one for each component.
    """
    with open(path, newline="", encoding="utf-8-sig") as stream:
        rows = list(csv.DictReader(stream))
    heads = list(rows[0]) if rows else []
    components = [head for head in heads if head not in ("name", "mean", "scale")]
    if "name" not in heads or not components:
        raise ValueError(
            f"{path} does not hold weights: it needs a column 'name' and one for each component, "
            "beside 'mean' and 'scale', and a row for each column of the data."
        )
    try:
        mean = [float(row.get("mean") or 0) for row in rows]
        scale = [float(row.get("scale") or 1) for row in rows]
        weights = [[float(row[head]) for head in components] for row in rows]
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: a mean, scale or weight is no number ({error}).") from None
    names = [row["name"] for row in rows]
    return model_from_loadings(names, mean, scale, weights), names


def _origin(
    request: AuditRequest, prepared: Prepared, found: Audit | ModelAudit, argv: Sequence[str]
) -> Origin:
    """Where an audit comes from, and how to repeat it."""
    fit = step = ""
    if request.model_file is None:
        start = ["fairpca", "fit", *(request.data or ()), *words(request.columns, request.files)]
        end = "--out model.safetensors"
        fit = f"{shlex.join([*start, *words(request.choice)])} {end}"
        plain = replace(request.choice, cv=0, constraint=None, criterion=None, alpha=None)
        plain = replace(plain, max_disparity=None, max_error_increase=None)
        step = f"{shlex.join([*start, *words(plain)])} --max-error-increase {{step}} {end}"
    source = prepared.table.name
    if not request.data:
        source = "check-up data (NHANES 2017–2018)"
    elif not is_query(request.data[0]):  # a page may be passed on: it names no folders
        source = basename(source.rstrip("/")) or source
    sha256, inputs = "", prepared.table.inputs
    if len(inputs) == 1 and Path(inputs[0]).is_file():
        with open(inputs[0], "rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    return Origin(
        source=source,
        sha256=sha256,
        n_read=prepared.record.n_rows,
        streamed=prepared.streamed,
        notes=notes_on(prepared.record),
        model_file=basename(request.model_file or ""),
        command=shlex.join(["fairpca", *argv]),
        code=_code(request, prepared, found.provenance.alternative),
        fit_command=fit,
        step_command=step,
    )


def _code(request: AuditRequest, prepared: Prepared, estimator: str) -> str:
    """Lines of Python that make the audit again; none for a table of weights."""
    columns, files, judging = request.columns, request.files, request.judging
    if judging.loadings is not None:
        return ""
    groups = list(prepared.roles.groups)
    if request.data:
        source = request.data[0] if len(request.data) == 1 else list(request.data)
        given = arguments(columns, files) | {"sensitive_features": None}
        for name in ("features", "drop"):
            given[name] = split_names(given.get(name), prepared.table.columns)
        header = ", header=False" if files.no_header else ""
        call = _call(repr(source), repr(groups), **given)
        labels, lines = "table.sensitive_features", [f"table = read_table({call}{header})"]
    else:
        labels = f"table.{'sensitive_features' if groups == ['age_group'] else groups[0]}"
        lines = ["from fairpca.datasets import load_checkup", "", "table = load_checkup()"]
    names, given_to = ["audit", estimator.partition("(")[0]], ["table.data", labels, estimator]
    if judging.model is not None:
        names = ["audit_model", "load_model"]
        given_to = [f"load_model({judging.model!r})", "table.data", labels]
    given_to += ["sample_weight=table.sample_weight"] if columns.weight else []
    given_to += ["y=table.target"] if columns.target else []
    asked = {k: v for k, v in vars(judging).items() if v != getattr(Judging(), k) and k != "model"}
    asked |= {"pos_label": asked.pop("target_positive", None), "random_state": request.choice.seed}
    lines.append(f"result = {names[0]}({_call(*given_to, **asked)})")
    names += ["read_table"] if request.data else []
    return "\n".join([f"from fairpca import {', '.join(sorted(names))}", *lines])


def _call(*given: str, **named: Any) -> str:
    """Arguments of a call as code, without those that are not set."""
    return ", ".join([*given, *(f"{k}={v!r}" for k, v in named.items() if v)])
