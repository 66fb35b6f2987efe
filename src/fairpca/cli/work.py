"""From options to results: what the commands do, once numerical libraries are loaded.

First the estimator and the audit, then tables and model files, which are read and written here.
"""

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from importlib.resources import files
from os.path import basename
from pathlib import Path
from typing import Any

import click
import numpy as np

from fairpca import FairColumns, FairPCA, FairPCACV, MinMaxPCA, audit, audit_model
from fairpca._audit.gate import Answer, Gate, gate
from fairpca._audit.record import AnyAudit, Audit, LeftOut, ModelAudit, group_name, plain_json
from fairpca._audit.refits import for_sizes
from fairpca._audit.verdict import Remedy
from fairpca._estimators.base import FairProjection
from fairpca._input.folds import FoldRule
from fairpca._input.rows import dense
from fairpca._models.safetensors import ModelPipeline, load_model, read_extra, write_model
from fairpca._moments.group_moments import GroupMoments
from fairpca._progress import Progress
from fairpca.cli import options as opt
from fairpca.cli.columns.prepare import Prepared, prepare
from fairpca.cli.columns.roles import Roles, choose_roles
from fairpca.cli.compare import changes, read_figures
from fairpca.cli.fixed_models import KINDS, check_asked, rebuilt_rows, refuse_pickle
from fairpca.cli.options import Asked, changed
from fairpca.cli.reader.read import is_query, open_table
from fairpca.cli.reader.table import Table
from fairpca.cli.terminal import fill
from fairpca.cli.weights import pca_of, read_weights
from fairpca.cli.writer import write_scores
from fairpca.datasets import load_checkup
from fairpca.exceptions import noted
from fairpca.report import Origin, sentences
from fairpca.report.text import percent

SCHEMA_VERSION = 2  # version of audit.schema.json, the format of --json
EXIT_CODES = {Answer.PASSES: 0, Answer.EXCEEDED: 1, Answer.CANNOT_JUDGE: 3, Answer.UNPROVEN: 4}

# So the page's section on columns takes seconds.
_MOST_COLUMNS = 100
_FEW_SUBSETS = 5000

#: Why columns have no role: words for some codes of the reader of tables.
_NOT_USED = {
    "text": "no numbers (--encode uses text)",
    "identifier": "probably an id (--features uses it)",
    "row numbers": "probably row numbers (--features uses it)",
    "index": "without a name, as pandas writes its index",
    "code": "codes such as 00501 (--features uses it)",
    "date": "dates",
    "weights": "probably weights (--weight or --features uses it)",
    "phone or postcode": "probably phone numbers or postcodes (--features uses it)",
}


def estimator_of(asked: Asked, moments: GroupMoments) -> FairProjection:
    """The estimator that ``fit`` saves and ``report`` judges, for rows with these moments."""
    r = asked.components
    shared = opt.values(asked, opt.MEASURE) | _how(asked, moments)
    given = {name: v for name, v in opt.values(asked, opt.CHOICE).items() if v is not None}
    criterion = given.pop("criterion", None)
    if criterion is not None and given:
        other = next(iter(given)).replace("_", "-")
        raise ValueError(
            f"--criterion {criterion} is for MinMaxPCA, which knows no --{other}; pass one of them."
        )
    if criterion is not None:
        return MinMaxPCA(r, criterion=criterion, **shared)
    if asked.alpha is not None or asked.cv == 0:
        return FairPCA(r, **given, **shared)
    folds = {"cv": asked.cv, "random_state": asked.seed or None}
    return for_sizes(FairPCACV(r, **folds, **given, **shared), moments.counts)


