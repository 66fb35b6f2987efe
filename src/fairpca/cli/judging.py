"""From options to an audit: what ``audit`` and ``report`` share, and the estimator of ``fit``."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fairpca.cli.options import Choice, Columns, Files, Judging, words

if TYPE_CHECKING:
    from fairpca._audit.record import Audit, ModelAudit
    from fairpca._estimators.base import FairProjection
    from fairpca._progress import Progress
    from fairpca._tables.prepare import Prepared
    from fairpca._tables.read import Table
    from fairpca.report import Origin

#: Options of which one at most can be given: each says how far to go.
ENDS = ("alpha", "max_disparity", "max_error_increase")


@dataclass(frozen=True)
class Request:
    """What the user asked for: files, columns, projection, and how to judge it."""

    data: Sequence[str] | None
    files: Files
    columns: Columns
    choice: Choice
    judging: Judging

    @property
    def model_file(self) -> str | None:
        """The file of the model to be judged, of either kind."""
        return self.judging.model or self.judging.loadings

    @property
    def reads(self) -> list[str]:
        """Files that must not be written to."""
        return [*(self.data or ()), *([self.model_file] if self.model_file else ())]


def estimator_of(choice: Choice) -> FairProjection:
    """The estimator that ``fit`` saves and ``report`` judges, by the same options."""
    from fairpca import FairPCA, FairPCACV, MinMaxPCA

    shared: dict[str, Any] = {
        "standardize": choice.standardize,
        "normalize": choice.normalize,
        "min_group_size": choice.min_group_size,
        "small_groups": choice.small_groups,
    }
    own = ("constraint", *ENDS)
    given: dict[str, Any] = {name: v for name in own if (v := getattr(choice, name)) is not None}
    ends = [f"--{name.replace('_', '-')} {given[name]:g}" for name in ENDS if name in given]
    if len(ends) > 1:
        raise ValueError(
            f"{' and '.join(ends)} contradict each other: each says how far to go from PCA towards "
            "equal errors; pass one of them."
        )
    if choice.criterion is not None and given:
        other = next(iter(given)).replace("_", "-")
        raise ValueError(
            f"--criterion {choice.criterion} is for MinMaxPCA, which knows no --{other}; pass one "
            "of them."
        )
    if choice.criterion is not None:
        return MinMaxPCA(choice.components, criterion=choice.criterion, **shared)
    if given.get("constraint") == "none":
        given["constraint"] = None
    if choice.alpha is not None or choice.cv == 0:
        return FairPCA(choice.components, **given, **shared)
    salt = choice.seed or None
    return FairPCACV(choice.components, cv=choice.cv, random_state=salt, **given, **shared)


def opened(request: Request) -> tuple[Table, Columns]:
    """The table, and the columns asked for by name; without a file, the demonstration data."""
    from fairpca._tables.read import open_table

    columns, files = request.columns, request.files
    if not request.data:
        if files != Files():
            raise ValueError(f"{words(files)[0]} says how to read a file; name the file too.")
        data, own = demonstration()
        group = columns.group or ["age_group"]
        unused = [name for name in own if name not in group]
        columns = replace(columns, group=group, drop=[*(columns.drop or ()), *unused])
        return open_table(data), columns
    table = open_table(
        request.data[0] if len(request.data) == 1 else list(request.data),
        query=files.query,
        encoding=files.encoding,
        decimal=files.decimal,
        header=not files.no_header,
        sheet=files.sheet,
        missing_values=tuple(files.missing_value or ()),
    )
    return table, replace(
        columns,
        group=split_names(columns.group, table.columns),
        features=split_names(columns.features, table.columns),
        drop=split_names(columns.drop, table.columns),
    )


def demonstration() -> tuple[dict[str, Any], list[str]]:
    """The columns of the demonstration data, and the names of those that can be groups."""
    from fairpca.datasets import load_checkup

    people = load_checkup()
    groups = {"age_group": people.sensitive_features, "sex": people.sex}
    groups["ethnicity"] = people.ethnicity
    return dict(zip(people.feature_names, people.data.T, strict=True)) | groups, [*groups]


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


@contextmanager
def prepared_table(request: Request, show: Progress, **how: Any) -> Iterator[Prepared]:
    """The rows and moments of a table, which is closed in the end."""
    from fairpca._tables.prepare import prepare

    table, columns = opened(request)
    with table:
        yield prepare(
            table,
            sensitive_features=columns.group or (),
            features=columns.features or None,
            drop=columns.drop or (),
            target=columns.target,
            sample_weight=columns.weight,
            encode=columns.encode,
            drop_missing=columns.drop_missing,
            impute=columns.impute,
            progress=show,
            **how,
        )


def judge(
    request: Request, argv: Sequence[str], show: Progress
) -> tuple[Audit | ModelAudit, Origin]:
    """The audit of PCA or of a model, and where it comes from."""
    from fairpca import audit, audit_model
    from fairpca._audit.record import with_group_columns
    from fairpca._input.folds import FoldRule
    from fairpca.cli.origin import left_out, origin_of

    choice, judging = request.choice, request.judging
    estimator, model, how = None, None, {}
    if request.model_file is None:
        estimator = estimator_of(choice)
        how = {"folds": FoldRule(choice.cv or 10, choice.seed)}
    else:
        model, how, request = _model_of(request)
    with prepared_table(request, show, **how) as prepared:
        X, groups = prepared.data, prepared.sensitive_features
        options: dict[str, Any] = {
            "sample_weight": prepared.sample_weight,
            "y": prepared.target,
            "pos_label": judging.target_positive,
            "probes": judging.probes,
            "reference": judging.reference,
            "judge_from": judging.judge_from,
            "small_gap": judging.small_gap,
            "random_state": choice.seed,
        }
        found: Audit | ModelAudit
        names = list(prepared.roles.groups)
        if estimator is not None:
            X = prepared.moments if prepared.streamed else X
            found = with_group_columns(audit(X, groups, estimator, **options, progress=show), names)
        elif prepared.streamed:
            raise ValueError(
                f"{prepared.source} is too large to keep in memory, which the audit of a model "
                "needs; take a sample of the rows with a query."
            )
        else:
            found = with_group_columns(audit_model(model, X, groups, **options), names)
        found = replace(found, left_out=[*found.left_out, *left_out(prepared.record)])
        return found, origin_of(request, prepared, found, argv)


def _model_of(request: Request) -> tuple[Any, dict[str, Any], Request]:
    """A model, how its rows are read, and the request for its columns."""
    own, judging = "--model" if request.judging.model else "--loadings", request.judging
    if judging.model is not None and judging.loadings is not None:
        raise ValueError("--model and --loadings both name what is judged; pass one of them.")
    rest = replace(request.columns, group=None, target=None, weight=None, drop_missing=False)
    if given := words(rest, replace(request.choice, seed=0)):
        raise ValueError(
            f"{own} is judged as it is, with its own columns and components; leave out {given[0]}."
        )
    if not request.data:
        raise ValueError(f"{own} needs rows to be judged by: name a file too.")
    if judging.loadings is not None:
        model, names = read_loadings(judging.loadings)
        return model, {}, replace(request, columns=replace(request.columns, features=names))
    from fairpca.cli.models import loaded

    model, fitted = loaded(str(judging.model))
    group = request.columns.group or list(fitted.groups)
    request = replace(request, columns=replace(request.columns, group=group))
    return model, {"fitted": fitted}, request


def read_loadings(path: str) -> tuple[Any, list[str]]:
    """The PCA that a table of weights describes, and the names of its columns.

    A row for each column of the data: ``name``, ``mean`` and ``scale`` (0 and 1 if they are left
    out), and a weight in each further column, one for each component.
    """
    from fairpca._audit.judge import model_from_loadings

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
