"""``fairpca inspect``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fairpca.cli import options as opt
from fairpca.cli.streams import put

if TYPE_CHECKING:
    from fairpca._estimators.base import FairProjection

_FIGURES = ("pca_group_errors", "group_errors", "changes", "changes_interval")


def inspect_command(model: opt.ModelFile, as_json: opt.AsJson = False) -> None:
    """Show what is in a model file."""
    from fairpca.cli.models import loaded, saved_projection

    whole, fitted = loaded(model)
    projection = saved_projection(whole)
    if as_json:
        put(json.dumps(_figures(projection, fitted), indent=1))
        return
    from fairpca.cli.terminal import print_model

    print_model(projection)
    size = f"{projection.n_components_} components of {projection.n_features_in_} columns"
    how = ", missing values filled in" if fitted.fill else ""
    how += ", standardised" if projection.standardize else ""
    put(f"{projection!r}: {size}{how}")


def _figures(projection: FairProjection, fitted: Any) -> dict[str, Any]:
    names = getattr(projection, "feature_names_in_", None)
    held_out = {
        f"held_out_{name}": getattr(projection, f"held_out_{name}_").tolist()
        for name in _FIGURES
        if hasattr(projection, f"held_out_{name}_")
    }
    return {
        "model": repr(projection),
        "standardized": projection.standardize,
        "imputed": bool(fitted.fill),
        "n_components": projection.n_components_,
        "feature_names": None if names is None else list(names),
        "groups": projection.groups_.tolist(),
        "group_sizes": projection.group_sizes_.tolist(),
        "pca_group_errors": projection.pca_group_errors_.tolist(),
        "group_errors": projection.group_errors_.tolist(),
        "status": projection.status_,
        "duality_gap": projection.duality_gap_,
        **held_out,
        "columns": list(fitted.features),
        "categories": {name: list(values) for name, values in fitted.categories.items()},
        "group": list(fitted.groups),
    }
