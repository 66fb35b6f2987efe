"""What the estimators that transform rows have in common."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data

from fairpca._estimators.fitted import GroupRecord
from fairpca._input.rows import as_rows, refuse_non_finite, refusing_overflow
from fairpca._input.stream import refuse_stream, without_named
from fairpca._moments.expected_values import completed_rows
from fairpca._moments.group_moments import Missing
from fairpca._sklearn import TransformerMixin


class Transformer(TransformerMixin, GroupRecord):
    """Scikit-learn's mixin, which refuses to read a stream twice."""

    missing: Missing
    _named: tuple[str, ...]

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit to X, then transform it; arguments are those of ``fit``. Streams are refused."""
        what = "fit_transform, which pipelines call, needs its rows twice"
        refuse_stream(X, what, "call fit, and then transform with the stream opened again")
        return super().fit_transform(X, y, **fit_params)

    def transform(self, X: Any) -> Any:
        """What a row becomes; a subclass defines it."""
        raise NotImplementedError

    def _validate(self, X: Any, may_miss: bool = False) -> Any:
        """Rows as numbers; where values may be missing, expected ones stand in for them."""
        X = without_named(X, self._named)
        allowed = {"accept_sparse": ("csr", "csc"), "dtype": [np.float64, np.float32]}
        with refusing_overflow("X"):
            checked: Any = validate_data(self, X, reset=False, ensure_all_finite=False, **allowed)
        values = checked.data
        if isinstance(checked, np.ndarray):
            values = checked
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()) or np.isfinite(values).all():
                return checked
        if not may_miss or issparse(checked) or np.isinf(values).any():
            refuse_non_finite(as_rows(X))
        return completed_rows(checked, self.mean_, self.covariance_).astype(checked.dtype)
