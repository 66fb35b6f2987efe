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

import click
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
from fairpca.cli.options import Asked, changed
from fairpca.datasets import load_checkup
from fairpca.exceptions import noted
from fairpca.report import Origin, sentences
from fairpca.report.text import counted, display_names, in_a_row, percent, percent_range

SCHEMA_VERSION = 2  # version of audit.schema.json, the format of --json
EXCEEDED, CANNOT_JUDGE = 1, 3  # exit codes

_TO_MODEL = " --out model.safetensors"

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


def estimator_of(asked: Asked, sizes: NDArray[np.int64]) -> FairProjection:
    """The estimator that ``fit`` saves and ``report`` judges, for groups of these sizes."""
    shared = _shared(asked)
    own = ("constraint", "alpha", "max_disparity", "max_error_increase", "max_group_increase")
    given: dict[str, Any] = {name: v for name in own if (v := getattr(asked, name)) is not None}
    if asked.criterion is not None:
        if given:
            other = next(iter(given)).replace("_", "-")
            raise ValueError(
                f"--criterion {asked.criterion} is for MinMaxPCA, which knows no --{other}; pass "
                "one of them."
            )
        return MinMaxPCA(asked.components, criterion=asked.criterion, **shared)
    if asked.constraint == "none":
        given["constraint"] = None
    if asked.alpha is not None or asked.cv == 0:
        return FairPCA(asked.components, **given, **shared)
    folds: dict[str, Any] = {"cv": asked.cv, "random_state": asked.seed or None}
    return for_sizes(FairPCACV(asked.components, **folds, **given, **shared), sizes)


def columns_of(asked: Asked, r: int, **more: Any) -> FairColumns:
    """The estimator that keeps ``r`` columns."""
    return FairColumns(r, **more, **_shared(asked))


def _shared(asked: Asked) -> dict[str, Any]:
    """The parameters that all estimators here have."""
    names = ("standardize", "normalize", "min_group_size", "small_groups")
    return {name: getattr(asked, name) for name in names}


def _folds(asked: Asked) -> FoldRule:
    return FoldRule(asked.cv or 10, asked.seed)


def fit(
    asked: Asked, path: Path, show: Progress
) -> tuple[FairProjection, Sequence[str], list[str]]:
    """Fit and save a model; returns it, the columns of its groups, and cautions and notes."""
    how: dict[str, Any] = {"folds": _folds(asked), "whole": False}
    with prepared_table(asked, show, **how) as (prepared, _), noted() as caught:
        show("fitting")
        model = estimator_of(asked, prepared.moments.counts)
        model.fit_moments(prepared.moments)
        save(model, prepared.roles, path)
        quick = {"ranks": [model.n_components_], "n_points": 2, "progress": show}
        found = _audit_of(asked, prepared, **quick)
    said, cautions = sentences.say(found), [str(warning.message) for warning in caught]
    if found.verdict.case is not Case.REMEDY:  # the fair version is not advised
        cautions.append(f"{said.headline} {said.to_do}")
    cautions += said.notices
    lines = [*(f"! {text}" for text in cautions), *notes_on(prepared.record)]
    return model, prepared.roles.groups, lines


def judge(
    asked: Asked, show: Progress, estimator: Any = None, with_columns: bool = False
) -> tuple[Audit | ModelAudit, Origin, Audit | None]:
    """The audit of PCA, of a model or of an estimator, and where it comes from.

    With ``with_columns``, also the audit of keeping columns, if the table does not have too many.
    """
    model: Any = None
    how: dict[str, Any] = {"folds": _folds(asked)}
    if asked.model or asked.loadings:
        model, how, asked = _model_of(asked)
    with prepared_table(asked, show, **how) as (prepared, named):
        by: dict[str, Any] = {"probes": asked.probes, "y": prepared.target}
        by["pos_label"] = asked.target_positive
        found: Audit | ModelAudit
        columns: Audit | None = None
        if model is None:
            found = _audit_of(asked, prepared, estimator, **by, progress=show)
            r, d = found.n_components, len(found.provenance.feature_names)
            if with_columns and r < d <= _MOST_COLUMNS and all(g.n > 1 for g in found.groups):
                kept = columns_of(asked, r, max_subsets=_FEW_SUBSETS)
                columns = _audit_of(asked, prepared, kept)
        elif prepared.streamed:
            raise ValueError(
                f"{prepared.table.name} is too large to keep in memory, which the audit of a model "
                "needs; take a sample of the rows with a query."
            )
        else:
            by |= _rules(asked, prepared)
            own = audit_model(model, prepared.data, prepared.sensitive_features, **by)
            found = with_group_columns(own, prepared.roles.groups)
        found = replace(found, left_out=[*found.left_out, *left_out(prepared.record)])
        origin = _origin(named, prepared, found.provenance.alternative)
        if model is None and estimator is None:
            origin = replace(
                origin,
                fit_command=_typed(asked, opt.COMPONENTS, *opt.MEASURE, *opt.CHOICE) + _TO_MODEL,
            )
            smaller = (
                _typed(changed(asked, cv=0), opt.COMPONENTS, *opt.MEASURE)
                + " --max-error-increase {step}"
            )
            origin = replace(origin, step_command=smaller + _TO_MODEL)
        return found, origin, columns


