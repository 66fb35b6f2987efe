"""From options to results: what the commands do, once numerical libraries are loaded.

First the estimator and the audit, then tables and model files, which are read and written here.
"""

import csv
import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from os.path import basename
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from fairpca import FairColumns, FairPCA, FairPCACV, GroupEraser, MinMaxPCA, audit, audit_model
from fairpca._audit.judge import for_sizes
from fairpca._audit.record import Audit, LeftOut, ModelAudit, with_group_columns
from fairpca._audit.verdict import Case, gaps_of, groups_above
from fairpca._estimators.base import FairProjection
from fairpca._estimators.projection import encoder_of
from fairpca._input.folds import FoldRule
from fairpca._models.safetensors import ModelPipeline, load_model, read_extra, write_model
from fairpca._progress import Progress
from fairpca._tables.column_roles import Roles, choose_roles
from fairpca._tables.prepare import Prepared, Record, prepare
from fairpca._tables.read import Table, is_query, open_table
from fairpca._tables.write import write_scores
from fairpca.cli import options as opt
from fairpca.datasets import load_checkup
from fairpca.exceptions import noted
from fairpca.report import Origin, sentences
from fairpca.report.text import counted, display_names, in_a_row, percent, percent_range

SCHEMA_VERSION = 2  # version of audit.schema.json, the format of --json
EXCEEDED, CANNOT_JUDGE = 1, 3  # exit codes

_MOST_COLUMNS, _FEW_SUBSETS = 100, 5000  # so the page's section on columns takes seconds

#: Why columns have no role: the code of the reader of tables, and words for people.
_NOT_USED = {
    "text": "no numbers (--encode uses text)",
    "date": "dates are no numbers",
    "empty": "empty",
    "identifier": "looks like an id (--features uses it)",
    "row numbers": "looks like row numbers (--features uses it)",
    "index": "a column without a name, as pandas writes its index",
    "other": "no numbers",
}


def estimator_of(choice: opt.Choice, sizes: NDArray[np.int64]) -> FairProjection:
    """The estimator that ``fit`` saves and ``report`` judges, for groups of these sizes."""
    shared = _shared(choice)
    own = ("constraint", "alpha", "max_disparity", "max_error_increase", "max_group_increase")
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
    fair = FairPCACV(choice.components, cv=choice.cv, random_state=salt, **given, **shared)
    return for_sizes(fair, sizes)


def _shared(choice: opt.Choice) -> dict[str, Any]:
    """The parameters that all estimators here have."""
    names = ("standardize", "normalize", "min_group_size", "small_groups")
    return {name: getattr(choice, name) for name in names}


def fit(
    request: opt.Request, rules: opt.Rules, path: Path, show: Progress
) -> tuple[FairProjection, Sequence[str], list[str]]:
    """Fit and save a model; returns it, the columns of its groups, and cautions and notes."""
    how: dict[str, Any] = {"folds": _folds(request), "whole": False}
    with prepared_table(request, show, **how) as prepared, noted() as caught:
        show("fitting")
        model = estimator_of(request.choice, prepared.moments.counts)
        model.fit_moments(prepared.moments)
        save(model, prepared.roles, path)
        quick = {"ranks": [model.n_components_], "n_points": 2, "progress": show}
        found = _audit_of(request, prepared, **quick, **vars(rules))
    said, cautions = sentences.say(found), [str(warning.message) for warning in caught]
    if found.verdict.case is not Case.REMEDY:  # the fair version is not advised
        cautions.append(f"{said.headline} {said.to_do}")
    cautions += said.notices
    lines = [*(f"! {text}" for text in cautions), *notes_on(prepared.record)]
    return model, prepared.roles.groups, lines


