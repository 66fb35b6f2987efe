"""Scorers for scikit-learn's cross-validation and searches."""

from __future__ import annotations

from typing import Any

from sklearn.utils.metadata_routing import MetadataRequest

from fairpca.exceptions import warn
from fairpca.metrics.projection import seen_by_projection
from fairpca.metrics.reconstruction import group_reconstruction_errors, reconstruction_disparity

_NEXT_TO_NOTHING = 1e-3  # of a group's variance


class DisparityScorer:
    """Minus the disparity of reconstruction errors, so that greater is better.

    For ``scoring=`` of ``cross_validate``, ``GridSearchCV`` and others, with metadata routing
    enabled. It asks for ``sensitive_features`` and ``sample_weight`` by itself. The estimator may
    be a pipeline: the disparity is that of the projection in it, on the rows as they arrive there.
    A projection that loses next to nothing has no disparity, fair or not, so a search over
    ``n_components`` would end at all of them; there is a warning. Search with a fixed
    number, or let another score choose it. ``fairpca.metrics.disparity_scorer`` is ready to use.

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
        projection, seen = seen_by_projection(estimator, X)
        given = (projection, seen, sensitive_features)
        D = reconstruction_disparity(*given, sample_weight=sample_weight)
        lost = group_reconstruction_errors(*given, sample_weight=sample_weight, normalize=True)
        if max(lost.values()) <= _NEXT_TO_NOTHING:
            warn(
                "this projection loses next to nothing of any group, so its disparity is next to "
                "nothing too, fair or not, and a search over n_components ends there. Search with "
                "a fixed n_components, or let another score choose it: scoring={'R2': 'r2', "
                "'disparity': disparity_scorer}, refit='R2'.",
                UserWarning,
            )
        return -D

    def get_metadata_routing(self) -> MetadataRequest:
        """What scikit-learn is to pass on."""
        request = MetadataRequest(owner="disparity_scorer")
        for name in ("sensitive_features", "sample_weight"):
            request.score.add_request(param=name, alias=True)
        return request

    def __repr__(self) -> str:
        return "disparity_scorer"


disparity_scorer = DisparityScorer()
