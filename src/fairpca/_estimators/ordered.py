"""Components in an order in which every prefix is fair, and what each prefix costs."""

from dataclasses import KW_ONLY, dataclass, replace
from math import nan
from typing import Any, ClassVar, Literal

import numpy as np
from sklearn.base import clone

from fairpca._estimators.base import FairProjection
from fairpca._estimators.fitted import OrderedRecord
from fairpca._input.checks import check_integer
from fairpca._linear_map import with_signs
from fairpca._moments.operand import Operand
from fairpca._moments.small_groups import SettledGroups
from fairpca._moments.tolerances import TINY
from fairpca._problems.solution import Solution
from fairpca._problems.status import Status
from fairpca._sklearn import StrOptions
from fairpca._solvers.prefixes import fair_order
from fairpca._typing import Array


@dataclass(eq=False, repr=False)
class OrderedProjection(FairProjection, OrderedRecord):
    """Base of the estimators whose components can be ordered by fairness instead of variance."""

    _: KW_ONLY
    order: Literal["variance", "fair"] = "variance"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FairProjection._parameter_constraints,
        "order": [StrOptions({"variance", "fair"})],
    }

    def _validate_params(self) -> None:
        super()._validate_params()
        if self.order == "variance":
            return
        for name, wanted in {"whiten": False, **self._wanted_by_fair_order()}.items():
            if getattr(self, name) != wanted:
                raise ValueError(
                    f"order='fair' does not go with {name}={getattr(self, name)!r}; pass "
                    f"{name}={wanted!r}, or order='variance'."
                )

    # -- what a subclass may define ----------------------------------------------------------------

    def _wanted_by_fair_order(self) -> dict[str, Any]:
        """Parameters that ``order="fair"`` works with, and their values."""
        return {}

    def _prefix_estimator(self, rank: int) -> "OrderedProjection":
        """The estimator, not fitted, whose result with so many components a prefix stands for."""
        estimator: OrderedProjection = clone(self)
        estimator.n_components = rank
        return estimator

    def _offsets(self, measured: Operand, best: Solution) -> Array:
        """What the error of each group is compared with; ``best`` solves for the same rank."""
        return np.zeros(len(measured.shares))

    # -- publishing --------------------------------------------------------------------------------

    def _components(self, settled: SettledGroups, result: Solution) -> tuple[Array, Array]:
        if self.order == "variance" or result.status is Status.NO_GAIN:
            return super()._components(settled, result)
        basis = result.basis
        if result.status is not Status.PREFIX:
            problem = self._prefix_estimator(basis.shape[1])._problem()
            basis = fair_order(problem, self._measured(settled), basis, self.tol)
        components = with_signs(basis.T)
        C_U = np.tensordot(settled.operand.shares, settled.operand.products(components.T), axes=1)
        n = settled.moments.n_rows
        covariance = components @ C_U
        self.score_covariance_ = covariance * n / max(n - 1, 1)
        return components, np.maximum(np.diagonal(covariance), 0.0)

    def _axes(self) -> tuple[Array, Array]:
        if not hasattr(self, "score_covariance_"):
            return super()._axes()
        variances, directions = np.linalg.eigh(self.score_covariance_)
        return directions.T @ self.components_, np.maximum(variances, 0.0)

    # -- prefixes ----------------------------------------------------------------------------------

    @property
    def prefix_gaps_(self) -> Array:
        """What each prefix costs; see :class:`FairPCA`."""
        fitted = self._ordered()
        settled = fitted._prefix_estimator(1)._settle(fitted.moments_)
        measured = fitted._measured(settled)
        gaps = []
        for rank in range(1, fitted.n_components_ + 1):
            best = fitted._prefix_estimator(rank)._solve(settled)
            prefix = fitted._prefix(settled, best, rank)
            largest = float(measured.errors(best.basis)[measured.compared].max())
            gaps.append(max(prefix.gap, 0.0) / max(largest, TINY))
        return np.array(gaps)

    def truncated(self, n_components: int) -> "OrderedProjection":
        """The first components, as a fitted estimator with figures of its own.

        Parameters
        ----------
        n_components : int
            How many, at most ``n_components_``.

        Returns
        -------
        estimator
            Of the same class, but a :class:`FairPCA` for :class:`FairPCACV`, whose held-out figures
            are about all components. Its ``duality_gap_`` is the distance from the best possible
            projection of this rank, and ``status_`` is "prefix of a fair order".
        """
        fitted = self._ordered()
        check_integer("n_components", n_components, 1)
        if n_components > fitted.n_components_:
            raise ValueError(
                f"n_components={n_components}, but {type(self).__name__} has "
                f"{fitted.n_components_}; pass an integer from 1 to {fitted.n_components_}."
            )
        first = fitted._prefix_estimator(n_components)
        settled = first._settle(fitted.moments_)
        prefix = fitted._prefix(settled, first._solve(settled), n_components)
        unfitted = first._unfitted()
        unfitted._copy_columns(fitted)
        return first._publish(unfitted, fitted.moments_, settled, prefix)

    def _ordered(self) -> "OrderedProjection":
        """The fitted estimator; refused are other orders, and fits without moments."""
        fitted = self._ready()
        name = type(self).__name__
        if self.order != "fair":
            raise AttributeError(
                f"the first components of {name}(order='variance') are not fair by themselves; "
                f"fit {name}(order='fair')."
            )
        if not hasattr(fitted, "moments_"):
            raise AttributeError(
                f"this {name} has no moments (it was loaded, or fitted to very many features at "
                "once), which its prefixes are judged by; fit it again, for example to "
                "GroupMoments."
            )
        return fitted

    def _prefix(self, settled: SettledGroups, best: Solution, rank: int) -> Solution:
        """The first components, certified by the best solution of this rank."""
        measured = self._measured(settled)
        basis = self.components_[:rank].T
        excess = measured.errors(basis) - self._offsets(measured, best)
        return replace(
            best,
            basis=basis,
            errors=settled.measured(self.relative_errors).errors(basis),
            status=Status.PREFIX,
            value=float(excess[measured.compared].max()),
            alpha=nan,
        )