def fit(asked: Asked, path: Path, show: Progress) -> tuple[Any, Roles, list[str]]:
    """Fit and save a model; returns it, the roles of the columns, and cautions and notes."""
    with prepared_table(asked, show, whole=False) as (prepared, _), noted() as caught:
        show("fitting")
        model = estimator_of(asked, prepared.moments)
        model.fit(prepared.moments)
        save(model, prepared.roles, path)
        quick = {"ranks": [model.n_components_], "n_points": 2, "progress": show}
        found = _audit_of(asked, prepared, **quick)
    said = sentences.say(found)
    cautions = [str(warning.message) for warning in caught]
    if found.verdict.remedy is not Remedy.HELPS or found.verdict.depending:  # it is not advised
        cautions.append(f"{said.headline} {said.to_do}")
    lines = [f"! {text}" for text in (*cautions, *said.notices)]
    lines += [*sentences.left_out(found), *_notes(prepared)]
    return model, prepared.roles, lines


def judge(
    asked: Asked, show: Progress, *, keep_columns: bool = False, both: bool = False
) -> tuple[AnyAudit, Origin, Audit | None]:
    """The audit of PCA, of a model or of keeping columns, and where it comes from.

    With ``both``, also the audit of keeping columns, if the table does not have too many.
    """
    if any(getattr(asked, name) for name in KINDS):
        return *_judge_model(asked, show), None
    measure = opt.values(asked, opt.MEASURE)
    columns = None
    estimator = None
    if keep_columns:
        estimator = FairColumns(asked.components, **measure)
    with prepared_table(asked, show) as (prepared, named):
        found = _audit_of(asked, prepared, estimator, progress=show, **_scores(asked, prepared))
        r = found.n_components
        d = len(found.provenance.feature_names)
        few = r < d <= _MOST_COLUMNS and all(g.n > 1 for g in found.groups)
        if both and few and not asked.margins:
            kept = FairColumns(r, max_subsets=_FEW_SUBSETS, **measure)
            columns = _audit_of(asked, prepared, kept)
        origin = _origin(named, prepared, found)
    if not keep_columns:
        step = _fit_command(changed(asked, cv=0), more="--max-error-increase {step}")
        origin = replace(origin, fit_command=_fit_command(asked, *opt.CHOICE), step_command=step)
    return found, origin, columns


def _judge_model(asked: Asked, show: Progress) -> tuple[ModelAudit, Origin]:
    """The audit of a fitted model, and where it comes from."""
    check_asked(asked)
    model: Any = None
    fitted = None
    notes: list[str] = []
    if asked.model:
        model, _, fitted = load(asked.model)
        asked = changed(asked, group=asked.group or fitted.groups)
    elif asked.loadings:
        weights = read_weights(asked.loadings)
        asked = changed(asked, features=tuple(weights.names))
        notes = weights.notes(asked.standardize)
    with prepared_table(asked, show, fitted=fitted, folds=None) as (prepared, named):
        if prepared.streamed:
            raise ValueError(
                f"{prepared.table.name} is too large to keep in memory, which the audit of a model "
                "needs; take a sample of the rows with a query."
            )
        X = prepared.data
        if asked.loadings:
            model = pca_of(asked.loadings, weights, dense(X), asked.standardize)
        elif asked.rebuilt:
            model = X, rebuilt_rows(asked.rebuilt, prepared, _reading(asked))
            X = None
        options = _rules(asked, prepared) | _scores(asked, prepared)
        found = audit_model(model, X, sensitive_features=prepared.groups, **options)
        used = {"features": [*prepared.roles.features], "encode": bool(prepared.roles.categories)}
        origin = _origin(changed(named, **used), prepared, found)
        return _with_table(found, prepared), replace(origin, notes=[*notes, *origin.notes])


def _audit_of(asked: Asked, prepared: Prepared, fair: Any = None, **options: Any) -> Audit:
    """The audit of PCA and ``fair``, by default the estimator that the options ask for."""
    X = prepared.data
    if prepared.streamed:
        X = prepared.moments
    fair = fair or estimator_of(asked, prepared.moments)
    options |= _rules(asked, prepared)
    found: Audit = _with_table(audit(fair, X, prepared.groups, **options), prepared)
    return found