def judge(
    request: opt.AuditRequest,
    argv: Sequence[str],
    show: Progress,
    estimator: Any = None,
    with_columns: bool = False,
) -> tuple[Audit | ModelAudit, Origin, Audit | None]:
    """The audit of PCA, of a model or of an estimator, and where it comes from.

    With ``with_columns``, also the audit of keeping columns, if the table does not have too many.
    """
    choice, judging = request.choice, request.judging
    model: Any = None
    how: dict[str, Any] = {"folds": _folds(request)}
    if request.model_file is not None:
        model, how, request = _model_of(request)
    with prepared_table(request, show, **how) as prepared:
        same = ("probes", "reference", "judge_from", "small_gap")
        options: dict[str, Any] = {name: getattr(judging, name) for name in same}
        options |= {"y": prepared.target, "pos_label": judging.target_positive}
        found: Audit | ModelAudit
        columns: Audit | None = None
        if model is None:
            found = _audit_of(request, prepared, estimator, **options, progress=show)
            r, d = found.n_components, len(found.provenance.feature_names)
            if with_columns and r < d <= _MOST_COLUMNS and all(g.n > 1 for g in found.groups):
                kept = FairColumns(r, max_subsets=_FEW_SUBSETS, **_shared(choice))
                options |= {"probes": False, "y": None}
                columns = _audit_of(request, prepared, kept, **options)
        elif prepared.streamed:
            raise ValueError(
                f"{prepared.table.name} is too large to keep in memory, which the audit of a model "
                "needs; take a sample of the rows with a query."
            )
        else:
            options |= {"sample_weight": prepared.sample_weight, "random_state": choice.seed}
            own = audit_model(model, prepared.data, prepared.sensitive_features, **options)
            found = with_group_columns(own, prepared.roles.groups)
        found = replace(found, left_out=[*found.left_out, *left_out(prepared.record)])
        origin = _origin(request, prepared, found, argv)
        if estimator is not None:
            origin = replace(origin, fit_command="", step_command="")
        return found, origin, columns


def _folds(request: opt.Request) -> FoldRule:
    return FoldRule(request.choice.cv or 10, request.choice.seed)


def _audit_of(request: opt.Request, prepared: Prepared, fair: Any = None, **options: Any) -> Audit:
    """The audit of PCA and ``fair``, by default the estimator that the options ask for."""
    X = prepared.moments if prepared.streamed else prepared.data
    fair = estimator_of(request.choice, prepared.moments.counts) if fair is None else fair
    options |= {"sample_weight": prepared.sample_weight, "random_state": request.choice.seed}
    found = audit(X, prepared.sensitive_features, fair, **options)
    return with_group_columns(found, prepared.roles.groups)


def columns_of(choice: opt.Choice) -> FairColumns:
    """The estimator that ``columns`` judges."""
    return FairColumns(int(choice.components), **_shared(choice))


def compare(found: Audit | ModelAudit, gate: opt.Gate) -> tuple[int, str]:
    """The exit code, and one line that says what was compared with what."""
    if gate.fail_above is None:
        if gate.fail_on == "estimate":
            raise ValueError("--fail-on says what --fail-above compares with; pass both.")
        return 0, ""
    if found.verdict.case is Case.CANNOT_JUDGE:
        return CANNOT_JUDGE, sentences.say(found).headline
    by_share, estimate = found.verdict.by_share, gate.fail_on == "estimate"
    above = groups_above(found.groups, gate.fail_above, by_share=by_share, estimate=estimate)
    if isinstance(found, ModelAudit) and found.on_rows_fitted_to and not above:
        return CANNOT_JUDGE, "This cannot be judged on the rows that the model was fitted to."
    row = above[0] if above else found.group(found.verdict.group)
    gap = gaps_of(found.groups, by_share)[row.label]
    ends = f"{percent(gap.value)} ({percent_range(gap.low, gap.high)})"
    others = sentences.against(found, row.label)
    which = (
        f"the {'estimate' if estimate else 'lower end'} {'exceeds' if above else 'does not exceed'}"
    )
    more = f"; so {'does 1 more group' if len(above) == 2 else f'do {len(above) - 1} more groups'}"
    more *= len(above) > 1
    return EXCEEDED if above else 0, (
        f"{sentences.judged(found)}: {'share of own variation lost by' if by_share else 'error of'}"
        f" {sentences.full_name(found, row.label)} "
        f"({row.n:,} people) against {others}: {ends}; {which} "
        f"--fail-above {percent(gate.fail_above)}{more}. {sentences.measured(found)}."
    )


def figures_as_json(found: Audit | ModelAudit, origin: Origin, with_rows: bool, **more: Any) -> str:
    """What ``--json`` writes."""
    own = {"schema_version": SCHEMA_VERSION, "origin": vars(origin)}
    return json.dumps(own | found.to_dict(with_rows) | more, indent=1) + "\n"


