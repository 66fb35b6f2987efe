"""Fitted projections as safetensors files: arrays, and a JSON text. No pickle.

The JSON text stands in the metadata under ``fairpca``::

    {"format_version": 1, "fairpca_version": ..., "class": "FairPCA", "params": {...},
     "attributes": {... those that are not arrays of numbers ...},
     "extra": {... what the writer adds, such as the columns of a file ...}}

Under ``sha256`` stands the checksum of that text and of all arrays. A model of standardised or
filled columns is a :class:`~fairpca._models.pipeline.ModelPipeline`; its divisors are the array
``scale``, and what stands in for missing values is the array ``fill``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import is_dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import fairpca
from fairpca._estimators.base import FairProjection
from fairpca._input.labels import label_vector
from fairpca._models.pipeline import ModelPipeline
from fairpca._models.schema import attribute_fault, header_fault
from fairpca._tables.atomic import FileName, replacing

FORMAT_VERSION = 1
_LABELS = ("groups_", "feature_names_in_")


def save_model(
    model: FairProjection | Pipeline, path: FileName, reads: Sequence[FileName] = ()
) -> None:
    """Write a fitted projection, or a pipeline of a ``StandardScaler`` and one.

    Not over a file of ``reads``, to which it was fitted.
    """
    with replacing(path, reads) as temporary:
        write_model(model, temporary)


def write_model(
    model: FairProjection | Pipeline, path: Path, extra: dict[str, Any] | None = None
) -> None:
    """Write a model to a file that nobody else sees yet.

    ``extra`` must be plain JSON; :func:`read_extra` gives it back.
    """
    steps, projection = _parts(model)
    check_is_fitted(projection)
    arrays, attributes = _contents(projection)
    for name, step in steps.items():
        if hasattr(step, "feature_names_in_"):
            attributes["feature_names_in_"] = step.feature_names_in_.tolist()
        found = step.statistics_ if name == "fill" else step.scale_
        arrays[name] = np.ascontiguousarray(found, dtype=np.float64)
    params = projection.get_params(deep=False)
    fault = attribute_fault(attributes | arrays, projection._results, params)
    if fault is not None:
        raise ValueError(f"this model could not be read again: {fault}; fit it again.")
    header = json.dumps(
        {
            "format_version": FORMAT_VERSION,
            "fairpca_version": fairpca.__version__,
            **_described(projection),
            "attributes": attributes,
            "extra": extra or {},
        }
    )
    metadata = {"fairpca": header, "sha256": _checksum(header, arrays)}
    path.write_bytes(_safetensors().numpy.save(arrays, metadata))


def _described(estimator: FairProjection) -> dict[str, Any]:
    """Class and parameters; one of these may be an estimator itself.

    Objects that deal rows to folds are not kept, only what was held out with them.
    """

    def plain(name: str, value: Any) -> Any:
        if isinstance(value, FairProjection):
            return _described(value)
        dealing = name in ("cv", "random_state") and not isinstance(value, Integral)
        return None if dealing else _to_json(name, value)

    params = estimator.get_params(deep=False)
    params = {name: plain(name, value) for name, value in params.items()}
    return {"class": type(estimator).__name__, "params": params}


def _contents(projection: FairProjection) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The fitted attributes: arrays of numbers, and all others as JSON can hold them."""
    arrays: dict[str, NDArray[Any]] = {"components_": np.ascontiguousarray(projection.components_)}
    attributes: dict[str, Any] = {}
    for name, value in vars(projection).items():
        if not _is_fitted_attribute(name) or name == "moments_" or is_dataclass(value):
            continue  # moments are large, and a dataclass is a whole front of other projections
        if isinstance(value, np.ndarray) and value.dtype.kind in "fi" and name not in _LABELS:
            arrays[name] = np.ascontiguousarray(value)
        else:
            attributes[name] = _to_json(name, value)
    return arrays, attributes


