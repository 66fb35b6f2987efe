"""The fitted record: what each estimator publishes, declared once.

An estimator inherits a class of this module, whose annotations hold the type of each attribute and
its :class:`Kind`. Model files are checked against them, type checkers read them, and tests compare
the docstrings with them. Letters stand for the lengths of axes:

======  ==================================================================
letter  length
======  ==================================================================
d       features
k       groups
r       components, or columns that are kept
h       directions that are hidden or erased
2       the ends of an interval
======  ==================================================================
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import get_annotations
from typing import Annotated, Any, Literal

import numpy as np

from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.tolerances import SAFE_TO_SQUARE
from fairpca._typing import Array, Codes, Label, Labels


@dataclass(frozen=True)
class Kind:
    """What an attribute holds, and how a model file stores it."""

    words: str  # what is asked for, to complete a sentence
    holds: Callable[[Any], bool]  # whether a value of a model file is of this kind
    axes: str = ""  # a letter for each axis
    below: str = ""  # the axis that the values count along, from 0
    stored: Literal["array", "labels", "json", "never"] = "json"
    optional: bool = False
    given: tuple[tuple[str, Any], ...] = ()  # parameters with which there is such an attribute

    def shape(self, sizes: Mapping[str, int]) -> str:
        """The shape that is asked for, with a letter where a length is not known."""
        return "(" + ", ".join(str(sizes.get(axis, axis)) for axis in self.axes) + ")"


def fault_of(declared: Mapping[str, Kind], found: Mapping[str, Any]) -> str | None:
    """The first fault of the content of a model file, in words; None if there is none."""
    unknown = found.keys() - declared
    if unknown:
        return f"{min(unknown)!r:.60} is not an attribute of this estimator"
    sizes = {"2": 2}
    for name, kind in declared.items():
        if name not in found:
            if kind.optional:
                continue
            return f"{name} is missing"
        value = found[name]
        if not kind.holds(value):
            return f"{name!r} must be {kind.words}, but is {value!r:.60}"
        if not kind.axes:
            continue
        lengths = _lengths(value)
        for axis, length in zip(kind.axes, lengths, strict=False):
            sizes.setdefault(axis, length)
        if lengths != [sizes.get(axis) for axis in kind.axes]:
            return f"{name} must be an array of shape {kind.shape(sizes)}, but is {value!r:.60}"
        if kind.below and not all(0 <= place < sizes[kind.below] for place in value):
            return f"{name} must be numbers from 0 to {sizes[kind.below] - 1}, but is {value!r:.60}"
    return None


def declared_by(estimator: type) -> dict[str, Kind]:
    """What estimators of this class publish: names and kinds, those of lengths first."""
    found: dict[str, Kind] = {}
    for kin in reversed(estimator.__mro__):
        for name, hint in get_annotations(kin).items():
            for part in getattr(hint, "__metadata__", ()):
                if isinstance(part, Kind):
                    found[name] = part
    return found


def record_of(estimator: Any) -> dict[str, Kind]:
    """What an estimator with these parameters publishes."""
    return {
        name: kind
        for name, kind in declared_by(type(estimator)).items()
        if all(getattr(estimator, parameter) == value for parameter, value in kind.given)
    }


def _lengths(value: Any) -> list[int]:
    """The lengths that a value tells: its shape, or the number that is a length itself."""
    if isinstance(value, int):
        return [value]
    if isinstance(value, list):
        return [len(value)]
    return list(np.shape(value))


# -- kinds -----------------------------------------------------------------------------------------


def numbers(axes: str, *, optional: bool = False, **given: Any) -> Kind:
    """An array of finite numbers; ``given`` are parameters with which there is one."""
    return Kind(
        words=f"finite numbers below {SAFE_TO_SQUARE:g}",
        holds=_finite,
        axes=axes,
        stored="array",
        optional=optional,
        given=tuple(given.items()),
    )


def labels(axes: str) -> Kind:
    """A vector of labels, which a file holds as a list."""
    return Kind("a list of labels", _is_labels, axes, stored="labels")


def never_saved(words: str) -> Kind:
    """What a model file leaves out."""
    return Kind(words, lambda value: False, stored="never", optional=True)


def length(axis: str) -> Kind:
    """A number that is the length of an axis."""
    return Kind("a whole number", _is_whole, axis)


def _finite(value: Any) -> bool:
    """Whether every entry of an array is finite, and its square too."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fi":
        return False
    return bool((np.abs(value) < SAFE_TO_SQUARE).all())


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


def _is_finite_number(value: Any) -> bool:
    return _is_number(value) and abs(value) < SAFE_TO_SQUARE


def _is_whole(value: Any) -> bool:
    return type(value) is int and 0 <= value < SAFE_TO_SQUARE


def _is_label(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float))


def _is_labels(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_label, value))


def _is_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _are_positive(value: Any) -> bool:
    return _finite(value) and bool((value > 1 / SAFE_TO_SQUARE).all())


def _are_orthonormal(value: Any) -> bool:
    if not _finite(value) or value.ndim != 2:
        return False
    return np.allclose(value @ value.T, np.eye(len(value)), rtol=0.0, atol=1e-6)


def _are_places(value: Any) -> bool:
    return _finite(value) and value.dtype.kind == "i" and len(np.unique(value)) == value.size


