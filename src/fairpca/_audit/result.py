"""The result of an audit: all of its figures, as one record and as a plain dict."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields, is_dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from fairpca._audit.about_scores import guess_line, outcomes_lines
from fairpca._audit.figures import (
    Bootstrap,
    Changes,
    CrossValidation,
    Errors,
    FeatureErrors,
    Influence,
    Loadings,
    RankCurve,
    Reading,
    Scores,
)
from fairpca._typing import Array
from fairpca.metrics.rates import Outcomes
from fairpca.path import TradeoffPath

if TYPE_CHECKING:
    from fairpca._audit.representation import Representation


@dataclass(frozen=True, repr=False)
class Audit:
    """What plain PCA does to the groups, and what a fair projection changes.

    Attributes
    ----------
    estimator : str
        The fair estimator, as code.
    parameters : dict of str
        Its parameters by name.
    n_components : int
    standardized : bool
        Whether columns were divided by their standard deviation over all rows (with n - 1).
    feature_names : list of str
    groups : list
        Group labels, sorted.
    group_sizes : list of int
    group_variances : ndarray of shape (k,)
        Average squared distance from the overall mean: the error when no component is kept. 1
        where errors are relative.
    normalized : bool
        Whether errors are relative: divided by the group's own variance.
    weighted : bool
        Whether rows had weights; ``group_sizes`` counts rows regardless.
    compared : list of bool
        False for groups that were left out of the comparison for being small.
    small_groups : list
        Labels of the groups that were merged into "rest", or left out of the comparison.
    privileged_group, harmed_group : label
        The groups that plain PCA treats best and worst.
    pca, fair : Errors
        On the rows fitted to.
    cost : float
        Relative increase of the overall error: 0.01 is one percent.
    status : str
        How the fair fit ended.
    alpha : float
        The weighting at which the fair projection is optimal; NaN where there is none.
    duality_gap : float
        The certificate, as the estimator defines it.
    certified : bool
        Whether no projection can be better by more than the duality gap: it is that of ``FairPCA``
        with the exact solver.
    ranks : RankCurve
    path : TradeoffPath
    loadings : Loadings
    scores : Scores
    feature_errors : FeatureErrors
    cross_validation : CrossValidation or None
        None when there are too few rows to leave some out.
    bootstrap : Bootstrap or None
        Intervals of the disparity; None with ``cross_validation``.
    changes : Changes or None
        What changes for each group on new rows; None with ``cross_validation``.
    other_reading : Reading
        The same projections by shares of variance lost; by absolute errors where ``normalized``.
    influence : Influence or None
        Which rows the disparity hangs on; None with ``cross_validation``.
    representation : Representation or None
        What the scores give away about the group; None with very many features.
    outcomes : list of Outcomes or None
        What a classifier makes of the scores, of PCA's scores and of all features; None without y.
    random_state : int
        Seed of folds, resamples and the sample of scores.
    """

    estimator: str
    parameters: dict[str, Any]
    n_components: int
    standardized: bool
    feature_names: list[str]
    groups: list[Any]
    group_sizes: list[int]
    group_variances: Array
    normalized: bool
    weighted: bool
    compared: list[bool]
    small_groups: list[Any]
    privileged_group: Any
    harmed_group: Any
    pca: Errors
    fair: Errors
    cost: float
    status: str
    alpha: float
    duality_gap: float
    certified: bool
    ranks: RankCurve
    path: TradeoffPath
    loadings: Loadings
    scores: Scores
    feature_errors: FeatureErrors
    cross_validation: CrossValidation | None
    bootstrap: Bootstrap | None
    changes: Changes | None
    other_reading: Reading
    influence: Influence | None
    representation: Representation | None
    outcomes: list[Outcomes] | None
    random_state: int

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain lists, numbers, strings and None, ready for ``json.dump``.

        Without the bases of the points of ``path``, which are many numbers and no figures.
        """
        path = {name: value for name, value in vars(self.path).items() if name != "components"}
        plain: dict[str, Any] = plain_json(vars(self) | {"path": path})
        return plain

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write the page that ``fairpca report`` makes; needs ``pip install "fairpca[cli]"``.

        Without a path the page is returned as text.
        """
        from fairpca.report import render

        return write_page(render(self), path)

    @property
    def about_scores(self) -> list[str]:
        """What the scores give away and what a classifier makes of them, in lines of text."""
        found = self.representation
        pairs = [] if found is None else zip(found.fair.probes, found.pca.probes, strict=True)
        guesses = [guess_line(fair, pca) for fair, pca in pairs]
        return [*guesses, *outcomes_lines(self.outcomes or ())]

    def __repr__(self) -> str:
        from fairpca.report._notebook import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from fairpca.report._notebook import as_html

        return as_html(self)


def plain_json(value: Any) -> Any:
    """The value, or the fields of a dataclass, as JSON can hold them."""
    if is_dataclass(value):
        return {f.name: plain_json(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, np.ndarray):
        return plain_json(value.tolist())
    if isinstance(value, dict):
        return {str(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_json(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None  # JSON has no NaN and no infinity
    return value if value is None or isinstance(value, (bool, int, float, str)) else str(value)


def write_page(page: str, path: str | os.PathLike[str] | None) -> str | None:
    """Write a page to a file; without a path, return it."""
    from fairpca._tables.atomic import replacing

    if path is None:
        return page
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return None
