"""Projections that know outcomes as well as groups: what the two share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

from fairpca._estimators.base import FairProjection, Learnt
from fairpca._moments.group_moments import GroupMoments
from fairpca._moments.learn import learn
from fairpca._moments.small_groups import SettledGroups
from fairpca._moments.strata import settled_cells, without_outcomes


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
        settled = replace(settled, cells=settled_cells(moments, settled))
        if settled.cells is None and self._needs_outcomes():
            raise ValueError(
                f"{self!r} compares people of the same outcome, but these moments do not know the "
                "outcomes; pass y to fit, or target to fit_files and to the methods of "
                "GroupMoments, for example GroupMoments.from_data(X, groups, target=y)."
            )
        return settled

    def _outcomes(self, y: Any, method: str) -> Any:
        """The y to learn from: None where there is no use for it."""
        if not self._needs_outcomes():
            return None
        if y is None:
            raise ValueError(
                f"{self!r} requires y to be passed, but the target y is None; pass "
                f"{method}(X, y, sensitive_features=groups) with the class of each row."
            )
        return y

    def _needs_outcomes(self) -> bool:
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self._needs_outcomes()
        return tags
