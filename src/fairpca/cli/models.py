"""Model files, with what they know of the columns of the table they were fitted to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairpca._estimators.base import FairProjection
    from fairpca._tables.column_roles import Roles


def save(model: FairProjection, roles: Roles, path: Path) -> None:
    """Write a model with the columns it was fitted to."""
    import numpy as np

    from fairpca._models.pipeline import ModelPipeline
    from fairpca._models.safetensors import write_model

    fill = None
    if roles.fill:  # text columns, which become zeros and ones, have none
        fill = np.array([roles.fill.get(name, 0.0) for name in roles.feature_names])
    extra = {"columns": roles.features, "categories": roles.categories, "group": roles.groups}
    write_model(ModelPipeline.of(model, fill=fill), path, extra)


def loaded(path: str) -> tuple[Any, Roles]:
    """A model, and what it knows of its columns."""
    from fairpca._models.pipeline import ModelPipeline
    from fairpca._models.safetensors import load_model, read_extra
    from fairpca._tables.column_roles import Roles

    model, extra = load_model(path), read_extra(path)
    names = extra.get("columns", getattr(model, "feature_names_in_", None))
    columns = () if names is None else tuple(map(str, names))
    categories = extra.get("categories", {})
    fill: dict[str, float] = {}
    if isinstance(model, ModelPipeline) and model.fill is not None:
        features = Roles(columns, categories=categories).feature_names
        medians = dict(zip(features, model.fill.tolist(), strict=False))
        fill = {name: medians[name] for name in columns if name in medians}
    groups = tuple(extra.get("group") or ())
    return model, Roles(columns, groups, categories=categories, fill=fill)


def saved_projection(model: Any) -> FairProjection:
    """The projection of a loaded model."""
    from fairpca._models.pipeline import ModelPipeline

    projection: FairProjection = model[-1] if isinstance(model, ModelPipeline) else model
    return projection
