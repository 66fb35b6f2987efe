"""What scikit-learn keeps private, in one place: what to mend when a release moves it.

It also has no types, and a base class without types hides mistakes in the arguments of a class
derived from it. Type checkers read the stand-ins below.
"""

from typing import TYPE_CHECKING, Any, Self

from sklearn.decomposition import PCA
from sklearn.utils import _safe_indexing as safe_indexing
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import _num_samples as num_samples

if TYPE_CHECKING:

    class BaseEstimator:
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def set_fit_request(self, **requests: bool | str | None) -> Self: ...
        def _validate_params(self) -> None: ...
        def __sklearn_tags__(self) -> Any: ...

    class TransformerMixin:
        def __sklearn_tags__(self) -> Any: ...
        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...

    class _NamedFeatures:
        def get_feature_names_out(self, input_features: Any = None) -> Any: ...

    class ClassNamePrefixFeaturesOutMixin(_NamedFeatures): ...

    class OneToOneFeatureMixin(_NamedFeatures): ...

    class SelectorMixin(_NamedFeatures):
        def get_support(self, indices: bool = False) -> Any: ...
        def transform(self, X: Any) -> Any: ...

else:
    from sklearn.base import (
        BaseEstimator,
        ClassNamePrefixFeaturesOutMixin,
        OneToOneFeatureMixin,
        TransformerMixin,
    )
    from sklearn.feature_selection import SelectorMixin

__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "Interval",
    "OneToOneFeatureMixin",
    "RealNotInt",
    "SelectorMixin",
    "StrOptions",
    "TransformerMixin",
    "num_samples",
    "safe_indexing",
    "with_solver",
]


def with_solver(pca: PCA) -> PCA:
    """A PCA whose attributes were set by hand, as ``transform`` finds it after a fit."""
    pca._fit_svd_solver = "full"
    return pca
