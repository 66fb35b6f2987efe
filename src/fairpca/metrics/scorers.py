"""Scorers for scikit-learn's cross-validation and searches."""

from __future__ import annotations

from typing import Any

from sklearn.utils.metadata_routing import MetadataRequest

from fairpca.metrics.reconstruction import reconstruction_disparity


class DisparityScorer:
    """Minus the disparity of reconstruction errors, so that greater is better.

    For ``scoring=`` of ``cross_validate``, ``GridSearchCV`` and others, with metadata routing
    enabled. It asks for ``sensitive_features`` and ``sample_weight`` by itself. The estimator may
    be a pipeline: the disparity is that of the projection in it, on the rows as they arrive there.
    ``fairpca.metrics.disparity_scorer`` is ready to use.

    Examples
    --------
    >>> import sklearn
    >>> from sklearn.model_selection import cross_validate
    >>> from fairpca import FairPCA
    >>> from fairpca.datasets import load_rand_health
    >>> from fairpca.metrics import disparity_scorer
    >>> people = load_rand_health()
    >>> groups = {"sensitive_features": people.sensitive_features}
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     plain, fair = (
    ...         cross_validate(model, people.data, scoring=disparity_scorer, params=groups)
    ...         for model in (FairPCA(8, alpha=1), FairPCA(8))
    ...     )
    >>> bool(fair["test_score"].mean() > plain["test_score"].mean())
    True
    """

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: Any = None,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> float:
        """Score a fitted estimator on these rows."""
        if sensitive_features is None:
            raise ValueError(
                "sensitive_features is missing: disparity_scorer needs one group label per row. "
                "Enable metadata routing with sklearn.set_config(enable_metadata_routing=True) and "
                "pass cross_validate(..., params={'sensitive_features': groups}), or "
                "search.fit(X, y, sensitive_features=groups)."
            )
        return -reconstruction_disparity(
            estimator, X, sensitive_features, sample_weight=sample_weight
        )

    def get_metadata_routing(self) -> MetadataRequest:
        """What scikit-learn is to pass on."""
        request = MetadataRequest(owner="disparity_scorer")
        for name in ("sensitive_features", "sample_weight"):
            request.score.add_request(param=name, alias=True)
        return request

    def __repr__(self) -> str:
        return "disparity_scorer"


disparity_scorer = DisparityScorer()
