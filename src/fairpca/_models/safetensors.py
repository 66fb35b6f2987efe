"""Fitted projections as safetensors files: arrays, and a JSON text. No pickle.

The JSON text stands in the metadata under ``fairpca``::

    {"format_version": 2, "fairpca_version": ..., "class": "FairPCA", "params": {...},
     "attributes": {... those that are not arrays of numbers ...},
     "extra": {... what the writer adds, such as the columns of a file ...},
     "sha256": checksum of this text without it, and of all arrays}

A checksum says that a file is as it was written, not that a model was written. So
:func:`load_model` also checks version, class, parameters, types, shapes, that numbers are finite,
and that components are orthonormal. What stands in for missing values, if anything does, is the
array ``fill``.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Sequence
from dataclasses import is_dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

import fairpca
from fairpca._estimators.base import FairProjection
from fairpca._input.labels import label_vector
from fairpca._models.pipeline import ModelPipeline
from fairpca._tables.atomic import FileName, replacing

FORMAT_VERSION = 2
_HEADER = {
    "format_version": int,
    "fairpca_version": str,
    "class": str,
    "params": dict,
    "attributes": dict,
    "extra": dict,
    "sha256": str,
}
#: Shapes of what every model has: r components, d features, k groups.
_ARRAYS = {
    "components_": "rd",
    **dict.fromkeys(("mean_", "scale_"), "d"),
    **dict.fromkeys(("explained_variance_", "explained_variance_ratio_"), "r"),
    **dict.fromkeys(("group_errors_", "pca_group_errors_", "group_sizes_"), "k"),
    "group_explained_variance_ratio_": "k",
}
_NUMBERS = (
    "noise_variance_",
    "reconstruction_error_",
    "pca_reconstruction_error_",
    "disparity_",
    "alpha_",  # these two may be NaN
    "duality_gap_",
)
_NOT_NEGATIVE = ("explained_variance_", "noise_variance_", "group_sizes_", "group_errors_")
_LABELS = ("groups_", "feature_names_in_")
_LARGEST = 1e150  # whose square is finite
_ORTHONORMAL = 1e-6  # how far products of components may be from 0 and 1


def save_model(
    model: FairProjection | Pipeline, path: FileName, reads: Sequence[FileName] = ()
) -> None:
    """Write a fitted projection, or a pipeline of a ``SimpleImputer`` and one.

    Refuses to overwrite a file of ``reads``, to which the model was fitted.
    """
    with replacing(path, reads) as temporary:
        write_model(model, temporary)


def write_model(
    model: FairProjection | Pipeline, path: Path, extra: dict[str, Any] | None = None
) -> None:
    """Write a model to a file that nobody else sees yet.

    ``extra`` must be plain JSON; :func:`read_extra` gives it back.
    """
    projection, fill = ModelPipeline.parts(model)
    projection._ready()
    arrays, attributes = _contents(projection)
    if fill is not None:
        arrays["fill"] = fill
        if hasattr(model, "feature_names_in_"):
            attributes["feature_names_in_"] = model.feature_names_in_.tolist()
    fault = _fault(projection, attributes | arrays)
    if fault is not None:
        raise ValueError(f"this model could not be read again: {fault}; fit it again.")
    header = {
        "format_version": FORMAT_VERSION,
        "fairpca_version": fairpca.__version__,
        **_described(projection),
        "attributes": attributes,
        "extra": extra or {},
    }
    # A single entry: safetensors writes several ones in an order that varies.
    metadata = {"fairpca": _text(header | {"sha256": _checksum(header, arrays)})}
    path.write_bytes(_safetensors().numpy.save(arrays, metadata))


def load_model(path: str | os.PathLike[str]) -> FairProjection | ModelPipeline:
    """Read a model written by ``save`` or by ``fairpca fit``.

    Parameters
    ----------
    path : path
        A file of this library. Damaged files and those of unknown versions are refused.

    Returns
    -------
    FairPCA or other estimator, or pipeline
        A pipeline of a ``SimpleImputer`` and the estimator when missing values were filled in by
        ``fairpca fit``. It has ``to_sklearn`` and ``save`` as well.

    Examples
    --------
    >>> import tempfile
    >>> import fairpca
    >>> from fairpca.datasets import load_checkup
    >>> people = load_checkup()
    >>> fair = fairpca.FairPCA(2, standardize=True)
    >>> fair = fair.fit(people.data, sensitive_features=people.sensitive_features)
    >>> path = tempfile.mkdtemp() + "/model.safetensors"
    >>> fair.save(path)
    >>> fairpca.load_model(path)
    FairPCA(n_components=2, standardize=True)
    """
    header, arrays = _read(path)
    model = _described_estimator(header, path)
    attributes = header["attributes"] | arrays
    fault = _fault(model, attributes)
    if fault is not None:
        raise ValueError(f"{path} is not a fairpca model: {fault}; save the model again.")
    fill = attributes.pop("fill", None)
    for name, value in attributes.items():
        setattr(model, name, label_vector(value) if name in _LABELS else value)
    return model if fill is None else ModelPipeline.of(model, fill=fill)


def read_extra(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The ``extra`` that was passed to :func:`write_model`."""
    extra: dict[str, Any] = _read(path)[0]["extra"]
    return extra


