"""Fitted projections as safetensors files: arrays, and a JSON text. No pickle.

The JSON text stands in the metadata under ``fairpca``::

    {"format_version": 1, "fairpca_version": ..., "class": "FairPCA", "params": {...},
     "attributes": {... all that is not an array of numbers ...},
     "extra": {... of the writer, such as the columns of a file ...}}

and under ``sha256`` the checksum of that text and of all arrays. A standardised model is a
:class:`~sklearn.pipeline.Pipeline` of a ``StandardScaler`` and a projection; its divisors are the
array ``scale``.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import fairpca
from fairpca._base import FairProjection
from fairpca._files import replacing
from fairpca._validation import label_vector

FORMAT_VERSION = 1
_NEEDED = ("components_", "mean_")
_LABELS = ("groups_", "feature_names_in_")


def save_model(
    model: FairProjection | Pipeline,
    path: str | os.PathLike[str],
    extra: dict[str, Any] | None = None,
) -> None:
    """Write a fitted projection, or a pipeline of a ``StandardScaler`` and one.

    ``extra`` must be plain JSON; :func:`read_extra` gives it back.
    """
    scaler, projection = _parts(model)
    check_is_fitted(projection)
    arrays: dict[str, NDArray[Any]] = {"components_": np.ascontiguousarray(projection.components_)}
    attributes: dict[str, Any] = {}
    for name, value in vars(projection).items():
        if not name.endswith("_") or name.startswith("_") or name == "moments_":
            continue
        if is_dataclass(value):  # a whole front of other projections
            continue
        if isinstance(value, np.ndarray) and value.dtype.kind in "fi" and name not in _LABELS:
            arrays[name] = np.ascontiguousarray(value)
        else:
            attributes[name] = _to_json(name, value)
    if scaler is not None:
        arrays["scale"] = np.ascontiguousarray(scaler.scale_)
    header = json.dumps(
        {
            "format_version": FORMAT_VERSION,
            "fairpca_version": fairpca.__version__,
            "class": type(projection).__name__,
            "params": {k: _to_json(k, v) for k, v in projection.get_params().items()},
            "attributes": attributes,
            "extra": extra or {},
        }
    )
    metadata = {"fairpca": header, "sha256": _checksum(header, arrays)}
    safetensors = _safetensors()
    with replacing(path) as temporary:
        safetensors.numpy.save_file(arrays, temporary, metadata=metadata)


def load_model(path: str | os.PathLike[str]) -> FairProjection | Pipeline:
    """Read a model written by ``save`` or by ``fairpca fit``.

    Parameters
    ----------
    path : path
        A file of this library; unknown versions and damaged files are refused.

    Returns
    -------
    FairPCA or other estimator, or Pipeline
        A pipeline of a ``StandardScaler`` and the estimator when the data were standardised by
        ``fairpca fit``.

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
    scale = arrays.pop("scale", None)
    model = _class_named(header["class"], path)(**header["params"])
    for name, value in (header["attributes"] | arrays).items():
        setattr(model, name, label_vector(value) if name in _LABELS else value)
    return model if scale is None else with_scaler(model, scale)


def read_extra(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What the writer of the file added to it."""
    extra: dict[str, Any] = _read(path)[0]["extra"]
    return extra


def with_scaler(projection: FairProjection, scale: NDArray[np.float64]) -> Pipeline:
    """A projection fitted to columns divided by ``scale``, as a pipeline for the raw columns."""
    scaler = StandardScaler(with_mean=False)
    scaler.scale_, scaler.var_ = scale, scale**2
    scaler.n_samples_seen_ = int(projection.group_sizes_.sum())
    scaler.n_features_in_ = len(scale)
    if hasattr(projection, "feature_names_in_"):
        scaler.feature_names_in_ = projection.feature_names_in_
    return Pipeline([("standardize", scaler), ("fairpca", projection)])


def _parts(model: Any) -> tuple[StandardScaler | None, FairProjection]:
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if len(steps) == 1 and isinstance(steps[0], FairProjection):
        return None, steps[0]
    if (
        len(steps) == 2
        and isinstance(steps[0], StandardScaler)
        and isinstance(steps[1], FairProjection)
        and not steps[0].with_mean
    ):
        return steps[0], steps[1]
    raise TypeError(
        f"cannot save a {type(model).__name__} of {[type(step).__name__ for step in steps]}; pass "
        "an estimator of this library, or a Pipeline of StandardScaler(with_mean=False) and one."
    )


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
    except (safetensors.SafetensorError, KeyError, ValueError, OSError) as error:
        raise ValueError(
            f"{path} is damaged or no fairpca model file ({error}); write it again with "
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
    missing = [name for name in _NEEDED if name not in arrays]
    if missing:
        raise ValueError(f"{path} lacks {missing}; save the model again.")
    return header, arrays


def _class_named(name: str, path: str | os.PathLike[str]) -> Any:
    found = getattr(fairpca, name, None) if name in fairpca.__all__ else None
    if isinstance(found, type) and issubclass(found, FairProjection):
        return found
    raise ValueError(f"{path} holds a {name!r}, which this fairpca ({fairpca.__version__}) lacks.")


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
