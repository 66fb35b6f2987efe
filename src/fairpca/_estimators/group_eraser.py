"""GroupEraser: the least change after which no linear model can tell the groups apart."""

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from fairpca._estimators.base import AnyGroups, GroupEstimator, Targeted
from fairpca._estimators.fitted import EraserRecord
from fairpca._input.rows import refusing_overflow
from fairpca._input.stream import is_stream, map_stream
from fairpca._moments.group_differences import Notion, mean_differences, spanned, strata_of
from fairpca._moments.small_groups import SettledGroups
from fairpca._moments.tolerances import EPS, TINY
from fairpca._sklearn import Interval, OneToOneFeatureMixin
from fairpca._typing import Array

_Erasure = tuple[Array, Array, Array]  # detectors, corrections and differences of the means


@dataclass(eq=False, repr=False)
class GroupEraser(OneToOneFeatureMixin, AnyGroups, Targeted[_Erasure], EraserRecord):
    r"""Change the data as little as possible, so that no linear model can tell the groups apart.

    With C the covariance of all rows, :math:`W = C^{-1/2}` and P the projector onto the whitened
    differences :math:`W (m_g - m)` of the group means, rows become

    .. math:: x - t\, W^+ P W (x - m),

    with the strength t = 1 by default. This is LEACE [1]_: of all affine maps that make the group
    means equal, it changes the rows least, in every Euclidean or Mahalanobis norm at once. Then no
    linear classifier, with any convex loss, does better than a constant guess. The dimension and
    the columns stay, and ``transform`` needs no groups.

    Only what is linear is erased: boosted trees, or any other nonlinear model, may still find the
    group. :func:`fairpca.metrics.probe_groups` measures how well; probe other rows than those
    fitted to, whose means are equal by construction, so that guesses are worse than chance.

    Parameters
    ----------
    strength : float in [0, 1], default=1.0
        How much to erase: the share ``1 - strength`` of every difference of means stays.
    notion, pos_label
        As in :class:`BlindPCA`: the rows among which means are made equal.
    min_group_size, small_groups
        As in :class:`FairPCA`; the means of groups that are left out are not hidden.

    Attributes
    ----------
    detectors_, corrections_ : ndarray of shape (n_erased, n_features_in_)
        Rows become ``x - strength * (x - mean_) @ detectors_.T @ corrections_``.
    change_ : float
        Share of the variance that is moved: mean squared change of the standardised columns.
    mean_gap_, raw_mean_gap_ : float
        Variance between the groups' means, ``sum p_g |m_g - m|^2`` of the standardised columns,
        after and before.
    mean_, scale_, groups_, group_sizes_, small_groups_, n_features_in_, feature_names_in_
        As in :class:`FairPCA`.

    See Also
    --------
    BlindPCA : Fewer dimensions and equal group means; the best among orthogonal projections.

    References
    ----------
    .. [1] N. Belrose, D. Schneider-Joseph, S. Ravfogel, R. Cotterell, E. Raff and S. Biderman,
       "LEACE: Perfect linear concept erasure in closed form", NeurIPS 2023.

    Examples
    --------
    >>> from fairpca import GroupEraser
    >>> from fairpca.datasets import load_checkup
    >>> people = load_checkup()
    >>> eraser = GroupEraser().fit(people.data, sensitive_features=people.sensitive_features)
    >>> round(eraser.raw_mean_gap_, 3), round(eraser.mean_gap_, 3), round(eraser.change_, 3)
    (0.163, 0.0, 0.068)
    >>> eraser.transform(people.data).shape == people.data.shape
    True
    """

    #: The map does not depend on the units; standardised columns lose the fewest digits.
    standardize: ClassVar[bool] = True  # type: ignore[misc]

    _: KW_ONLY
    strength: float = 1.0
    notion: Notion = "demographic_parity"
    pos_label: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GroupEstimator._parameter_constraints,
        "strength": [Interval(Real, 0, 1, closed="both")],
    }

    def _solve(self, settled: SettledGroups) -> _Erasure:
        operand = settled.operand.compact
        frame = settled.operand.frame
        d = settled.operand.n_features
        differences = mean_differences(strata_of(settled, self.notion, self.pos_label))
        values, V = np.linalg.eigh(np.tensordot(operand.shares, operand.dense_matrices, axes=1))
        varying = values > d * EPS * values[-1]
        V = V[:, varying]
        roots = np.sqrt(values[varying])
        if frame is not None:
            V = frame.expand(V)
        Q = spanned(differences @ V / roots, 1.0)
        return (V / roots @ Q).T, (V * roots @ Q).T, differences

    def _set_result(self, settled: SettledGroups, result: _Erasure) -> None:
        detectors, corrections, differences = result
        total = float(settled.operand.shares @ settled.operand.traces)
        self.detectors_ = detectors / self.scale_
        self.corrections_ = corrections * self.scale_
        self.change_ = float(self.strength**2 * (corrections**2).sum() / max(total, TINY))
        self.raw_mean_gap_ = float((differences**2).sum())
        left = differences - self.strength * differences @ detectors.T @ corrections
        self.mean_gap_ = float((left**2).sum())

    def transform(self, X: Any) -> Any:
        """Remove from X what tells the groups apart.

        Parameters
        ----------
        X : {array, sparse matrix, data frame} of shape (n_samples, n_features), or stream

        Returns
        -------
        ndarray of the same shape, dense, or a data frame after ``set_output``
            For a stream, a reader of its columns that are no features, then of these.
        """
        fitted = self._ready()
        if is_stream(X):
            return map_stream(fitted, X)
        given = fitted._validate(X)
        with refusing_overflow("X"):
            rows: Array = given
            if hasattr(given, "toarray"):
                rows = given.toarray()
            detected = (rows - fitted.mean_) @ fitted.detectors_.T
            erased = fitted.strength * detected @ fitted.corrections_
            return np.asarray(rows - erased, dtype=rows.dtype)
