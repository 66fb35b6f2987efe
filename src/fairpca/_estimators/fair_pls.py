"""FairPLS: components made for a target, without what tells the groups apart."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from math import inf
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np

from fairpca._estimators.advice import warn_of_target
from fairpca._estimators.blind_pca import TargetedProjection
from fairpca._estimators.fitted import PLSRecord
from fairpca._input.labels import holds_fractions, refuse_counts
from fairpca._input.rows import NumericTarget
from fairpca._moments.group_differences import (
    Notion,
    mean_differences,
    mean_gap,
    spanned,
    strata_of,
    target_of,
)
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.operand import Complement, Operand
from fairpca._moments.small_groups import SettledGroups
from fairpca._problems.problems import PLAIN_PCA, PLSProblem
from fairpca._problems.solution import Solution
from fairpca._sklearn import Interval, StrOptions
from fairpca._solvers import solve
from fairpca._typing import Array


@dataclass(eq=False, repr=False)
class FairPLS(TargetedProjection, PLSRecord):
    """Partial least squares whose scores do not reveal the group.

    PLS looks for directions of large covariance with a target y, where PCA looks for large
    variance. Directions that tell the groups apart are left out, which narrows the gap between the
    groups' selection rates (``"demographic_parity"``) or error rates (``"equalized_odds"``) under a
    classifier on the scores. Equal means do not force equal rates; measure them with
    :func:`fairpca.metrics.classifier_outcomes`. The components are an orthonormal basis of the span
    of the SIMPLS directions [1]_. Fair PLS [2]_ has the same aim, by a term in the objective.

    Attributes not listed below are those of :class:`FairPCA`.

    Parameters
    ----------
    notion : {"demographic_parity", "equal_opportunity", "equalized_odds"} or None, \
            default="demographic_parity"
        As in :class:`BlindPCA`; None is plain PLS.
    max_mean_gap : float, optional
        Allow a ``mean_gap_`` of up to this instead of equal means. Of the projections between
        hidden means and plain PLS within this limit, take the one that explains the target best.
    target_type : {"auto", "classes", "numbers"}, default="auto"
        What y holds. By default, values with fractions, or several columns, count as numbers, and
        anything else as classes. More than 20 different whole numbers are refused, since they may
        be either. In streams and dask arrays, columns of floating-point type count as numbers.
    n_components, pos_label, standardize, relative_errors, whiten
    min_group_size, small_groups
        As in :class:`BlindPCA` and :class:`FairPCA`.

    Attributes
    ----------
    classes_ : list or None
        The classes of y, sorted; None for numbers.
    target_r2_, pls_target_r2_ : float
        Share of the target's variance (for classes, of the variance of their indicators) that a
        linear model of the scores explains, and the same for plain PLS.
    mean_gap_, pls_mean_gap_ : float
        As in :class:`BlindPCA` (with ``notion=None`` for demographic parity); and for plain PLS.
    hidden_directions_ : ndarray of shape (n_hidden, n_features_in_)
        Orthonormal rows: the directions left out; empty with a budget or without a notion.
    alpha_ : float
        1 for plain PLS, 0 where means are hidden, from 0 to 1 with a budget.
    duality_gap_ : float
        NaN: choosing directions one after the other proves nothing.
    status_ : str
        "partial least squares", "group means hidden", "mean gap budget met", or "already fair"
        (plain PLS keeps to the budget and explains the target best).

    See Also
    --------
    BlindPCA : The same without a target.

    References
    ----------
    .. [1] S. de Jong, "SIMPLS: an alternative approach to partial least squares regression", 1993.
    .. [2] E. De-Diego, A. Perez-Suay, P. Gordaliza and J.-M. Loubes, "PLS-based approach for fair
       representation learning", 2025, arXiv 2502.16263.

    Examples
    --------
    A pipeline passes the target on by itself.

    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from fairpca import FairPLS
    >>> from fairpca.datasets import load_rand_health
    >>> people = load_rand_health(prepare=False)
    >>> X, often = people.data[:, 1:], people.data[:, 0] > 1  # visits to a doctor
    >>> pipeline = make_pipeline(FairPLS(2, standardize=True), LogisticRegression())
    >>> pipeline = pipeline.fit(X, often, fairpls__sensitive_features=people.sensitive_features)
    >>> round(pipeline[0].pls_target_r2_, 3), round(pipeline[0].target_r2_, 3)
    (0.076, 0.048)
    """

    _: KW_ONLY
    notion: Notion | None = "demographic_parity"
    max_mean_gap: float | None = None
    target_type: Literal["auto", "classes", "numbers"] = "auto"
    pos_label: Any = None
    relative_errors: bool = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TargetedProjection._parameter_constraints,
        "notion": [*TargetedProjection._parameter_constraints["notion"], None],
        "max_mean_gap": [Interval(Real, 0, None, closed="left"), None],
        "target_type": [StrOptions({"auto", "classes", "numbers"})],
    }

    def _prepared(self, moments: GroupMoments, y: Any) -> GroupMoments:
        if y is not None:
            moments = _with_targets_last(moments, y)
        return super()._prepared(moments, y)

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.max_mean_gap is not None and self.notion is None:
            raise ValueError(
                f"max_mean_gap={self.max_mean_gap} limits the gap between groups, but notion=None "
                "does not say among whom; pass notion='demographic_parity', for example."
            )
        if self.target_type == "numbers" and not self._may_be_numbers():
            raise ValueError(
                f"notion={self.notion!r} compares rows of the same class, but target_type='numbers'"
                " has no classes; pass target_type='classes', or notion='demographic_parity'."
            )

    def _needs_outcomes(self) -> bool:
        return True

    def _check_classes(self, classes: set[Any]) -> None:
        if self.target_type == "auto":
            numbers = ""
            if self._may_be_numbers():
                numbers = "target_type='numbers' for numbers, or "
            refuse_counts(classes, f"pass {numbers}target_type='classes' for classes")

    def _may_be_numbers(self) -> bool:
        return self.notion in (None, "demographic_parity")

    def _are_numbers(self, fractions: Callable[[], bool]) -> bool:
        """Whether y holds numbers, not classes; ``fractions`` looks at its values."""
        if self.target_type == "auto" and self._may_be_numbers():
            return fractions()
        return self.target_type == "numbers"

    def _target(self, y: Any, method: str, before: GroupMoments | None = None) -> Any:
        before = before or GroupMoments()
        if y is None or not (before.n_targets or self._are_numbers(partial(holds_fractions, y))):
            return super()._target(y, method)
        if before.n_features and not before.n_targets:
            raise ValueError(
                "y holds numbers with fractions, but earlier blocks held whole numbers, which were "
                "taken for classes; pass FairPLS(target_type='numbers'), or classes in every block."
            )
        return NumericTarget(y)

    def _warn(self, settled: SettledGroups, result: Solution) -> None:
        super()._warn(settled, result)
        warn_of_target(self.target_r2_, self.pls_target_r2_)

    def _solve_rank(self, settled: SettledGroups, operand: Operand, rank: int) -> Solution:
        if settled.cells is None:
            raise ValueError(
                "FairPLS needs a target, but these moments have none; pass target=y to "
                "GroupMoments.from_data for classes, or name the columns of numbers, "
                "fit(moments, y=-1)."
            )
        target = target_of(settled.cells)
        raw = settled.operand
        notion = self.notion or "demographic_parity"
        differences = mean_differences(strata_of(settled, notion, self.pos_label))
        variance = float(raw.shares @ raw.traces)
        complement = Complement(spanned(differences, variance))
        limit = inf
        if self.notion is not None:
            limit = float(self.max_mean_gap or 0.0)
            if limit == 0.0 or (self.n_components is None and complement.n_features):
                rank = self._rank_left(operand, complement, rank)
        hidden = np.zeros((operand.n_features, 0))
        if limit == 0.0:
            hidden = complement.directions
        plain = PLSProblem(target, differences, complement)
        solution = solve(replace(plain, max_mean_gap=limit), raw, rank)
        pls = solution
        if limit != inf:
            pls = solve(plain, raw, rank)
        pca = solve(PLAIN_PCA, operand, rank)

        def r2(basis: Array) -> float:
            C_U = np.tensordot(raw.shares, raw.products(basis), axes=1)
            return target.explained(basis, basis.T @ C_U, variance)

        return solution.beside(
            pca,
            operand.errors(solution.basis),
            classes_=target.classes,
            target_r2_=r2(solution.basis),
            pls_target_r2_=r2(pls.basis),
            hidden_directions_=hidden.T,
            mean_gap_=mean_gap(differences, solution.basis),
            pls_mean_gap_=mean_gap(differences, pls.basis),
        )


def _with_targets_last(
    moments: GroupMoments, target: str | int | Sequence[str | int]
) -> GroupMoments:
    """The moments with the columns of the target moved to the end."""
    if isinstance(target, (str, int)):
        target = [target]
    named = list(target)
    names = moments.feature_names or []
    d = moments.n_features
    known: dict[str | int, int] = {name: j for j, name in enumerate(names)}
    known |= {j: j % d for j in range(-d, d)}
    unknown = [column for column in named if column not in known]
    if unknown:
        raise ValueError(
            f"y={unknown[0]!r} is not a column of these moments; pass "
            f"{f'one of {names[:8]}, or ' if names else ''}a number from {-d} to {d - 1}."
        )
    columns = [known[column] for column in named]
    features = [j for j in range(d) if j not in columns]
    return moments.select([*features, *columns], n_targets=len(columns))