def _audit_of(asked: Asked, prepared: Prepared, fair: Any = None, **options: Any) -> Audit:
    """The audit of PCA and ``fair``, by default the estimator that the options ask for."""
    X = prepared.moments if prepared.streamed else prepared.data
    fair = estimator_of(asked, prepared.moments.counts) if fair is None else fair
    options |= _rules(asked, prepared)
    found = audit(X, prepared.sensitive_features, fair, **options)
    return with_group_columns(found, prepared.roles.groups)


def _rules(asked: Asked, prepared: Prepared) -> dict[str, Any]:
    """The arguments that audits of models and of estimators have in common."""
    more = {"sample_weight": prepared.sample_weight, "random_state": asked.seed}
    return opt.values(asked, opt.RULES) | more


def compare(found: Audit | ModelAudit, gate: Asked) -> tuple[int, str]:
    """The exit code, and one line that says what was compared with what."""
    estimate = gate.fail_on == "estimate"
    if gate.fail_above is None:
        if estimate:
            raise ValueError("--fail-on says what --fail-above compares with; pass both.")
        return 0, ""
    if found.verdict.case is Case.CANNOT_JUDGE:
        return CANNOT_JUDGE, sentences.say(found).headline
    by_share = found.verdict.by_share
    above = groups_above(found.groups, gate.fail_above, by_share=by_share, estimate=estimate)
    if isinstance(found, ModelAudit) and found.on_rows_fitted_to and not above:
        return CANNOT_JUDGE, "This cannot be judged on the rows that the model was fitted to."
    row = above[0] if above else found.group(found.verdict.group)
    gap = gaps_of(found.groups, by_share)[row.label]
    who = f"{sentences.full_name(found, row.label)} ({row.n:,} people)"
    ends = f"{percent(gap.value)} ({percent_range(gap.low, gap.high)})"
    what = "share of own variation lost by" if by_share else "error of"
    which = "estimate" if estimate else "lower end"
    exceeds = "exceeds" if above else "does not exceed"
    return EXCEEDED if above else 0, (
        f"{sentences.judged(found)}: {what} {who} against {sentences.against(found, row.label)}: "
        f"{ends}; the {which} {exceeds} --fail-above {percent(gate.fail_above)}. "
        f"{sentences.measured(found)}."
    )


def figures_as_json(found: Audit | ModelAudit, origin: Origin, with_rows: bool, **more: Any) -> str:
    """The text that ``--json`` writes."""
    own = {"schema_version": SCHEMA_VERSION, "origin": vars(origin)}
    return json.dumps(own | found.to_dict(with_rows) | more, indent=1) + "\n"


def _model_of(asked: Asked) -> tuple[Any, dict[str, Any], Asked]:
    """The model, how to read its rows, and the request with its columns."""
    own = "--model" if asked.model else "--loadings"
    if asked.model is not None and asked.loadings is not None:
        raise ValueError("--model and --loadings both name what is judged; pass one of them.")
    rest = changed(asked, group=(), target=None, weight=None, seed=0)
    if given := opt.words(rest, *opt.COLUMNS, opt.COMPONENTS, *opt.MEASURE, *opt.CHOICE):
        raise ValueError(
            f"{own} is judged as it is, with its own columns and components; leave out {given[0]}."
        )
    if not asked.data:
        raise ValueError(f"{own} needs rows to be judged by: name a file too.")
    if asked.loadings is not None:
        model, names = _read_loadings(asked.loadings)
        return model, {}, changed(asked, features=tuple(names))
    model, _, fitted = load(str(asked.model))
    return model, {"fitted": fitted}, changed(asked, group=asked.group or fitted.groups)


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


def _origin(asked: Asked, prepared: Prepared, estimator: str) -> Origin:
    """Where an audit comes from, and how to repeat it."""
    source = prepared.table.name
    if not asked.data:
        source = "check-up data (NHANES 2017–2018)"
    elif not is_query(asked.data[0]):  # a page may be passed on, so it names no folders
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
        model_file=basename(asked.model or asked.loadings or ""),
        command=shlex.join(["fairpca", *click.get_current_context().obj]),
        code="" if asked.loadings else _code(asked, prepared, estimator),
    )


def _typed(asked: Asked, *options: opt.Option) -> str:
    """The command ``fit`` for the same data, with these options."""
    words = opt.words(asked, *opt.COLUMNS, *opt.FILES, *options)
    return shlex.join(["fairpca", "fit", *asked.data, *words])