def _model_of(request: opt.AuditRequest) -> tuple[Any, dict[str, Any], opt.AuditRequest]:
    """The model, how to read its rows, and the request with its columns."""
    own, judging = "--model" if request.judging.model else "--loadings", request.judging
    if judging.model is not None and judging.loadings is not None:
        raise ValueError("--model and --loadings both name what is judged; pass one of them.")
    rest = replace(request.columns, group=None, target=None, weight=None)
    if given := opt.words(rest, replace(request.choice, seed=0)):
        raise ValueError(
            f"{own} is judged as it is, with its own columns and components; leave out {given[0]}."
        )
    if not request.data:
        raise ValueError(f"{own} needs rows to be judged by: name a file too.")
    if judging.loadings is not None:
        model, names = _read_loadings(judging.loadings)
        return model, {}, replace(request, columns=replace(request.columns, features=names))
    model, _, fitted = load(str(judging.model))
    group = request.columns.group or list(fitted.groups)
    request = replace(request, columns=replace(request.columns, group=group))
    return model, {"fitted": fitted}, request


def _read_loadings(path: str) -> tuple[Pipeline, list[str]]:
    """The PCA that a table of weights describes, and the names of its columns.

    A row for each column of the data: ``name``, ``mean``, ``scale`` (1 if it is left out), and a
    weight in each further column, one for each component. Weights need not be
    orthonormal: loadings that were multiplied by deviations or rotated span the same space, and the
    space is what is judged.
    """
    with open(path, newline="", encoding="utf-8-sig") as stream:
        rows = list(csv.DictReader(stream))
    heads = list(rows[0]) if rows else []
    components = [head for head in heads if head not in ("name", "mean", "scale")]
    if not {"name", "mean"} <= {*heads} or not components:
        raise ValueError(
            f"{path} does not hold weights: it needs columns 'name', 'mean' (0 if nothing was "
            "subtracted), 'scale' (if columns were divided) and one for each component, and a row "
            "for each column of the data."
        )
    try:
        mean = np.array([float(row["mean"]) for row in rows])
        scale = np.array([float(row.get("scale", 1)) for row in rows])
        weights = np.array([[float(row[head]) for head in components] for row in rows])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: a mean, scale or weight is no number ({error}).") from None
    if not (np.isfinite([*mean, *weights.flat]).all() and (scale > 0).all()):
        raise ValueError(
            f"{path}: means and weights must be finite numbers, and scales must be positive."
        )
    (d, r), (basis, triangle) = weights.shape, np.linalg.qr(weights)
    sizes = np.abs(np.diag(triangle))
    if r > d or sizes.min() <= 1e-10 * sizes.max():
        raise ValueError(
            f"{path}: the {r} columns of weights depend on each other; keep one for each component."
        )
    scaler, pca, names = StandardScaler(), PCA(n_components=r), [row["name"] for row in rows]
    scaler.mean_, scaler.scale_, scaler.var_ = mean, scale, scale**2
    scaler.n_features_in_ = pca.n_features_in_ = d
    scaler.feature_names_in_ = np.asarray(names, object)
    pca.components_, pca.mean_, pca.n_components_ = basis.T, np.zeros(d), r
    return Pipeline([("scale", scaler), ("pca", pca)]), names


def _origin(
    request: opt.AuditRequest, prepared: Prepared, found: Audit | ModelAudit, argv: Sequence[str]
) -> Origin:
    """Where an audit comes from, and how to repeat it."""
    fit = step = ""
    if request.model_file is None:
        start = [
            "fairpca",
            "fit",
            *(request.data or ()),
            *opt.words(request.columns, request.files),
        ]
        end = "--out model.safetensors"
        fit = f"{shlex.join([*start, *opt.words(request.choice)])} {end}"
        plain = replace(request.choice, cv=0, constraint=None, criterion=None, alpha=None)
        plain = replace(plain, max_disparity=None, max_error_increase=None, max_group_increase=None)
        step = f"{shlex.join([*start, *opt.words(plain)])} --max-error-increase {{step}} {end}"
    source = prepared.table.name
    if not request.data:
        source = "check-up data (NHANES 2017–2018)"
    elif not is_query(request.data[0]):  # a page may be passed on, so it names no folders
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


