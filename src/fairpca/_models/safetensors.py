"""Fitted estimators as safetensors files: arrays, and a JSON text under ``fairpca``. No pickle.

The text holds format and library versions, class, parameters, the attributes that are not arrays of
numbers, what the writer adds (``extra``), and a checksum of all this and of the arrays. A checksum
says that a file is as it was written, not that a model was written. So :func:`load_model` also
checks version, class, parameters and shapes, that numbers are finite, and that components are
orthonormal. The array ``fill``, if there is one, stands in for missing values.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from copy import copy
from dataclasses import is_dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline

import fairpca
from fairpca._estimators.base import GroupEstimator
from fairpca._input.labels import label_vector
from fairpca._tables.atomic import replacing
from fairpca._typing import Array

Estimator = GroupEstimator[Any]

FORMAT_VERSION = 2
_HEADER = {"fairpca_version": str, "class": str, "params": dict, "attributes": dict, "extra": dict}
_LABELS = ("groups_", "feature_names_in_")
_FITTED = re.compile(r"[a-z][a-z0-9_]*_")  # names of fitted attributes
_LARGEST = 1e150  # whose square is finite
_ORTHONORMAL = 1e-6  # how far products of components may be from 0 and 1


class ModelPipeline(Pipeline):  # type: ignore[misc]
    """A ``SimpleImputer`` and an estimator, ``model[-1]``, which has the fitted attributes."""

    @classmethod
    def of(cls, estimator: Estimator, fill: Array | None = None) -> Self | Estimator:
        """The model for columns that were filled in; the estimator itself if they were not."""
        if fill is None:
            return estimator
        imputer = SimpleImputer(strategy="median").fit(fill[None])  # the median of one row
        if hasattr(estimator, "feature_names_in_"):
            # The imputer sees the columns, the estimator an array.
            imputer.feature_names_in_ = estimator.feature_names_in_
            estimator = copy(estimator)
            del estimator.feature_names_in_
        return cls([("impute", imputer), ("fairpca", estimator)])

    def inverse_transform(self, X: Any) -> Any:
        """Rows from scores, in the units of the columns; what was missing is reconstructed too."""
        return self[-1].inverse_transform(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that :func:`fairpca.load_model` reads."""
        with replacing(path) as temporary:
            write_model(self, temporary)

    def to_sklearn(self) -> Pipeline:
        """An equivalent pipeline of scikit-learn's transformers and ``PCA``."""
        return make_pipeline(self[0], self[-1].to_sklearn())


def write_model(
    model: Estimator | Pipeline, path: Path, extra: dict[str, Any] | None = None
) -> None:
    """Write a fitted estimator, or a pipeline of a ``SimpleImputer`` and one.

    ``extra`` must be plain JSON; :func:`read_extra` gives it back.
    """
    estimator, fill = _parts(model)
    estimator._ready()
    arrays, attributes = _contents(estimator)
    if fill is not None:
        arrays["fill"] = fill
        if hasattr(model, "feature_names_in_"):
            attributes["feature_names_in_"] = model.feature_names_in_.tolist()
    fault = _fault(estimator, attributes | arrays)
    if fault is not None:
        raise ValueError(f"this model could not be read again: {fault}; fit it again.")
    header = {
        "format_version": FORMAT_VERSION,
        "fairpca_version": fairpca.__version__,
        **_described(estimator),
        "attributes": attributes,
        "extra": extra or {},
    }
    # A single entry: safetensors writes several ones in an order that varies.
    metadata = {"fairpca": _text(header | {"sha256": _checksum(header, arrays)})}
    path.write_bytes(_safetensors().numpy.save(arrays, metadata))


def load_model(path: str | os.PathLike[str]) -> Estimator | ModelPipeline:
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
    return ModelPipeline.of(model, fill)