def _with_table(found: AnyAudit, prepared: Prepared) -> Any:
    """The audit with the columns of its groups, and with what the reader left out."""
    columns = [*prepared.roles.groups]
    read = prepared.record
    groups = [replace(row, name=group_name(row.label, columns)) for row in found.groups]
    left_out: list[LeftOut] = [
        LeftOut("column", name, 0, _NOT_USED.get(reason, f"no numbers ({reason})"))
        for name, reason in read.left_out.items()
        if reason != "asked"
    ]
    if read.n_dropped:
        left_out.append(LeftOut("rows", "", read.n_dropped, "missing values"))
    left_out = [*found.left_out, *left_out]
    provenance = replace(found.provenance, group_columns=columns)
    return replace(found, groups=groups, left_out=left_out, provenance=provenance)


def _rules(asked: Asked, prepared: Prepared) -> dict[str, Any]:
    """The options that all audits have in common."""
    rows = {"sample_weight": prepared.sample_weight, "units": prepared.units}
    if asked.subgroups and prepared.streamed:
        raise ValueError(
            f"{prepared.table.name} is too large to keep in memory, which --subgroups needs; take "
            "a sample of the rows with a query."
        )
    rows["subgroups"] = prepared.kept
    chosen = {"random_state": asked.seed, **_how(asked, prepared.moments)}
    return opt.values(asked, opt.RULES) | rows | chosen


def _how(asked: Asked, moments: GroupMoments) -> dict[str, Any]:
    """Whether columns of groups are crossed, and what missing numbers are, for fits and audits."""
    missing = "error"
    if moments.has_missing:
        missing = "available"
    return {"crossing": not asked.margins, "missing": missing}


def _scores(asked: Asked, prepared: Prepared) -> dict[str, Any]:
    """The options about the use of scores."""
    if asked.target_positive is not None and asked.target is None:
        raise ValueError("--target-positive names a value of the --target; pass both.")
    return {"probes": asked.probes, "y": prepared.target, "pos_label": asked.target_positive}


def compare(found: AnyAudit, asked: Asked) -> tuple[Gate | None, str]:
    """What the gate says, and one line about it."""
    if asked.fail_above is None:
        if asked.fail_on != "unproven":
            raise ValueError("--fail-on says what --fail-above compares with; pass both.")
        return None, ""
    ignored_below = 0
    if asked.small_groups == "ignore":
        ignored_below = asked.min_group_size
    answer = gate(found, asked.fail_above, asked.fail_on, ignored_below)
    line = fill("gate.txt", words=sentences, audit=found, asked=asked, gate=answer)
    return answer, line


def figures_as_json(found: AnyAudit, origin: Origin, with_rows: bool, **more: Any) -> str:
    """The text that ``--json`` writes."""
    own = {"schema_version": SCHEMA_VERSION, "origin": vars(origin)}
    return json.dumps(own | found.to_dict(with_rows) | more, indent=1) + "\n"


def earlier_figures(asked: Asked) -> dict[str, Any] | None:
    """The figures of the audit to compare with, if one is named."""
    if asked.compare:
        return read_figures(asked.compare, SCHEMA_VERSION)
    return None


def changes_since(
    before: dict[str, Any] | None, found: AnyAudit, origin: Origin
) -> dict[str, Any] | None:
    """What changed since an earlier audit, if there is one."""
    if before is None:
        return None
    return changes(before, json.loads(figures_as_json(found, origin, False)))


def model_as_json(model: Any, fitted: Roles) -> str:
    """What is in a model file, as ``--json`` of ``inspect`` writes it."""
    found: dict[str, Any] = {
        "model": repr(model),
        "standardized": model.get_params().get("standardize", False),  # erasing needs none
        "imputed": bool(fitted.fill),
        "columns": fitted.features,
        "categories": fitted.categories,
        "group": fitted.groups,
    }
    found |= {name[:-1]: value for name, value in vars(model).items() if name.endswith("_")}
    if hasattr(model, "columns_"):
        found["kept"] = model.get_feature_names_out()
    return json.dumps(plain_json(found), indent=1) + "\n"


