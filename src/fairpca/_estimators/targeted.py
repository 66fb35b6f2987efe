"""What BlindPCA and FairPLS share: projections that know outcomes as well as groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from fairpca._estimators.base import FairProjection, Learnt
from fairpca._input.joint import NumericTarget
from fairpca._input.labels import first_outcomes, refuse_counts
from fairpca._moments.complement import Complement
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.learn import learn
from fairpca._moments.operand import TINY, Operand
from fairpca._moments.small_groups import SettledGroups
from fairpca._moments.strata import outcomes_in, settled_outcomes, without_outcomes


class TargetedProjection(FairProjection):
    """A projection fitted to the moments of cells, the pairs of a group and an outcome."""

    def fit_files(
        self, paths: Any, *, group: str | Sequence[str], target: str | None = None, **options: Any
    ) -> Self:
        """Find the projection for the rows of files, read once in constant memory.

        Parameters are those of :meth:`GroupMoments.from_files`; ``target`` is the column of y.

        Returns
        -------
        self
        """
        self._check_params()
        return self._fit_files(paths, group, target, options)

    def _fit_files(
        self, paths: Any, group: str | Sequence[str], target: str | None, options: dict[str, Any]
    ) -> Self:
        return self.fit_moments(
            GroupMoments.from_files(paths, group=group, target=target, **options)
        )

    def _learn(self, X: Any, y: Any, groups: Any, sample_weight: Any) -> Learnt:
        return learn(X, groups, sample_weight, self._outcomes(y, "fit"))

    def _update(
        self, moments: GroupMoments, X: Any, y: Any, groups: Any, sample_weight: Any
    ) -> None:
        moments.update(X, groups, sample_weight, self._outcomes(y, "partial_fit"))

    def _features_of(self, moments: Learnt) -> Learnt:
        return without_outcomes(moments)

    def _settle(self, moments: Learnt) -> SettledGroups:
        settled = super()._settle(moments)
        outcomes = settled_outcomes(moments, settled)
        if outcomes is not None and self._needs_outcomes():
            self._check_classes(outcomes_in(outcomes))
        return replace(settled, outcomes=outcomes)

    def _check_classes(self, classes: set[Any]) -> None:
        """Refuse classes that may be meant as numbers."""
        refuse_counts(classes, "pass fewer classes, for example y > threshold")

    def _rank_left(
        self, settled: SettledGroups, operand: Operand, complement: Complement, rank: int
    ) -> int:
        """The rank, which must not exceed what hiding leaves."""
        d, left = operand.n_features, complement.n_features
        if self.n_components is None and left:
            return min(rank, left)
        if rank <= left:
            return rank
        taken = (
            f"of n_features = {d} directions, hiding the groups takes {d - left} and leaves {left}"
        )
        if isinstance(self.n_components, float):
            lost = operand.errors(complement.lift(np.eye(left)))
            kept = 1 - lost / np.maximum(operand.traces, TINY)
            worst = settled.moments.groups.tolist()[kept.argmin()]
            raise ValueError(
                f"n_components={self.n_components} cannot be reached: {taken}, and with all of "
                f"them group {worst!r} keeps {kept.min():.3g} of its variance; pass a smaller "
                "fraction, or the number of components."
            )
        fewer = f"pass n_components={left} or less" if left else "pass more features"
        raise ValueError(
            f"n_components={self.n_components} is too many: {taken}; {fewer}, or hide less: "
            f"{self._hide_less()}."
        )

    def _hide_less(self) -> str:
        """What leaves more directions, for a message."""
        return "fewer groups, another notion, or a gap that is allowed, max_mean_gap=0.1 say"

    def _outcomes(self, y: Any, method: str) -> Any:
        """The y to learn from, classes or numbers; None where there is no use for it."""
        if not self._needs_outcomes():
            return None
        if y is None:
            raise ValueError(
                f"{self!r} requires y to be passed, but the target y is None; pass "
                f"{method}(X, y, sensitive_features=groups) with the class of each row."
            )
        if self._are_numbers(y):
            return NumericTarget(y)
        self._check_classes(first_outcomes(y))  # before there is a matrix for each of them
        return y

    def _are_numbers(self, y: Any) -> bool:
        """Whether y is a target of numbers, not of classes."""
        return False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_outcomes()
        return tags