def _code(request: opt.AuditRequest, prepared: Prepared, estimator: str) -> str:
    """Python code that repeats the audit; empty for a table of weights."""
    columns, files, judging = request.columns, request.files, request.judging
    if judging.loadings is not None:
        return ""
    groups = list(prepared.roles.groups)
    if request.data:
        source = request.data[0] if len(request.data) == 1 else list(request.data)
        given = arguments(columns, files) | {"sensitive_features": None}
        for name in ("features", "drop"):
            given[name] = split_names(given.get(name), prepared.table.columns)
        call = _call(repr(source), repr(groups), **given)
        labels, lines = "table.sensitive_features", [f"table = read_table({call})"]
    else:
        labels = f"table.{'sensitive_features' if groups == ['age_group'] else groups[0]}"
        lines = ["from fairpca.datasets import load_checkup", "", "table = load_checkup()"]
    names, given_to = ["audit", estimator.partition("(")[0]], ["table.data", labels, estimator]
    if judging.model is not None:
        names = ["audit_model", "load_model"]
        given_to = [f"load_model({judging.model!r})", "table.data", labels]
    given_to += ["sample_weight=table.sample_weight"] if columns.weight else []
    given_to += ["y=table.target"] if columns.target else []
    asked = {
        k: v for k, v in vars(judging).items() if v != getattr(opt.Judging(), k) and k != "model"
    }
    asked["pos_label"] = asked.pop("target_positive", None)
    asked["random_state"] = request.choice.seed or None
    lines.append(f"result = {names[0]}({_call(*given_to, **asked)})")
    names += ["read_table"] if request.data else []
    return "\n".join([f"from fairpca import {', '.join(sorted(names))}", *lines])


def _call(*given: str, **named: Any) -> str:
    """Arguments of a call as code, without those that are not set."""
    return ", ".join([*given, *(f"{k}={v!r}" for k, v in named.items() if v not in (None, []))])


# -- tables and model files ------------------------------------------------------------------------


@contextmanager
def prepared_table(request: opt.Request, show: Progress, **how: Any) -> Iterator[Prepared]:
    """The rows and moments of a table, which is closed afterwards."""
    table, columns = _opened(request)
    how |= {"drop_missing": request.files.drop_missing, "progress": show}
    with closing(table):
        yield prepare(table, **arguments(columns), **how)


def arguments(*records: opt.Columns | opt.Files) -> dict[str, Any]:
    """The options that are set, under the names that :func:`fairpca.read_table` has for them."""
    renamed = {"group": "sensitive_features", "weight": "sample_weight"}
    renamed |= {"missing_value": "missing_values"}
    options = {name: value for own in records for name, value in vars(own).items()}
    given = {renamed.get(k, k): v for k, v in options.items() if v not in (None, [], False)}
    return given | ({"header": False} if given.pop("no_header", False) else {})


def _opened(request: opt.Request) -> tuple[Table, opt.Columns]:
    """The table, and the columns asked for by name; without a file, the demonstration data."""
    columns, files = request.columns, request.files
    if not request.data:
        if files != opt.Files():
            raise ValueError(f"{opt.words(files)[0]} says how to read a file; name the file too.")
        people = load_checkup()
        groups = {"age_group": people.sensitive_features, "sex": people.sex}
        groups["ethnicity"] = people.ethnicity
        group = columns.group or ["age_group"]
        unused = [name for name in groups if name not in group]
        columns = replace(columns, group=group, drop=[*(columns.drop or ()), *unused])
        features = dict(zip(people.feature_names, people.data.T, strict=True))
        return open_table(features | groups), columns
    reading = arguments(files)
    reading.pop("drop_missing", None)
    table = open_table(request.data[0] if len(request.data) == 1 else request.data, **reading)
    named = ("group", "features", "drop")
    names: Any = {name: split_names(getattr(columns, name), table.columns) for name in named}
    return table, replace(columns, **names)


def split_names(values: Sequence[str] | None, known: Mapping[str, object]) -> list[str]:
    """Split names at their commas, unless the whole is the name of a column.

    Examples
    --------
    >>> split_names(["age, bmi", "income, yearly"], dict.fromkeys(["bmi", "income, yearly"]))
    ['age', 'bmi', 'income, yearly']
    """
    parts = [part for v in values or () for part in ([v] if v in known else v.split(","))]
    names = [part if part in known else part.strip() for part in parts]
    return [name for name in names if name]