def load_model(path: str | os.PathLike[str]) -> FairProjection | ModelPipeline:
    """Read a model written by ``save`` or by ``fairpca fit``.

    Parameters
    ----------
    path : path
        A file of this library. Damaged files and those of unknown versions are refused.

    Returns
    -------
    FairPCA or other estimator, or pipeline
        A pipeline that ends in the estimator when missing values were filled in or columns
        standardised by ``fairpca fit``. It has ``to_sklearn``, ``to_onnx`` and ``save`` as well.

    Examples
    --------
    >>> import tempfile
    >>> import fairpca
    >>> from fairpca.datasets import load_diabetes_by_sex
    >>> diabetes = load_diabetes_by_sex()
    >>> fair = fairpca.FairPCA(2).fit(diabetes.data, sensitive_features=diabetes.sensitive_features)
    >>> path = tempfile.mkdtemp() + "/model.safetensors"
    >>> fair.save(path)
    >>> fairpca.load_model(path)
    FairPCA(n_components=2)
    """
    header, arrays = _read(path)
    attributes = header["attributes"] | arrays
    model = _empty_model(header, path)
    fault = attribute_fault(attributes, model._results, model.get_params(deep=False))
    if fault is not None:
        raise ValueError(f"{path} does not hold a model: {fault}; save the model again.")
    scale, fill = attributes.pop("scale", None), attributes.pop("fill", None)
    for name, value in attributes.items():
        setattr(model, name, label_vector(value) if name in _LABELS else value)
    return ModelPipeline.of(model, scale, fill)


def read_extra(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The ``extra`` that was passed to :func:`save_model`."""
    extra: dict[str, Any] = _read(path)[0]["extra"]
    return extra


def _parts(model: Any) -> tuple[dict[str, Any], FairProjection]:
    """The steps before a projection, by the name of what a file keeps of them, and itself."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    *before, last = steps
    kinds = tuple(
        "fill" if _fills_in(step) else "scale" if _divides(step) else "" for step in before
    )
    if isinstance(last, FairProjection) and kinds in ((), ("fill",), ("scale",), ("fill", "scale")):
        return dict(zip(kinds, before, strict=True)), last
    raise TypeError(
        f"cannot save a {type(model).__name__} of {[type(step).__name__ for step in steps]}; pass "
        "an estimator of this library, or a Pipeline of SimpleImputer(), "
        "StandardScaler(with_mean=False), or one of these, and an estimator."
    )


def _fills_in(step: Any) -> bool:
    """Whether a step puts one number of each column where a value is missing, and no more."""
    if not isinstance(step, SimpleImputer) or step.add_indicator:
        return False
    fill = np.asarray(getattr(step, "statistics_", np.nan))
    return (
        step.missing_values is np.nan and fill.dtype.kind == "f" and bool(np.isfinite(fill).all())
    )


def _divides(step: Any) -> bool:
    return isinstance(step, StandardScaler) and not step.with_mean


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


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no model file {path}.")
    safetensors = _safetensors()
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            header = json.loads(metadata.get("fairpca", "null"))
            version = header["format_version"] if isinstance(header, dict) else None
            if version == FORMAT_VERSION:
                arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except RecursionError as error:
        raise ValueError(f"{path} is not a model: its header is nested too deeply.") from error
    except (safetensors.SafetensorError, KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"{path} is damaged or not a fairpca model file ({error}); write it again with "
            "estimator.save(path) or `fairpca fit`."
        ) from error
    if version is None:
        raise ValueError(f"{path} is a safetensors file, but not one written by fairpca.")
    if version != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {version}, and this fairpca ({fairpca.__version__}) reads "
            f"version {FORMAT_VERSION}; install a newer fairpca, or save the model again."
        )
    if metadata.get("sha256") != _checksum(metadata["fairpca"], arrays):
        raise ValueError(f"{path} is damaged: its checksum does not match; save the model again.")
    fault = header_fault(header)
    if fault is not None:
        raise ValueError(f"the header of {path} is wrong: {fault}; save the model again.")
    return header, arrays


def _empty_model(header: dict[str, Any], path: str | os.PathLike[str]) -> FairProjection:
    name = header.get("class")
    known = getattr(fairpca, name) if name in fairpca.__all__ else None
    if not (isinstance(known, type) and issubclass(known, FairProjection)):
        raise ValueError(
            f"{path} holds a {name!r}, which this fairpca ({fairpca.__version__}) lacks."
        )
    try:
        params = {
            name: _empty_model(value, path) if isinstance(value, dict) else value
            for name, value in header["params"].items()
        }
        model = known(**params)
        model._check_params()
        return model
    except (KeyError, AttributeError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} has parameters that this fairpca ({fairpca.__version__}) does not take: "
            f"{error}; install the fairpca that wrote it, or save the model again."
        ) from error


def _is_fitted_attribute(name: str) -> bool:
    """Whether this is the name of a fitted attribute."""
    return name.endswith("_") and not name.startswith("_")


def _checksum(header: str, arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(header.encode())
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