def _origin(asked: Asked, prepared: Prepared, found: AnyAudit) -> Origin:
    """Where an audit comes from, and how to repeat it."""
    source = prepared.table.name
    inputs = prepared.table.inputs
    if not asked.data:
        source = "check-up data (NHANES 2017–2018)"
        inputs = [str(files("fairpca.datasets") / "checkup.csv.gz")]
    elif not is_query(asked.data[0]):  # a page may be passed on, so it names no folders
        source = basename(source.rstrip("/")) or source
    sha256 = ""
    if len(inputs) == 1 and Path(inputs[0]).is_file():
        with open(inputs[0], "rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    return Origin(
        source=source,
        sha256=sha256,
        n_read=prepared.record.n_rows,
        streamed=prepared.streamed,
        notes=_notes(prepared),
        model_file=basename(asked.model or asked.loadings or asked.rebuilt or ""),
        **(opt.values(asked, opt.RECORD) if hasattr(asked, "auditor") else {}),
        command=shlex.join(["fairpca", *click.get_current_context().obj]),
    )


def _fit_command(asked: Asked, *options: click.Option, more: str = "") -> str:
    """The command that fits to the same data."""
    options = (*opt.COLUMNS, opt.MARGINS, *opt.FILES, *opt.SETTINGS, *options)
    words = ["fairpca", "fit", *asked.data, *opt.words(asked, *options)]
    return " ".join([shlex.join(words), *filter(None, [more]), "--out model.safetensors"])


# -- tables and model files ------------------------------------------------------------------------


@contextmanager
def prepared_table(asked: Asked, show: Progress, **how: Any) -> Iterator[tuple[Prepared, Asked]]:
    """The rows and moments of a table, which is closed afterwards, and the columns asked for."""
    if asked.data:
        table = _opened(asked)
    elif given := opt.words(asked, *opt.FILES):
        raise ValueError(f"{given[0]} says how to read a file; name the file too.")
    else:
        table, asked = _demonstration(asked)
    names = {name: getattr(asked, name) for name in ("group", "features", "drop")}
    split = {name: split_names(given, table.columns) for name, given in names.items()}
    asked = changed(asked, **split)
    how.setdefault("folds", FoldRule(asked.cv or 10, asked.seed))
    how |= arguments(asked, *opt.COLUMNS) | {"keep": split_names(asked.subgroups, table.columns)}
    if asked.margins and asked.missing == "available":  # margins need complete rows
        how["missing"] = "error"
    with closing(table):
        yield prepare(table, progress=show, crossing=not asked.margins, **how), asked


def _opened(asked: Asked) -> Table:
    data = asked.data[0] if len(asked.data) == 1 else [*asked.data]
    return open_table(data, **_reading(asked))


def _reading(asked: Asked) -> dict[str, Any]:
    """How files are read."""
    return arguments(asked, *opt.FILES)


def _demonstration(asked: Asked) -> tuple[Table, Asked]:
    """The demonstration data; columns of groups that are not asked for are no features."""
    people = load_checkup()
    groups = {
        "age_group": people.sensitive_features,
        "sex": people.sex,
        "ethnicity": people.ethnicity,
    }
    group = split_names(asked.group, groups) or ["age_group"]
    drop = [*asked.drop, *(name for name in groups if name not in group)]
    data = dict(zip(people.feature_names, people.data.T, strict=True))
    features = asked.features or tuple(name for name in data if name not in asked.drop)
    return open_table(data | groups), changed(asked, group=group, drop=drop, features=features)


def arguments(asked: Asked, *options: click.Option) -> dict[str, Any]:
    """The options that are set, under the names that the reader of tables has for them."""
    renamed = {
        "group": "sensitive_features",
        "weight": "sample_weight",
        "missing_value": "missing_values",
    }
    given = {renamed.get(k, k): v for k, v in opt.values(asked, options).items() if v}
    if given.pop("no_header", False):
        given["header"] = False
    return given