def _described(estimator: FairProjection) -> dict[str, Any]:
    """Class and parameters; a parameter may be an estimator itself.

    Splitters and random generators are not kept, only the results that they led to.
    """

    def plain(name: str, value: Any) -> Any:
        if isinstance(value, FairProjection):
            return _described(value)
        splits_rows = name in ("cv", "random_state") and not isinstance(value, Integral)
        return None if splits_rows else _to_json(name, value)

    params = {name: plain(name, v) for name, v in estimator.get_params(deep=False).items()}
    return {"class": type(estimator).__name__, "params": params}


def _contents(projection: FairProjection) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The fitted attributes: arrays of numbers, and all others as JSON can hold them."""
    arrays: dict[str, NDArray[Any]] = {}
    attributes: dict[str, Any] = {}
    for name, value in vars(projection).items():
        if not _is_fitted_attribute(name) or name == "moments_" or is_dataclass(value):
            continue  # moments are large, and a dataclass is a whole front of other projections
        if isinstance(value, np.ndarray) and value.dtype.kind in "fi" and name not in _LABELS:
            arrays[name] = np.ascontiguousarray(value)
        else:
            attributes[name] = _to_json(name, value)
    return arrays, attributes


def _is_fitted_attribute(name: str) -> bool:
    return re.fullmatch(r"[a-z][a-z0-9_]*_", name) is not None


def _to_json(name: str, value: Any) -> Any:
    plain = value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
    items = plain if isinstance(plain, list) else [plain]
    if all(item is None or isinstance(item, (bool, int, float, str)) for item in items):
        return plain
    kinds = sorted({type(item).__name__ for item in items})
    raise TypeError(
        f"{name} holds {', '.join(kinds)}, which a model file cannot keep; use strings, numbers or "
        "booleans as group labels and fit again."
    )


# -- reading -------------------------------------------------------------------------------------


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a file that is as it was written."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no model file {path}.")
    safetensors = _safetensors()
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("fairpca")
            header = None if text is None else json.loads(text)
            version = header["format_version"] if isinstance(header, dict) else None
            if version == FORMAT_VERSION:
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except RecursionError as error:
        raise ValueError(f"{path} is not a model: its header is nested too deeply.") from error
    except (safetensors.SafetensorError, KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"{path} is damaged or not a fairpca model file ({_short(str(error), 200)}); write it "
            "again with estimator.save(path)."
        ) from error
    if not isinstance(header, dict):
        raise ValueError(f"{path} is not a fairpca model: the header is missing.")
    if type(version) is int and version != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {_short(version)}, and this fairpca "
            f"({fairpca.__version__}) reads version {FORMAT_VERSION}; install the fairpca that "
            "wrote it, or save the model again."
        )
    for name in sorted(header.keys() | _HEADER.keys()):
        kind, value = _HEADER.get(name), header.get(name)
        if kind is None or type(value) is not kind:  # True is no version
            wanted = "must not be there" if kind is None else f"must be {kind.__name__}"
            raise ValueError(
                f"the header of {path} is wrong: {_short(name)} {wanted}, but is {_short(value)}; "
                "save the model again."
            )
    unsigned = {name: value for name, value in header.items() if name != "sha256"}
    if text != _text(header) or header["sha256"] != _checksum(unsigned, arrays):
        raise ValueError(f"{path} is damaged: its checksum does not match; save the model again.")
    return header, arrays


def _described_estimator(header: dict[str, Any], path: str | os.PathLike[str]) -> FairProjection:
    """The estimator that a header describes, with its parameters."""
    name, here = header.get("class"), f"this fairpca ({fairpca.__version__})"
    known = getattr(fairpca, name) if name in fairpca.__all__ else None
    if not (isinstance(known, type) and issubclass(known, FairProjection)):
        raise ValueError(f"{path} holds a {_short(name)}, which {here} lacks.")
    try:
        model = known(
            **{
                name: _described_estimator(value, path) if isinstance(value, dict) else value
                for name, value in header["params"].items()
            }
        )
        model._check_params()
    except (KeyError, AttributeError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} has parameters that {here} does not take: {_short(str(error), 200)}; install "
            "the fairpca that wrote it, or save the model again."
        ) from error
    return model


def _fault(model: FairProjection, attributes: dict[str, Any]) -> str | None:
    """What is wrong with the attributes of a model, if anything."""
    for name in ("groups_", *_ARRAYS, *_NUMBERS, "status_", "harmed_group_", "privileged_group_"):
        if name not in attributes:
            return f"{name} is missing"
    for name, value in attributes.items():
        fault = _value_fault(name, value)
        if fault is not None:
            return f"{_short(name)} {fault}"
        if name != "fill" and (not _is_fitted_attribute(name) or hasattr(type(model), name)):
            return f"{_short(name)} is not an attribute of a {type(model).__name__}"
    U, groups = np.asarray(attributes["components_"]), attributes["groups_"]
    if not isinstance(groups, list) or len(set(groups)) < max(len(groups), 2):
        return "groups_ must be a list of two labels or more, all of them different"
    if U.ndim != 2 or np.abs(U @ U.T - np.eye(len(U))).max(initial=0.0) > _ORTHONORMAL:
        return "components_ are not orthonormal rows"
    sizes = {"r": U.shape[0], "d": U.shape[1], "k": len(groups)}
    for name, axes in (_ARRAYS | ({"fill": "d"} if "fill" in attributes else {})).items():
        value, shape = attributes[name], tuple(sizes[axis] for axis in axes)
        if not isinstance(value, np.ndarray) or value.shape != shape:
            return f"{name} must be an array of shape {shape}, but is {_short(value)}"
    if not (attributes["scale_"] > 1 / _LARGEST).all():
        return "scale_ must be positive"
    for name in _NOT_NEGATIVE:
        if (np.asarray(attributes[name]) < 0).any():
            return f"{name} must not be negative"
    for name, expected in {"n_components_": len(U), "n_features_in_": U.shape[1]}.items():
        if type(attributes.get(name)) is not int or attributes[name] != expected:
            return f"{name} must be {expected}, but is {_short(attributes.get(name))}"
    if type(model.n_components) is int and model.n_components != len(U):
        return f"n_components must be {len(U)}, but is {_short(model.n_components)}"
    names = attributes.get("feature_names_in_", [""] * U.shape[1])
    if not (isinstance(names, list) and [type(name) for name in names] == [str] * U.shape[1]):
        return f"feature_names_in_ must be a list of {U.shape[1]} texts"
    if attributes["harmed_group_"] not in groups or attributes["privileged_group_"] not in groups:
        return "harmed_group_ and privileged_group_ must be in groups_"
    return None if type(attributes["status_"]) is str else "status_ must be a text"


def _value_fault(name: str, value: Any) -> str | None:
    """What is wrong with one attribute by itself, if anything."""
    if isinstance(value, np.ndarray):
        kinds = "i" if name in ("group_sizes_", "subset_") else "f"
        if value.dtype.kind not in kinds:
            return f"must hold {'integers' if kinds == 'i' else 'floats'}, but is {value.dtype}"
        return None if (np.abs(value) < _LARGEST).all() else "must be finite and below 1e150"
    if name in _NUMBERS:
        if type(value) not in (int, float):
            return f"must be a number, but is {_short(value)}"
        if not abs(value) < _LARGEST and name not in ("alpha_", "duality_gap_"):
            return "must be finite and below 1e150"
    items = value if isinstance(value, list) else [value]
    if all(item is None or isinstance(item, (str, bool, int, float)) for item in items):
        return None
    return f"must be an array, a number, a text or a list of these, but is {_short(value)}"


def _short(value: Any, most: int = 60) -> str:
    """A value for a message, cut off if it is long."""
    text = value if isinstance(value, str) and most > 60 else repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


def _text(header: dict[str, Any]) -> str:
    """The header as it is written: the same for the same model."""
    return json.dumps(header, sort_keys=True)


def _checksum(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(_text(header).encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def _safetensors() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            'model files need safetensors; install it with pip install "fairpca[model]".'
        ) from error
    return safetensors
