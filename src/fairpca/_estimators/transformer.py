"""What the estimators that transform rows have in common."""

from typing import Any

from sklearn.base import TransformerMixin

from fairpca._input.stream import refuse_stream


class Transformer(TransformerMixin):  # type: ignore[misc]
    """Scikit-learn's mixin, which refuses to read a stream twice."""

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit to X, then transform it; arguments are those of ``fit``. Streams are refused."""
        what = "fit_transform, which pipelines call, needs its rows twice"
        refuse_stream(X, what, "call fit, and then transform with the stream opened again")
        return super().fit_transform(X, y, **fit_params)