def _code(asked: Asked, prepared: Prepared, estimator: str) -> str:
    """Python code that repeats the audit."""
    labels, made = "table.sensitive_features", estimator.partition("(")[0]
    if asked.data:
        source = asked.data[0] if len(asked.data) == 1 else [*asked.data]
        given = arguments(asked, *opt.COLUMNS, *opt.FILES)
        names, lines = ["read_table"], [f"table = read_table({_call(repr(source), **given)})"]
    else:
        group = asked.group[0]
        labels = labels if group == "age_group" else f"table.{group}"
        names, lines = (
            [],
            ["from fairpca.datasets import load_checkup", "", "table = load_checkup()"],
        )
    if asked.model is None:
        function, first = "audit", ["table.data", labels, estimator]
        names += [made]
    else:
        function, first = "audit_model", [f"load_model({asked.model!r})", "table.data", labels]
        names += ["load_model"]
    first += ["sample_weight=table.sample_weight"] if asked.weight else []
    first += ["y=table.target"] if asked.target else []
    rules = [option for option in opt.RULES if getattr(asked, str(option.name)) != option.default]
    options = opt.values(asked, rules)
    options |= {"probes": asked.probes or None, "pos_label": asked.target_positive}
    call = _call(*first, **options, random_state=asked.seed or None)
    imports = f"from fairpca import {', '.join(sorted([function, *names]))}"
    return "\n".join([imports, *lines, f"result = {function}({call})"])


def _call(*given: str, **named: Any) -> str:
    """Arguments of a call as code, without those that are not set."""
    return ", ".join([*given, *(f"{k}={v!r}" for k, v in named.items() if v is not None)])


# -- tables and model files ------------------------------------------------------------------------


@contextmanager
def prepared_table(asked: Asked, show: Progress, **how: Any) -> Iterator[tuple[Prepared, Any]]:
    """The rows and moments of a table, which is closed afterwards, and the request.

    The columns in the request are split at commas. Without data, it is the demonstration.
    """
    if asked.data:
        table, group = _opened(asked.data, asked), asked.group
        unused: list[str] = []
    elif given := opt.words(asked, *opt.FILES):
        raise ValueError(f"{given[0]} says how to read a file; name the file too.")
    else:
        people = load_checkup()
        groups = {"age_group": people.sensitive_features, "sex": people.sex}
        groups["ethnicity"] = people.ethnicity
        table = open_table(dict(zip(people.feature_names, people.data.T, strict=True)) | groups)
        group = asked.group or ["age_group"]
        unused = [name for name in groups if name not in split_names(group, groups)]
    split = {
        name: split_names(getattr(asked, name), table.columns) for name in ("features", "drop")
    }
    split |= {"group": split_names(group, table.columns), "drop": [*split["drop"], *unused]}
    asked = changed(asked, **split)
    how |= {"drop_missing": asked.drop_missing, "progress": show}
    with closing(table):
        yield prepare(table, **arguments(asked, *opt.COLUMNS), **how), asked


def _opened(data: Sequence[str], asked: Asked) -> Table:
    reading = arguments(asked, *opt.FILES)
    reading.pop("drop_missing", None)
    return open_table(data[0] if len(data) == 1 else [*data], **reading)


def arguments(asked: Asked, *options: opt.Option) -> dict[str, Any]:
    """The options that are set, under the names that :func:`fairpca.read_table` has for them."""
    renamed = {"group": "sensitive_features", "weight": "sample_weight"}
    renamed |= {"missing_value": "missing_values"}
    given = {renamed.get(k, k): v for k, v in opt.values(asked, options).items() if v}
    return given | ({"header": False} if given.pop("no_header", False) else {})


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


def write_scores_of(asked: Asked, show: Progress) -> tuple[int, int]:
    """Write the scores of a table; returns how many rows were written and left out."""
    _, model, fitted = load(asked.model)
    names, d = model.get_feature_names_out().tolist(), model.n_features_in_
    how: dict[str, Any] = {"mean": model.mean_, "reads": [asked.model]}
    if isinstance(model, FairColumns):
        how |= {"encoder": np.eye(d)[model.get_support()], "mean": np.zeros(d)}
    elif isinstance(model, GroupEraser):
        erased = model.strength * model.corrections_.T @ model.detectors_
        how |= {"encoder": np.eye(d) - erased, "shift": model.mean_}
    else:
        how["encoder"] = encoder_of(model)
    with closing(_opened(asked.data, asked)) as table:
        kept: dict[str, Any] = {"keep": split_names(asked.keep, table.columns), "fitted": fitted}
        roles, _ = choose_roles(table, drop_missing=asked.drop_missing, **kept)
        how["progress"] = partial(show, "writing scores")
        return write_scores(table, roles, asked.out, names, **how)


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
