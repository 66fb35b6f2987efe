"""``audit --model`` and ``report --model``: a model file as it is, on the rows of other files."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fairpca import FairPCA, audit, load_model
from fairpca._audit.model import ModelAudit, errors_from_moments
from fairpca._models.safetensors import read_extra
from fairpca._moments import prepare
from fairpca._moments.prepare import Prepared
from fairpca._progress import Progress
from fairpca._tables.choices import Choices
from fairpca.cli._choices import check_selected
from fairpca.cli._limits import DisparityLimits, judged
from fairpca.cli._models import fitted_columns, parts_of
from fairpca.report._reading import prepare_data, reading_call


def prepare_for(
    path: str,
    data: list[str] | None,
    choices: Choices,
    encoding: str,
    rows_up_to: float,
    show: Progress,
) -> tuple[Any, Prepared]:
    """A model file, and the columns that it was fitted to in other files."""
    model, extra = load_model(path), read_extra(path)
    names = extra.get("columns", getattr(model, "feature_names_in_", None))
    columns = [] if names is None else list(map(str, names))
    if choices.target in columns:
        raise ValueError(
            f"--target {choices.target!r} is a feature of {path}, so its scores hold the answer; "
            "name another column, or fit a model without it (--drop)."
        )
    if not data:
        _refuse_other_than_bundled(path, columns)
    own_groups = () if choices.groups else extra.get("group") or ()
    choices = replace(
        choices,
        groups=choices.groups or own_groups,
        columns=columns or None,
        encode=bool(extra.get("categories")),
        keep_ids=True,
    )
    known = fitted_columns(model, extra, columns)
    known = replace(known, columns=columns, groups=own_groups, model=path)
    prepared = prepare_data(data or None, choices, encoding, rows_up_to, show, known)
    n_features = len(prepared.roles.feature_names)
    if n_features != model.n_features_in_:
        raise ValueError(
            f"{path} was fitted to {model.n_features_in_} features, and {prepared.source} has "
            f"{n_features} besides the group; pass a file with the same columns."
        )
    return model, prepared


def _refuse_other_than_bundled(path: str, columns: list[str]) -> None:
    """Refuse to judge a model of other data by the bundled data."""
    from fairpca.datasets import load_rand_health

    if not {*columns} <= {*load_rand_health(prepare=False).feature_names}:
        raise ValueError(
            f"{path} was fitted to other columns than those of the bundled data; pass the file to "
            f"judge it by: --model {path} data.csv."
        )


def judge_model(
    path: str,
    data: list[str] | None,
    choices: Choices,
    encoding: str,
    how: FairPCA,
    limits: DisparityLimits,
    show: Progress,
) -> tuple[Prepared, dict[str, Any]]:
    """Errors by group of a model; ``how`` says what becomes of small groups."""
    model, prepared = prepare_for(path, data, choices, encoding, 0, show)
    projection, scale = parts_of(model)
    settled: Any = how._settle(prepared.moments)
    errors, overall, variances = errors_from_moments(
        settled, projection.components_, projection.mean_, scale, how.normalize
    )
    r, compared = projection.n_components_, settled.compared.tolist()
    return prepared, {
        "groups": settled.moments.groups.tolist(),
        "group_sizes": settled.moments.counts.tolist(),
        "group_variances": variances.tolist(),
        "normalized": how.normalize,
        "compared": compared,
        "small_groups": settled.small,
        "standardized": not isinstance(scale, float),
        "model": [judged(r, errors, overall, compared, max(variances), limits)],
    }


def model_audit(
    path: str,
    data: list[str] | None,
    choices: Choices,
    encoding: str,
    show: Progress,
    **how: Any,
) -> tuple[Prepared, ModelAudit]:
    """The same with intervals, which need the rows, and as :func:`fairpca.audit` is told to."""
    most = prepare.MOST_BYTES_IN_MEMORY
    model, prepared = prepare_for(path, data, choices, encoding, most, show)
    if prepared.X is None:
        raise ValueError(
            f"{prepared.source} is too large to keep in memory, which report --model needs; take a "
            f"sample of the rows, or run fairpca audit --model {path}, which does not."
        )
    check_selected(how["pos_label"], choices.target, prepared.y)
    X = prepared.X
    if not hasattr(model, "feature_names_in_"):
        X = np.column_stack([column.to_numpy() for column in X.columns])
    return prepared, audit(X, prepared.groups, model, y=prepared.y, **how)


def model_code(
    path: str,
    data: list[str] | None,
    encoding: str,
    choices: Choices,
    prepared: Prepared,
    **how: Any,
) -> list[str]:
    """Lines of Python that judge the model again.

    None if text columns are encoded, or if a column is a feature and names the groups: read_table
    does not read these as a model does.
    """
    roles = prepared.roles
    if roles.categories or {*roles.columns} & {*roles.groups}:
        return []
    asked = replace(
        choices,
        groups=list(roles.groups),
        columns=list(roles.columns),
        impute="median" if roles.fill else None,
    )
    options = ", y=table.target" if choices.target else ""
    options += "".join(f", {name}={value!r}" for name, value in how.items() if value)
    return [
        "from fairpca import audit, load_model",
        "from fairpca.report import read_table",
        "",
        f"table = {reading_call(data, asked, encoding)}",
        f"model = load_model({path!r})",
        f"result = audit(table.data, table.sensitive_features, model{options})",
    ]