Number = Annotated[float, Kind("a finite number", _is_finite_number)]
MaybeNaN = Annotated[float, Kind("a number", _is_number)]
Count = Annotated[int, Kind("a whole number", _is_whole)]
Text = Annotated[str, Kind("a string", lambda value: isinstance(value, str))]
GroupLabel = Annotated[Any, Kind("a label", _is_label)]
Interval = Annotated[Array, numbers("2")]
ByGroup = Annotated[Array, numbers("k")]
ByComponent = Annotated[Array, numbers("r")]
ByFeature = Annotated[Array, numbers("d")]

_NAMES = Kind("a list of names", _is_names, "d", stored="labels", optional=True)
_NAMED = Kind("a list of names", _is_names, optional=True)
_POSITIVE = Kind("positive numbers", _are_positive, "d", stored="array")
_ORTHONORMAL = Kind("orthonormal rows", _are_orthonormal, "rd", stored="array")
_HIDDEN = Kind("orthonormal rows", _are_orthonormal, "hd", stored="array")
PLACES = Kind("different whole numbers", _are_places, "r", below="d", stored="array")
_CLASSES = Kind("a list of classes or null", lambda value: value is None or _is_labels(value))


# -- records ---------------------------------------------------------------------------------------


class GroupRecord:
    """What every estimator publishes."""

    n_features_in_: Annotated[int, length("d")]
    feature_names_in_: Annotated[Labels, _NAMES]
    n_samples_: Count
    groups_: Annotated[Labels, labels("k")]
    group_sizes_: Annotated[Codes, numbers("k")]
    small_groups_: Annotated[list[Label], Kind("a list of labels", _is_labels)]
    mean_: ByFeature
    scale_: Annotated[Array, _POSITIVE]
    covariance_: Annotated[Array, numbers("dd", missing="available")]
    clipped_variance_: Annotated[Array, numbers("k", missing="available")]
    _named: Annotated[Sequence[str], _NAMED] = ()  # columns of X that arguments of ``fit`` named
    moments_: Annotated[GroupMoments, never_saved("moments")]


class ProjectionRecord(GroupRecord):
    """What every projection publishes."""

    n_components_: Annotated[int, length("r")]
    components_: Annotated[Array, _ORTHONORMAL]
    explained_variance_: ByComponent
    explained_variance_ratio_: ByComponent
    noise_variance_: Number
    group_errors_: ByGroup
    group_explained_variance_ratio_: ByGroup
    reconstruction_error_: Number
    disparity_: Number
    harmed_group_: GroupLabel
    privileged_group_: GroupLabel
    pca_group_errors_: ByGroup
    pca_reconstruction_error_: Number
    alpha_: MaybeNaN
    duality_gap_: MaybeNaN
    status_: Text
    n_eigensolves_: Count


class OrderedRecord(ProjectionRecord):
    """Of estimators with an ``order``."""

    score_covariance_: Annotated[Array, numbers("rr", optional=True, order="fair")]


class FairPCARecord(ProjectionRecord):
    """Of :class:`FairPCA`."""

    error_gap_: Annotated[float, Kind("a number", _is_number, optional=True)]


class FairPCACVRecord(FairPCARecord):
    """Of :class:`FairPCACV`."""

    stop_: Number
    held_out_group_errors_: ByGroup
    held_out_pca_group_errors_: ByGroup
    held_out_reconstruction_error_: Number
    held_out_disparity_: Number
    held_out_disparity_interval_: Interval
    held_out_changes_: ByGroup
    held_out_changes_interval_: Annotated[Array, numbers("k2")]
    held_out_t_: MaybeNaN
    held_out_largest_change_: MaybeNaN
    held_out_largest_change_interval_: Interval
    worst_case_error_upper_: MaybeNaN


class LossesRecord(ProjectionRecord):
    """Of estimators that make the largest loss of a group as small as possible."""

    group_losses_: ByGroup
    group_weights_: ByGroup


class WelfareRecord(ProjectionRecord):
    """Of :class:`WelfarePCA`."""

    group_explained_variance_: ByGroup
    group_weights_: ByGroup
    welfare_: MaybeNaN


class HidingRecord(ProjectionRecord):
    """Of projections that hide the groups' means."""

    hidden_directions_: Annotated[Array, _HIDDEN]
    mean_gap_: Number


class BlindRecord(HidingRecord):
    """Of :class:`BlindPCA`."""

    pca_mean_gap_: Number


class PLSRecord(HidingRecord):
    """Of :class:`FairPLS`."""

    classes_: Annotated[list[Label] | None, _CLASSES]
    target_r2_: Number
    pls_target_r2_: Number
    pls_mean_gap_: Number


class ColumnsRecord(GroupRecord):
    """Of :class:`FairColumns`."""

    columns_: Annotated[Codes, PLACES]
    rebuild_map_: Annotated[Array, numbers("rd")]
    group_errors_: ByGroup
    reconstruction_error_: Number
    disparity_: Number
    harmed_group_: GroupLabel
    privileged_group_: GroupLabel
    baseline_columns_: Annotated[Codes, PLACES]
    baseline_rebuild_map_: Annotated[Array, numbers("rd")]
    baseline_group_errors_: ByGroup
    lower_bound_: Number
    duality_gap_: MaybeNaN
    status_: Text


class EraserRecord(GroupRecord):
    """Of :class:`GroupEraser`."""

    detectors_: Annotated[Array, numbers("hd")]
    corrections_: Annotated[Array, numbers("hd")]
    change_: Number
    mean_gap_: Number
    raw_mean_gap_: Number
