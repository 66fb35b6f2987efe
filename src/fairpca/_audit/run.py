"""An audit step by step: one set of folds, the fits, and the figures that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from fairpca._audit.dealt import Dealt
from fairpca._audit.figures import Bootstrap, CrossValidation, FeatureErrors, Loadings, Scores
from fairpca._audit.fits import (
    FEWEST_FOLDS,
    Fits,
    chooses_by_folds,
    fit_both,
    fit_fair,
    most_folds,
    recommended,
    settle,
    small_group_parameters,
)
from fairpca._audit.intervals import Resampling
from fairpca._audit.new_rows import FAIR, PCA, NewRows, can_judge, cross_fitted
from fairpca._audit.rank_curve import rank_curve
from fairpca._audit.readings import other_reading
from fairpca._audit.representation import outcomes, representation
from fairpca._audit.result import Audit
from fairpca._audit.rows import AuditedRows
from fairpca._audit.sampling import SampledRows
from fairpca._estimators.base import FairProjection
from fairpca._estimators.fair_pca import FairPCA
from fairpca._input.checks import check_integer
from fairpca._moments.folds import check_folds_of
from fairpca._moments.group_moments import GroupMoments
from fairpca._progress import Progress, silent
from fairpca._typing import Array, Labels
from fairpca.exceptions import quietly
from fairpca.path import TradeoffPath, tradeoff_path


@dataclass(frozen=True)
class AuditSettings:
    """Parameters of :func:`audit` that are not data."""

    standardize: bool = True
    ranks: Sequence[int] | None = None
    n_points: int = 41
    n_folds: int = 10
    n_resamples: int = 2000
    level: float = 0.95
    n_scores: int = 600
    random_state: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise ValueError(
                f"level={self.level}: pass a confidence level between 0 and 1, such as 0.95."
            )
        check_integer("n_folds", self.n_folds, 2)
        check_integer("n_scores", self.n_scores, 1)
        # Fewer resamples do not have a quantile at this level.
        check_integer("n_resamples", self.n_resamples, ceil(1 / (1 - self.level)))


def run_audit(
    rows: AuditedRows,
    estimator: FairProjection | None,
    settings: AuditSettings,
    progress: Progress = silent,
    y: Labels | None = None,
    pos_label: Any = None,
    probes: bool = False,
) -> Audit:
    """:func:`audit` of rows in memory or in files; y only with rows in memory."""
    rng = np.random.default_rng(settings.random_state)
    if not isinstance(estimator, FairProjection):
        estimator = recommended(
            estimator, rows.moments, settings.n_folds, standardize=settings.standardize
        )
    data = _dealt(rows, estimator, settings, progress)
    moments, scale = data.moments, data.scale
    progress("fitting")
    fits = fit_both(data.estimator, moments, data.by_fold)
    progress("following the trade-off")
    path = _trace_path(fits, settings.n_points)
    curve = rank_curve(moments, fits.fair, settings.ranks, progress, fits.settled)
    judged = dict.fromkeys(("cross_validation", "bootstrap", "changes", "influence"))
    new = None
    if data.dealt is not None and can_judge(data.dealt, fits.fair.n_components_):
        new = cross_fitted(rows, fits, scale, data.dealt, progress)
        judged = _judged(new, len(data.dealt.keys), settings, rng, progress)
    sample = rows.sample(fits.settled, settings.n_scores, rng, progress)
    fair, settled, R = fits.fair, fits.settled, fits.fair.pca_reconstruction_error_
    progress("probing the scores")
    how = settings.level, settings.random_state
    return Audit(
        estimator=repr(fair),
        parameters=fair.get_params(),
        n_components=fair.n_components_,
        standardized=settings.standardize,
        feature_names=rows.feature_names,
        groups=settled.moments.groups.tolist(),
        group_sizes=fair.group_sizes_.tolist(),
        group_variances=settled.operand.traces / fits.divisors,
        normalized=fair.normalize,
        weighted=rows.weighted,
        compared=settled.compared.tolist(),
        small_groups=settled.small,
        privileged_group=fair.privileged_group_,
        harmed_group=fair.harmed_group_,
        pca=fits.errors(fair.pca_group_errors_, R),
        fair=fits.errors(fair.group_errors_, fair.reconstruction_error_),
        cost=fair.reconstruction_error_ / R - 1.0 if R > 0 else 0.0,
        status=fair.status_,
        alpha=float(fair.alpha_),
        duality_gap=float(fair.duality_gap_),
        certified=isinstance(fair, FairPCA) and fair.solver == "exact",
        ranks=curve,
        path=path,
        loadings=Loadings(fits.pca.components_ * fits.signs[:, None], fair.components_),
        scores=_score_sample(fits, sample, scale),
        feature_errors=FeatureErrors(fits.feature_errors(fits.pca), fits.feature_errors(fair)),
        other_reading=other_reading(fits, new),
        **judged,
        representation=representation(fits, rows, scale, probes, y, *how),
        outcomes=None if y is None else outcomes(fits, rows, scale, y, pos_label, *how),
        random_state=settings.random_state,
    )


def fit_as_audited(
    rows: AuditedRows,
    estimator: FairProjection,
    settings: AuditSettings,
    progress: Progress = silent,
) -> tuple[FairProjection, Array | None]:
    """The fair projection that :func:`run_audit` judges, and what columns are divided by.

    With the warnings of a fit, which an audit puts into words of its own.
    """
    data = _dealt(rows, estimator, settings, progress)
    return fit_fair(data.estimator, data.moments, data.by_fold)[0], data.scale


class _Data(NamedTuple):
    """What is fitted to, and by which estimator; without folds if a group has too few rows."""

    estimator: FairProjection
    moments: GroupMoments
    scale: Array | None
    dealt: Dealt | None
    by_fold: GroupMoments | None


def _dealt(
    rows: AuditedRows, estimator: FairProjection, settings: AuditSettings, progress: Progress
) -> _Data:
    """The data with one set of folds, by which the estimator chooses and is judged."""
    moments, scale = rows.moments, None
    if settings.standardize:
        moments, scale = moments.standardize()
    settled = settle(estimator, rows.moments)
    if not chooses_by_folds(estimator):
        folds = most_folds(settled, settings.n_folds)
        dealt = rows.deal(settled, folds, settings.random_state, progress) if folds else None
        return _Data(estimator, moments, scale, dealt, None)
    estimator = clone(estimator)
    given: dict[str, Any] = estimator.get_params()
    if given["random_state"] is None:
        given["random_state"] = settings.random_state
        estimator.set_params(random_state=settings.random_state)
    dealt = rows.deal(settled, given["cv"], given["random_state"], progress)
    if dealt.fewest_folds < FEWEST_FOLDS:
        raise ValueError(
            f"cv={given['cv']} has repeats of {dealt.fewest_folds} folds. An audit leaves out one "
            "fold to judge the choice that is made by the others, so it needs three or more; pass "
            "for example cv=10, or RepeatedStratifiedKFold(n_splits=5)."
        )
    by_fold = dealt.by_fold(settled.moments.groups.tolist(), scale)
    check_folds_of(replace(settled, by_fold=by_fold), given["cv"])
    return _Data(estimator, moments, scale, dealt, by_fold)


def _trace_path(fits: Fits, n_points: int) -> TradeoffPath:
    """The frontier at the rank of the audit; on held-out rows too where there are folds."""
    fair, by_fold = fits.fair, fits.settled.by_fold
    with quietly():
        return tradeoff_path(
            fair._features_of(fair.moments_) if by_fold is None else by_fold,
            n_components=fair.n_components_,
            n_points=n_points,
            normalize=fair.normalize,
            cv=None if by_fold is None else getattr(fair, "cv", None),
            **small_group_parameters(fair),
        )


def _judged(
    new: NewRows,
    n_folds: int,
    settings: AuditSettings,
    rng: np.random.Generator,
    progress: Progress,
) -> dict[str, Any]:
    """The figures about new rows, by their names in :class:`Audit`."""
    intervals = []
    for method in (PCA, FAIR):  # by the same resamples: equal errors have equal intervals
        progress("resampling", method / 3)
        how = Resampling(settings.level, settings.n_resamples, deepcopy(rng))
        intervals.append(new.disparity_interval(method, how))
    progress("resampling", 2 / 3)
    return {
        "cross_validation": CrossValidation(n_folds, new.errors(PCA), new.errors(FAIR)),
        "bootstrap": Bootstrap(settings.level, settings.n_resamples, *intervals),
        "changes": new.changes(Resampling(settings.level, settings.n_resamples, rng)),
        "influence": new.influence(),
    }


def _score_sample(fits: Fits, sample: SampledRows, scale: Array | None) -> Scores:
    """Scores of sampled rows on the first two components."""
    X, pca, fair = sample.values / (1.0 if scale is None else scale), fits.pca, fits.fair
    return Scores(
        sample.rows,
        sample.codes,
        ((X - pca.mean_) @ pca.components_[:2].T) * fits.signs[:2],
        (X - fair.mean_) @ fair.components_[:2].T,
    )