def read_extra(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The ``extra`` that was passed to :func:`write_model`."""
    extra: dict[str, Any] = _read(path)[0]["extra"]
    return extra


# -- writing ---------------------------------------------------------------------------------------


def _parts(model: Any) -> tuple[Estimator, Array | None]:
    """The estimator of a model, and what stands in for missing values before it."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    *before, last = steps
    if isinstance(last, GroupEstimator) and not before:
        return last, None
    if isinstance(last, GroupEstimator) and len(before) == 1 and _only_fills(before[0]):
        return last, before[0].statistics_
    raise TypeError(
        f"cannot save a {type(model).__name__} of {[type(step).__name__ for step in steps]}; "
        "pass an estimator of this library (with standardize=True in place of a "
        "StandardScaler), or a Pipeline of SimpleImputer() and an estimator."
    )


def _only_fills(step: Any) -> bool:
    """Whether a step puts numbers in place of missing values, and does no more than that."""
    if not isinstance(step, SimpleImputer) or step.add_indicator:
        return False
    return step.missing_values is np.nan and _all_finite(getattr(step, "statistics_", None))


def _all_finite(value: Any) -> bool:
    """Whether a number, or every entry of an array, is finite, and its square too."""
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "fi" and bool((np.abs(value) < _LARGEST).all())
    return type(value) in (int, float) and abs(value) < _LARGEST


def _described(estimator: Estimator) -> dict[str, Any]:
    """Class and parameters; a parameter may be an estimator itself.

    Splitters and random generators are not kept, only the results that they led to.
    """

    def plain(name: str, value: Any) -> Any:
        if isinstance(value, GroupEstimator):
            return _described(value)
        splits_rows = name in ("cv", "random_state") and not isinstance(value, Integral)
        return None if splits_rows else _to_json(name, value)

    params = {name: plain(name, v) for name, v in estimator.get_params(deep=False).items()}
    return {"class": type(estimator).__name__, "params": params}


def _contents(estimator: Estimator) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """The fitted attributes: arrays of numbers, and all others as JSON can hold them."""
    arrays: dict[str, NDArray[Any]] = {}
    attributes: dict[str, Any] = {}
    for name, value in vars(estimator).items():
        if not _FITTED.fullmatch(name) or name == "moments_" or is_dataclass(value):
            continue  # moments are large, and a dataclass is a whole front of other projections
        if name not in _LABELS and isinstance(value, np.ndarray) and value.dtype.kind in "fi":
            arrays[name] = np.ascontiguousarray(value)
        else:
            attributes[name] = _to_json(name, value)
    return arrays, attributes


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


# -- reading ---------------------------------------------------------------------------------------


def _read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays of a file that is as it was written."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no model file {path}.")
    safetensors = _safetensors()
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("fairpca")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = None if text is None else json.loads(text)
    except (safetensors.SafetensorError, ValueError, OSError, RecursionError) as error:
        raise ValueError(
            f"{path} is damaged or not a fairpca model file ({_short(str(error), 200)}); write it "
            "again with estimator.save(path)."
        ) from error
    if not isinstance(header, dict):
        raise ValueError(f"{path} is not a fairpca model: the header is missing.")
    if header.get("format_version") != FORMAT_VERSION:
        raise ValueError(
            f"{path} has format version {_short(header.get('format_version'))}, and this fairpca "
            f"({fairpca.__version__}) reads version {FORMAT_VERSION}; install the fairpca that "
            "wrote it, or save the model again."
        )
    for name, kind in _HEADER.items():
        if not isinstance(header.get(name), kind):
            raise ValueError(
                f"the header of {path} is wrong: {name!r} must be {kind.__name__}, but is "
                f"{_short(header.get(name))}; save the model again."
            )
    unsigned = {name: value for name, value in header.items() if name != "sha256"}
    if text != _text(header) or header.get("sha256") != _checksum(unsigned, arrays):
        raise ValueError(f"{path} is damaged: its checksum does not match; save the model again.")
    return header, arrays


def _described_estimator(header: dict[str, Any], path: str | os.PathLike[str]) -> Estimator:
    """The estimator that a header describes, with its parameters."""
    name, here = header.get("class"), f"this fairpca ({fairpca.__version__})"
    known = getattr(fairpca, name) if name in fairpca.__all__ else None
    if not (isinstance(known, type) and issubclass(known, GroupEstimator)):
        raise ValueError(f"{path} holds a {_short(name)}, which {here} lacks.")
    try:
        params = {
            key: _described_estimator(value, path) if isinstance(value, dict) else value
            for key, value in header["params"].items()
        }
        model = known(**params)
        model._check_params()
    except (KeyError, AttributeError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(
            f"{path} has parameters that {here} does not take: {_short(str(error), 200)}; install "
            "the fairpca that wrote it, or save the model again."
        ) from error
    return model


def _fault(model: Estimator, attributes: dict[str, Any]) -> str | None:
    """The first fault of the attributes of a model, in words; None if there is none."""
    for name, value in attributes.items():
        if name != "fill" and (not _FITTED.fullmatch(name) or hasattr(type(model), name)):
            return f"{_short(name)} is not an attribute of a {type(model).__name__}"
        numbers = isinstance(value, np.ndarray) or model._saved_shapes.get(name) == ""
        if numbers and not _all_finite(value):
            return f"{_short(name)} must hold finite numbers below {_LARGEST:g}"
    d, r = attributes.get("n_features_in_"), attributes.get("n_components_")
    groups, names = (attributes.get(name) for name in _LABELS)
    if type(d) is not int or type(r or 0) is not int or not isinstance(groups, list):
        return "n_features_in_ and n_components_ must be numbers, and groups_ a list of labels"
    if names is not None and not (isinstance(names, list) and len(names) == d):
        return f"feature_names_in_ must be a list of {d} names"
    sizes = {"d": d, "k": len(groups)} | ({} if r is None else {"r": r})
    fill = {"fill": "d"} if "fill" in attributes else {}
    for name, axes in (model._saved_shapes | fill).items():
        value = attributes.get(name)
        if value is None:
            return f"{name} is missing"
        lengths = (*np.shape(value), *axes)  # r is that of the first array that has it
        shape = tuple(sizes.setdefault(axis, n) for axis, n in zip(axes, lengths, strict=False))
        if axes and not (isinstance(value, np.ndarray) and value.shape == shape):
            return f"{name} must be an array of shape {_short(shape)}, but is {_short(value)}"
    if not (attributes["scale_"] > 1 / _LARGEST).all():
        return "scale_ must be positive"
    U = attributes.get("components_", np.zeros((0, 0)))
    if np.abs(U @ U.T - np.eye(len(U))).max(initial=0.0) > _ORTHONORMAL:
        return "components_ are not orthonormal rows"
    return None


def _short(value: Any, most: int = 60) -> str:
    """A value for a message, cut off if it is long."""
    text = value if isinstance(value, str) and most > 60 else repr(value)
    return text if len(text) <= most else f"{text[:most]}..."


def _safetensors() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            'model files need safetensors; install it with pip install "fairpca[model]".'
        ) from error
    return safetensors
