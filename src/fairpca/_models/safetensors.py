"""Fitted estimators as safetensors files: arrays, and a JSON text under ``fairpca``. No pickle.

The text holds versions, class, parameters, the attributes that are not arrays of numbers, what the
writer adds (``extra``), and a checksum of all this and of the arrays. A correct checksum does not
make a valid model, so :func:`load_model` checks the content too. The array ``fill``, if there is
one, stands in for missing values.
"""

import hashlib
import json
import os
from copy import copy
from importlib import import_module
from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline

import fairpca
from fairpca._atomic import replacing
from fairpca._estimators.base import GroupEstimator
from fairpca._estimators.fitted import Kind, fault_of, numbers, record_of
from fairpca._input.labels import label_vector
from fairpca._linear_map import refuse_unfitted
from fairpca._typing import Array

Estimator = GroupEstimator[Any]
Json = dict[str, Any]

FORMAT_VERSION = 2
_HEADER = {"fairpca_version": str, "class": str, "params": dict, "attributes": dict, "extra": dict}


class ModelPipeline(Pipeline):  # type: ignore[misc]
    """A ``SimpleImputer`` and an estimator, ``model[-1]``, which has the fitted attributes."""

    @classmethod
    def of(cls, estimator: Estimator, fill: Array | None = None) -> Self | Estimator:
        """The model for columns that were filled in; the estimator itself if they were not."""
        if fill is None:
            return estimator
        imputer = SimpleImputer(strategy="median").fit(fill[None])  # the median of one row
        if hasattr(estimator, "feature_names_in_"):
            # The imputer gets named columns and passes an array on to the estimator.
            imputer.feature_names_in_ = estimator.feature_names_in_
            estimator = copy(estimator)
            del estimator.feature_names_in_
        return cls([("impute", imputer), ("fairpca", estimator)])

    def inverse_transform(self, X: Any) -> Any:
        """Reconstruct rows from scores, in the units of the columns, missing values included."""
        return self[-1].inverse_transform(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that :func:`fairpca.load_model` reads."""
        with replacing(path) as temporary:
            write_model(self, temporary)

    def to_sklearn(self) -> Pipeline:
        """An equivalent pipeline of scikit-learn's transformers and ``PCA``."""
        return make_pipeline(self[0], self[-1].to_sklearn())


def write_model(model: Estimator | Pipeline, path: Path, extra: Json | None = None) -> None:
    """Write a fitted estimator, alone or after an imputer; ``extra`` is plain JSON."""
    estimator, fill = _parts(model)
    refuse_unfitted(estimator)
    arrays: dict[str, NDArray[Any]] = {}
    attributes: Json = {}
    published = vars(estimator)
    declared = _kinds(estimator)
    for name, kind in declared.items():
        if name not in published:
            continue
        if kind.stored == "array":
            arrays[name] = np.ascontiguousarray(published[name])
        elif kind.stored != "never":
            attributes[name] = _to_json(name, published[name])
    if fill is not None:
        arrays["fill"] = fill
        if hasattr(model, "feature_names_in_"):
            attributes["feature_names_in_"] = model.feature_names_in_.tolist()
    fault = fault_of(declared, attributes | arrays)
    if fault is not None:
        raise ValueError(f"this model could not be read again: {fault}; fit it again.")
    versions = {"format_version": FORMAT_VERSION, "fairpca_version": fairpca.__version__}
    header = versions | _described(estimator) | {"attributes": attributes, "extra": extra or {}}
    # A single entry, because safetensors writes several in an order that varies.
    metadata = {"fairpca": _text(header | {"sha256": _checksum(header, arrays)})}
    path.write_bytes(_safetensors().numpy.save(arrays, metadata))


def load_model(path: str | os.PathLike[str]) -> Estimator | ModelPipeline:
    """Read a model written by ``save`` or by ``fairpca fit``; nothing in the file is executed.

    Damaged files and those of unknown versions are refused. Where ``fairpca fit`` filled in missing
    values, the model is a pipeline of a ``SimpleImputer`` and the estimator.

    Examples
    --------
    >>> import tempfile
    >>> from fairpca import FairPCA, load_model
    >>> from fairpca.datasets import load_checkup
    >>> people, path = load_checkup(), tempfile.mkdtemp() + "/model.safetensors"
    >>> FairPCA(2).fit(people.data, sensitive_features=people.sensitive_features).save(path)
    >>> load_model(path)
    FairPCA(n_components=2)
    """
    model, attributes, _ = _read(path)
    fill = attributes.pop("fill", None)
    declared = _kinds(model)
    for name, value in attributes.items():
        if declared[name].stored == "labels":
            value = label_vector(value)
        setattr(model, name, value)
    return ModelPipeline.of(model, fill)


def read_extra(path: str | os.PathLike[str]) -> Json:
    """The ``extra`` that was passed to :func:`write_model`."""
    return _read(path)[2]


def _parts(model: Any) -> tuple[Estimator, Array | None]:
    """The estimator of a model, and the values that its imputer fills in."""
    match [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]:
        case [GroupEstimator() as estimator]:
            return estimator, None
        case [SimpleImputer(add_indicator=False) as imputer, GroupEstimator() as estimator]:
            fill = getattr(imputer, "statistics_", None)
            if imputer.missing_values is np.nan and numbers("d").holds(fill):
                return estimator, fill
    raise TypeError(
        f"cannot save this {type(model).__name__}; pass an estimator (standardize=True in place of "
        "a StandardScaler), or a Pipeline of SimpleImputer() and an estimator."
    )


def _described(estimator: Estimator) -> Json:
    """Class and parameters; splitters and random generators become None."""
    params: Json = {}
    for name, value in estimator.get_params(deep=False).items():
        splits_rows = name in ("cv", "random_state") and not isinstance(value, Integral)
        if isinstance(value, GroupEstimator):
            params[name] = _described(value)
        else:
            params[name] = None
            if not splits_rows:
                params[name] = _to_json(name, value)
    return {"class": type(estimator).__name__, "params": params}


def _to_json(name: str, value: Any) -> Any:
    plain = value
    if isinstance(value, (np.ndarray, np.generic)):
        plain = value.tolist()
    if isinstance(plain, tuple):
        plain = list(plain)
    for item in plain if isinstance(plain, list) else [plain]:
        if not (item is None or isinstance(item, (bool, int, float, str))):
            raise TypeError(
                f"{name} holds a {type(item).__name__}, which a model file cannot keep; use "
                "strings, numbers or booleans as group labels and fit again."
            )
    return plain


def _text(header: Json) -> str:
    """The header as text, which is always the same for the same model."""
    return json.dumps(header, sort_keys=True)


def _checksum(header: Json, arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(_text(header).encode())
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def _read(path: str | os.PathLike[str]) -> tuple[Estimator, Json, Json]:
    """The estimator of a file, not yet fitted, the attributes to set, and the ``extra``."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no model file {path}.")
    safetensors = _safetensors()
    damage = safetensors.SafetensorError, OSError, RecursionError
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            text = (file.metadata() or {}).get("fairpca")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = _checked_header(text, arrays)
        model = _described_estimator(header)
        attributes = header["attributes"] | arrays
        fault = fault_of(_kinds(model), attributes)
    except (*damage, ValueError, TypeError, AttributeError) as error:
        fault = str(error)[:200]
    if fault is not None:
        raise ValueError(
            f"{path} is damaged or not a fairpca model: {fault}; save the model again, or install "
            f"the fairpca that wrote it (this is {fairpca.__version__})."
        )
    return model, attributes, header["extra"]


def _checked_header(text: str | None, arrays: dict[str, NDArray[Any]]) -> Json:
    header = None
    if text is not None:
        header = json.loads(text)
    if not isinstance(header, dict):
        raise ValueError("the header is missing")
    version = header.get("format_version")
    if version != FORMAT_VERSION:
        raise ValueError(f"it has format version {version!r}, and {FORMAT_VERSION} is known here")
    for name, kind in _HEADER.items():
        if not isinstance(header.get(name), kind):
            raise ValueError(f"{name!r} must be {kind.__name__}, but is {header.get(name)!r:.60}")
    unsigned = {name: value for name, value in header.items() if name != "sha256"}
    if text != _text(header) or header.get("sha256") != _checksum(unsigned, arrays):
        raise ValueError("its checksum does not match")
    return header


def _described_estimator(described: Json) -> Estimator:
    """The estimator of this class, with these parameters."""
    name = described.get("class")
    known = None
    if name in fairpca.__all__:
        known = getattr(fairpca, name)
    elif name in fairpca.BASELINES:
        known = getattr(import_module(fairpca.BASELINES[name]), name)
    if not (isinstance(known, type) and issubclass(known, GroupEstimator)):
        raise ValueError(f"it holds a {name!r:.60}, which is no estimator of this fairpca")
    params = {
        name: _described_estimator(value) if isinstance(value, dict) else value
        for name, value in described.get("params", {}).items()
    }
    model = known(**params)
    model._validate_params()
    return model


def _kinds(model: Estimator) -> dict[str, Kind]:
    """What the arrays and attributes of its file must be."""
    return record_of(model) | {"fill": numbers("d", optional=True)}


def _safetensors() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            "model files need safetensors; install it with pip install safetensors."
        ) from error
    return safetensors