def write_scores_of(
    request: opt.Request, model: str, out: str, keep: Sequence[str] | None, show: Progress
) -> tuple[int, int]:
    """Write the scores of a table; returns how many rows were written and left out."""
    _, projection, fitted = load(model)
    names, d = projection.get_feature_names_out().tolist(), projection.n_features_in_
    how: dict[str, Any] = {"mean": projection.mean_, "reads": [model]}
    if isinstance(projection, FairColumns):
        how |= {"encoder": np.eye(d)[projection.get_support()], "mean": np.zeros(d)}
    elif isinstance(projection, GroupEraser):
        erased = projection.strength * projection.corrections_.T @ projection.detectors_
        how |= {"encoder": np.eye(d) - erased, "shift": projection.mean_}
    else:
        how["encoder"] = encoder_of(projection)
    table, _ = _opened(request)
    with closing(table):
        how_to: dict[str, Any] = {"drop_missing": request.files.drop_missing, "fitted": fitted}
        roles, _ = choose_roles(table, keep=split_names(keep, table.columns), **how_to)
        progress = partial(show, "writing scores")
        return write_scores(table, roles, out, names, **how, progress=progress)


def save(model: FairProjection, roles: Roles, path: Path) -> None:
    """Write a model with the columns it was fitted to."""
    fill = None
    if roles.fill:  # encoded text columns have no fill value
        fill = np.array([roles.fill.get(name, 0.0) for name in roles.feature_names])
    extra = {"columns": roles.features, "categories": roles.categories, "group": roles.groups}
    write_model(ModelPipeline.of(model, fill=fill), path, extra)


def load(path: str) -> tuple[Any, Any, Roles]:
    """A model, its estimator, and what it knows of its columns."""
    model, extra = load_model(path), read_extra(path)
    names = extra.get("columns", getattr(model, "feature_names_in_", None))
    columns = () if names is None else tuple(map(str, names))
    categories = extra.get("categories", {})
    projection, fill = model, {}
    if isinstance(model, ModelPipeline):
        projection = model[-1]
        features = Roles(columns, categories=categories).feature_names
        medians = dict(zip(features, model[0].statistics_.tolist(), strict=False))
        fill = {name: medians[name] for name in columns if name in medians}
    groups = tuple(extra.get("group") or ())
    return model, projection, Roles(columns, groups, categories=categories, fill=fill)


def left_out(record: Record) -> list[LeftOut]:
    """What the reader left out, for the audit's record."""
    columns = [
        LeftOut("column", name, 0, _NOT_USED[reason])
        for name, reason in record.left_out.items()
        if reason in _NOT_USED
    ]
    rows = [LeftOut("rows", "", record.n_dropped, "missing values")] if record.n_dropped else []
    return [*columns, *rows]


def notes_on(record: Record) -> list[str]:
    """Sentences on what was done to the data when they were read."""

    def listed(names: Sequence[str]) -> str:
        return in_a_row(display_names(names, 40))

    notes = []
    if record.constant:
        notes.append(f"Columns that do not vary: {listed(record.constant)}.")
    if record.near_constant:
        nearly = listed(record.near_constant)
        notes.append(f"Columns in which nearly all rows have the same value: {nearly}.")
    if record.filled:
        filled = [f"{name} ({n:,})" for name, n in record.filled.items()]
        shares = [f"{label} {percent(share)}" for label, share in record.filled_shares.items()]
        notes.append(
            f"Missing numbers filled in with the median: {listed(filled)}; share of each "
            f"group’s numbers: {listed(shares)}. A number that was filled in is easy to "
            "describe, so a group with many looks better off than it is."
        )
    for odd in record.sentinels:
        notes.append(
            f"Column {odd.column} holds {odd.value:.12g} in {counted(odd.n_rows, 'row')}, far from "
            f"all others ({odd.next_value:g}). If it stands for a missing value, pass "
            f"--missing-value {odd.value:.12g}."
        )
    for twins in record.twin_labels:
        notes.append(f"Groups that may be the same: {listed([repr(twin) for twin in twins])}.")
    if record.unordered:
        notes.append("The query has no ORDER BY, so folds may differ when it is run again.")
    return notes
