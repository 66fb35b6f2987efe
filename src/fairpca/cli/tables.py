"""Tables and model files: the one place where the command reads and writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairpca.cli.options import Columns, Files, Request, words

if TYPE_CHECKING:
    from fairpca._audit.record import LeftOut
    from fairpca._estimators.base import FairProjection
    from fairpca._progress import Progress
    from fairpca._tables.column_roles import Roles
    from fairpca._tables.prepare import Prepared, Record
    from fairpca._tables.read import Table

_NOT_USED = {
    "text": "no numbers (--encode uses text)",
    "date": "dates are no numbers",
    "empty": "empty",
    "identifier": "looks like an id (--features uses it)",
    "row numbers": "looks like row numbers (--features uses it)",
    "index": "a column without a name, as pandas writes its index",
    "other": "no numbers",
}


@contextmanager
def prepared_table(request: Request, show: Progress, **how: Any) -> Iterator[Prepared]:
    """The rows and moments of a table, which is closed in the end."""
    from fairpca._tables.prepare import prepare

    table, columns = _opened(request)
    with closing(table):
        yield prepare(
            table,
            sensitive_features=columns.group or (),
            features=columns.features or None,
            drop=columns.drop or (),
            target=columns.target,
            sample_weight=columns.weight,
            encode=columns.encode,
            drop_missing=request.files.drop_missing,
            impute=columns.impute,
            progress=show,
            **how,
        )


def _opened(request: Request) -> tuple[Table, Columns]:
    """The table, and the columns asked for by name; without a file, the demonstration data."""
    from fairpca._tables.read import open_table
    from fairpca.datasets import load_checkup

    columns, files = request.columns, request.files
    if not request.data:
        if files != Files():
            raise ValueError(f"{words(files)[0]} says how to read a file; name the file too.")
        people = load_checkup()
        groups = {"age_group": people.sensitive_features, "sex": people.sex}
        groups["ethnicity"] = people.ethnicity
        group = columns.group or ["age_group"]
        unused = [name for name in groups if name not in group]
        columns = replace(columns, group=group, drop=[*(columns.drop or ()), *unused])
        features = dict(zip(people.feature_names, people.data.T, strict=True))
        return open_table(features | groups), columns
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
    request: Request, model: str, out: str, keep: Sequence[str] | None, show: Progress
) -> tuple[int, int]:
    """Write the scores of a table under a model; how many rows were written and left out."""
    from fairpca._estimators.projection import encoder_of
    from fairpca._tables.prepare import model_roles
    from fairpca._tables.write import write_scores

    whole, fitted = load(model)
    projection = saved_projection(whole)
    table, _ = _opened(request)
    with closing(table):
        roles = model_roles(table, fitted, keep=split_names(keep, table.columns))
        return write_scores(
            table,
            replace(roles, drop_missing=request.files.drop_missing),
            out,
            projection.get_feature_names_out().tolist(),
            encoder_of(projection),
            projection.mean_,
            progress=partial(show, "writing scores"),
            reads=[model],
        )


def save(model: FairProjection, roles: Roles, path: Path) -> None:
    """Write a model with the columns it was fitted to."""
    import numpy as np

    from fairpca._models.safetensors import ModelPipeline, write_model

    fill = None
    if roles.fill:  # text columns, which become zeros and ones, have none
        fill = np.array([roles.fill.get(name, 0.0) for name in roles.feature_names])
    extra = {"columns": roles.features, "categories": roles.categories, "group": roles.groups}
    write_model(ModelPipeline.of(model, fill=fill), path, extra)


def load(path: str) -> tuple[Any, Roles]:
    """A model, and what it knows of its columns."""
    from fairpca._models.safetensors import ModelPipeline, load_model, read_extra
    from fairpca._tables.column_roles import Roles

    model, extra = load_model(path), read_extra(path)
    names = extra.get("columns", getattr(model, "feature_names_in_", None))
    columns = () if names is None else tuple(map(str, names))
    categories = extra.get("categories", {})
    fill: dict[str, float] = {}
    if isinstance(model, ModelPipeline):
        features = Roles(columns, categories=categories).feature_names
        medians = dict(zip(features, model[0].statistics_.tolist(), strict=False))
        fill = {name: medians[name] for name in columns if name in medians}
    groups = tuple(extra.get("group") or ())
    return model, Roles(columns, groups, categories=categories, fill=fill)


def saved_projection(model: Any) -> FairProjection:
    """The projection of a loaded model."""
    from fairpca._models.safetensors import ModelPipeline

    projection: FairProjection = model[-1] if isinstance(model, ModelPipeline) else model
    return projection


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
    from fairpca.report.text import counted, display_names, in_a_row, percent

    def listed(names: Sequence[str]) -> str:
        return in_a_row(display_names(names, 40))

    notes = []
    if record.constant:
        notes.append(f"Columns that do not vary: {listed(record.constant)}.")
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
            f"Column {odd.column} holds {odd.value:g} in {counted(odd.n_rows, 'row')}, far from "
            f"all others ({odd.next_value:g}); it may stand for a missing value (--missing-value)."
        )
    for twins in record.twin_labels:
        notes.append(f"Groups that may be the same: {listed([repr(twin) for twin in twins])}.")
    if record.unordered:
        notes.append("The query has no ORDER BY, so folds may differ when it is run again.")
    return notes
