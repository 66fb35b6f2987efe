"""What a model file must hold: one table, and the words for whatever does not match it.

A checksum tells that a file is as it was written, not that a model was written. So everything is
looked at before it becomes an attribute: names, types, shapes, lengths that must agree, finiteness,
and that components are orthonormal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fairpca._problems.status import Status

_ROUNDING = 1e-9  # of the largest value
_ORTHONORMAL = 1e-6  # how far products of components may be from 0 and 1

#: Floats; integers of at least zero; one label of a group, or several; text, or several.
Kind = Literal["numbers", "counts", "label", "labels", "text", "texts"]


@dataclass(frozen=True)
class Field:
    """What an attribute of a fitted model must be.

    Attributes
    ----------
    kind : str
    shape : str
        A letter for each axis: r components, d features, k groups, ``2``, and ``*`` for any length;
        of a single count, what it counts.
    needed : bool
        Whether no model can do without.
    any_number : bool
        Whether it may be infinite, or NaN where nothing was proven.
    least, most : float
        Bounds, up to rounding.
    """

    kind: Kind
    shape: str = ""
    needed: bool = False
    any_number: bool = False
    least: float = -np.inf
    most: float = np.inf


#: The attributes that are known by name. Others of an estimator may be any plain values.
FIELDS: dict[str, Field] = {
    "components_": Field("numbers", "rd", needed=True),
    "mean_": Field("numbers", "d", needed=True),
    "scale": Field("numbers", "d"),
    "fill": Field("numbers", "d"),
    "explained_variance_": Field("numbers", "r", needed=True, least=0),
    "explained_variance_ratio_": Field("numbers", "r", needed=True, least=0, most=1),
    "noise_variance_": Field("numbers", needed=True, least=0),
    "n_components_": Field("counts", "r", needed=True),
    "n_features_in_": Field("counts", "d", needed=True),
    "feature_names_in_": Field("texts", "d"),
    "groups_": Field("labels", "k", needed=True),
    "group_sizes_": Field("counts", "k", needed=True),
    "group_errors_": Field("numbers", "k", needed=True, least=0),
    "pca_group_errors_": Field("numbers", "k", needed=True, least=0),
    "group_explained_variance_ratio_": Field("numbers", "k", most=1),
    "group_explained_variance_": Field("numbers", "k", least=0),
    "group_losses_": Field("numbers", "k"),
    "group_weights_": Field("numbers", "k", least=0),
    "group_robust_errors_": Field("numbers", "k", least=0),
    "held_out_group_errors_": Field("numbers", "k", least=0),
    "held_out_pca_group_errors_": Field("numbers", "k", least=0),
    "held_out_reconstruction_error_": Field("numbers", least=0),
    "held_out_changes_": Field("numbers", "k"),
    "held_out_changes_interval_": Field("numbers", "k2"),
    "held_out_disparity_interval_": Field("numbers", "2"),
    "stop_": Field("numbers", least=0, most=1),
    "hidden_directions_": Field("numbers", "*d"),
    "subset_": Field("counts", "r"),
    "privileged_group_": Field("label"),
    "harmed_group_": Field("label"),
    "small_groups_": Field("labels", "*"),
    "reconstruction_error_": Field("numbers", least=0),
    "pca_reconstruction_error_": Field("numbers", least=0),
    "disparity_": Field("numbers"),
    "alpha_": Field("numbers", any_number=True),
    "duality_gap_": Field("numbers", needed=True, any_number=True),
    "status_": Field("text", needed=True),
}

HEADER: dict[str, type] = {
    "format_version": int,
    "fairpca_version": str,
    "class": str,
    "params": dict,
    "attributes": dict,
    "extra": dict,
}


def header_fault(header: Any) -> str | None:
    """What is wrong with the header of a file, if anything."""
    if not isinstance(header, dict):
        return "it has none of fairpca"
    for name, kind in HEADER.items():
        if type(header.get(name)) is not kind:  # True is no version
            return f"{name!r} must be {kind.__name__}, but is {_short(header.get(name))}"
    unknown = sorted(header.keys() - HEADER.keys())
    if unknown:
        return f"{unknown[0]!r} is not known"
    return _extra_fault(header["extra"])


def attribute_fault(
    attributes: Mapping[str, Any], known: frozenset[str], params: Mapping[str, Any]
) -> str | None:
    """What is wrong with the attributes of a model, if anything.

    ``known`` are the names that its estimator has besides those that every one has, and ``params``
    are the parameters with which it was fitted.
    """
    named = known | {"scale", "fill", "n_features_in_", "feature_names_in_"}
    unknown = sorted(attributes.keys() - named)
    if unknown:
        return f"{unknown[0]!r} is not an attribute of such a model"
    missing = [name for name, field in FIELDS.items() if field.needed and name not in attributes]
    if missing:
        return f"{missing[0]} is missing"
    U, groups = attributes["components_"], attributes["groups_"]
    if not (isinstance(U, np.ndarray) and U.ndim == 2 and isinstance(groups, list)):
        return "components_ must be an array of two dimensions, and groups_ a list"
    sizes = {"r": U.shape[0], "d": U.shape[1], "k": len(groups), "2": 2}
    for name, value in attributes.items():
        field = FIELDS.get(name)
        fault = _plain_fault(value) if field is None else _field_fault(field, value, sizes)
        if fault is not None:
            return f"{name} {fault}"
    return _model_fault(attributes) or _params_fault(attributes, params)


def _params_fault(attributes: Mapping[str, Any], params: Mapping[str, Any]) -> str | None:
    """What is wrong between the parameters and what they led to."""
    asked, r = params.get("n_components"), attributes["n_components_"]
    if type(asked) is int and asked != r:
        return f"n_components_ is {r}, but n_components={asked} was asked for"
    return None


def _model_fault(attributes: Mapping[str, Any]) -> str | None:
    """What is wrong between attributes that are right by themselves."""
    U, groups = attributes["components_"], attributes["groups_"]
    if np.abs(U @ U.T - np.eye(len(U))).max(initial=0.0) > _ORTHONORMAL:
        return "components_ are not orthonormal"
    if len(set(groups)) < len(groups):
        return "groups_ names a group twice"
    for name in ("privileged_group_", "harmed_group_"):
        if name in attributes and attributes[name] not in groups:
            return f"{name} is not one of groups_"
    if not (attributes.get("scale", np.ones(1)) > 0).all():
        return "scale must be positive"
    for name in ("held_out_changes_interval_", "held_out_disparity_interval_"):
        low, high = np.moveaxis(np.asarray(attributes.get(name, (0.0, 0.0))), -1, 0)
        if (low > high).any():
            return f"{name} must hold the lower end first"
    if attributes["status_"] not in list(Status):
        return f"status_ {_short(attributes['status_'])} is not known"
    return None


def _field_fault(field: Field, value: Any, sizes: Mapping[str, int]) -> str | None:
    lengths = [sizes.get(letter) for letter in field.shape]
    match field.kind:
        case "label":
            return None if _is_label(value) else f"must be a label, but is {_short(value)}"
        case "text":
            return None if isinstance(value, str) else f"must be text, but is {_short(value)}"
        case "labels" | "texts":
            kind = _is_label if field.kind == "labels" else lambda v: isinstance(v, str)
            if not (isinstance(value, list) and all(map(kind, value))):
                return f"must be a list of {field.kind}, but is {_short(value)}"
            return _length_fault((len(value),), lengths)
        case "counts" if not isinstance(value, np.ndarray):
            if type(value) is not int or value != lengths[0]:
                return f"must be {lengths[0]}, but is {_short(value)}"
            return None
    return _numbers_fault(field, value, lengths)


def _numbers_fault(field: Field, value: Any, lengths: list[int | None]) -> str | None:
    dtype = "i" if field.kind == "counts" else "f"
    if not lengths:
        if type(value) not in (int, float):
            return f"must be a number, but is {_short(value)}"
    elif not (isinstance(value, np.ndarray) and value.dtype.kind == dtype):
        what = "integers" if dtype == "i" else "floats"
        return f"must be an array of {what}, but is {_short(value)}"
    if not field.any_number and not np.isfinite(value).all():
        return "holds NaN or infinity"
    least = 0 if field.kind == "counts" else field.least
    slack = _ROUNDING * np.abs(value).max(initial=1.0, where=np.isfinite(value))
    if (np.asarray(value) < least - slack).any() or (np.asarray(value) > field.most + slack).any():
        bounds = f"from {least} to {field.most}" if np.isfinite(field.most) else f"from {least} on"
        bounds = bounds if np.isfinite(least) else f"up to {field.most}"
        return f"must be {bounds}, but holds {np.min(value):g} to {np.max(value):g}"
    return _length_fault(np.shape(value), lengths)


def _plain_fault(value: Any) -> str | None:
    """What is wrong with an attribute of an unknown name, if anything."""
    if isinstance(value, np.ndarray):
        return None if value.dtype.kind in "fi" else "must be an array of numbers"
    items = value if isinstance(value, list) else [value]
    if all(item is None or _is_label(item) for item in items):
        return None
    return f"must be an array, a number, text or a list, but is {_short(value)}"


def _extra_fault(extra: dict[str, Any]) -> str | None:
    """What is wrong with what ``fairpca fit`` adds: the columns and categories of the files."""
    for name, value in extra.items():
        lists = list(value.values()) if isinstance(value, dict) else [value]
        if not all(isinstance(x, list) and all(isinstance(y, str) for y in x) for x in lists):
            return f"{name!r} must be a list of texts, but is {_short(value)}"
    return None


def _length_fault(shape: tuple[int, ...], lengths: list[int | None]) -> str | None:
    fits = len(shape) == len(lengths) and all(
        wanted in (None, found) for found, wanted in zip(shape, lengths, strict=True)
    )
    wanted = " x ".join("any" if length is None else str(length) for length in lengths)
    return None if fits else f"must be of shape {wanted}, but is {shape}"


def _is_label(value: Any) -> bool:
    return isinstance(value, (str, bool, int, float))


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} of shape {value.shape}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