def split_names(values: Sequence[str], known: Mapping[str, object]) -> list[str]:
    """Split names at their commas, unless the whole is the name of a column.

    Examples
    --------
    >>> split_names(["age, bmi", "income, yearly"], dict.fromkeys(["bmi", "income, yearly"]))
    ['age', 'bmi', 'income, yearly']
    """
    parts = [part for v in values for part in ([v] if v in known else v.split(","))]
    names = [part if part in known else part.strip() for part in parts]
    return [name for name in names if name]


def write_scores_of(asked: Asked, show: Progress) -> tuple[int, int]:
    """Write the scores of a table; returns how many rows were written and left out."""
    _, model, fitted = load(asked.model)
    with closing(_opened(asked)) as table:
        keep = split_names(asked.keep, table.columns)
        missing = asked.missing
        if missing == "available":
            missing = getattr(model, "missing", "error")
        roles, _ = choose_roles(table, missing=missing, keep=keep, fitted=fitted)
        return write_scores(
            table,
            roles,
            asked.out,
            model,
            progress=partial(show, "writing scores"),
            reads=[asked.model],
        )


def save(model: FairProjection, roles: Roles, path: Path) -> None:
    """Write a model with the columns it was fitted to."""
    fill = None
    if roles.fill:  # encoded text columns have no fill value
        fill = np.array([roles.fill.get(name, 0.0) for name in roles.feature_names])
    extra = {"columns": roles.features, "categories": roles.categories, "group": roles.groups}
    write_model(ModelPipeline.of(model, fill=fill), path, extra)


def load(path: str) -> tuple[Any, Any, Roles]:
    """A model, its estimator, and what it knows of its columns."""
    refuse_pickle(path)
    model = load_model(path)
    extra = read_extra(path)
    names = list(map(str, getattr(model, "feature_names_in_", ())))
    roles = _roles_in(extra, names)
    if roles is None:
        raise ValueError(
            f"{path} was changed after it was written: the columns that it names are not those of "
            f"its model, {', '.join(names)[:200] or 'which has no names'}; fit it again."
        )
    if not isinstance(model, ModelPipeline):
        return model, model, roles
    fill = dict(zip(names, model[0].statistics_.tolist(), strict=False))
    return model, model[-1], replace(roles, fill=fill)


def _roles_in(extra: Mapping[str, Any], names: list[str]) -> Roles | None:
    """The roles of columns in a model file; None if they are not those of features so named."""
    columns = extra.get("columns", names)
    groups = extra.get("group", [])
    categories = extra.get("categories", {})
    if not isinstance(categories, dict):
        return None
    for listed in (columns, groups, *categories.values()):
        if not (isinstance(listed, list) and all(isinstance(name, str) for name in listed)):
            return None
    if not categories.keys() <= set(columns):
        return None
    roles = Roles(tuple(columns), tuple(groups), categories=categories)
    if roles.feature_names != names:
        return None
    return roles


def _notes(prepared: Prepared) -> list[str]:
    """Sentences on what was done to the data when they were read."""
    read = prepared.record
    columns = prepared.roles.groups
    width = len(prepared.roles.feature_names)

    shares = [
        f"{percent(n / (read.used[group] * width))} ({group_name(group, columns)})"
        for group, n in sorted(read.gaps_in_group.items())
    ]
    dropped = [
        f"{group_name(group, columns)} {read.seen[group]:,} → {read.used[group]:,}"
        for group, n in sorted(read.seen.items())
        if read.used[group] < n
    ]
    facts = {
        "alike": [*read.constant, *read.near_constant],
        "gaps": [f"{name} ({n:,})" for name, n in read.gaps.items() if n],
        "filled": bool(prepared.roles.fill),
        "shares": shares,
        "dropped": dropped,
        "amounts": [f"{name}, such as {example}" for name, example in read.amounts.items()],
    }
    return fill("notes.txt", read=read, **facts).splitlines()
