"""What the sums over the rows of each group tell: sizes, means, variances, second moments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca._input.checks import check_group_weights
from fairpca._moments.buffer import Gathered
from fairpca._moments.few_rows import FewRows
from fairpca._moments.operand import Operand
from fairpca._moments.sums import Sums
from fairpca._typing import Array, Center, Labels, Mask

_NOTHING = Gathered(Sums.combined(0, 0, []))


class GroupStatistics:
    """Sums over the rows of each group and what follows from them; subclasses say how they grow."""

    def __init__(self) -> None:
        self.groups: Labels = np.empty(0, dtype=object)
        self.n_features: int = 0
        self.feature_names: list[str] | None = None
        self.n_dropped: int = 0
        self.n_targets: int = 0
        self._gathered = _NOTHING
        self._n_seen: int = 0  # rows, those of weight zero too

    @property
    def _total(self) -> Sums | FewRows:
        """The sums of all rows."""
        if self._gathered.n_rows:
            self._gathered = self._gathered.settled()
        return self._gathered.total

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: sums, but no rows."""
        total = self._total
        hidden = total.mixed() if isinstance(total, FewRows) else total
        return vars(self) | {"_gathered": Gathered(hidden)}

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of rows of each group with a positive weight."""
        return self._total.rows.copy()

    @property
    def weights(self) -> Array:
        """Total weight of each group; equal to ``counts`` when nothing is weighted."""
        return self._total.weights.copy()

    @property
    def means(self) -> Array:
        """Weighted mean of each group, of shape (k, n_features)."""
        total = self._weighted()
        return total.shifts + total.from_shifts

    @property
    def mean(self) -> Array:
        """Weighted mean over all rows."""
        return self._weighted().mean

    @property
    def from_mean(self) -> Array:
        """Group means seen from the overall mean, where a large offset cannot round them."""
        return self._weighted().from_mean.copy()

    def second_moments(self, center: Center = "overall") -> Array:
        """``C_g`` of every group, of shape (k, n_features, n_features).

        Parameters
        ----------
        center : {"overall", "group"}
            About the overall mean (the paper's choice) or about each group's own mean.

        Returns
        -------
        ndarray of shape (k, n_features, n_features)
        """
        self._refuse_single_rows(center)
        return self._with_center(center).second_moments(center)

    def operand(self, center: Center = "overall", compared: Mask | None = None) -> Operand:
        """The second moments as a solver wants them, and which groups it is to compare.

        A group of one row cannot be compared about its own mean. Its variance there is zero, which
        is right for a sum that adds the distance of the mean, so it is refused only if groups are
        ``compared``.
        """
        if compared is not None:
            self._refuse_single_rows(center)
        return self._with_center(center).operand(center, compared)

    def variances(self) -> tuple[Array, Array]:
        """Of each column: about the group means, and of the group means about the overall mean."""
        return self._weighted().variances()

    @property
    def varying(self) -> Mask:
        """Which columns vary."""
        return self._deviations() > 0

    def _deviations(self) -> Array:
        """Standard deviation of each column over all rows, with n - 1; 0 where it is rounding."""
        total = self._weighted()
        n, variances = int(total.rows.sum()), np.add(*self.variances())
        std = np.sqrt(np.maximum(variances * n / max(n - 1, 1), 0.0))
        return np.where(std > 1e-14 * np.abs(total.mean), std, 0.0)

    def _with_center(self, center: Center) -> Sums | FewRows:
        """The sums, once this is known to be a centre."""
        if center not in ("overall", "group"):
            raise ValueError(f"center must be 'overall' or 'group', got {center!r}.")
        return self._weighted()

    def _refuse_single_rows(self, center: Center) -> None:
        """Refuse groups that have no variance about their own mean, where that is asked for."""
        alone = self._weighted().rows == 1
        if center == "group" and alone.any():
            raise ValueError(
                f"groups {self.groups[alone].tolist()} have a single row, hence no variance about "
                "their own mean; use center='overall', or merge these groups with others."
            )

    def _weighted(self) -> Sums | FewRows:
        """The sums, once every group is known to weigh something."""
        if not self.n_features:
            raise ValueError("these GroupMoments are empty; add rows with update(X, groups).")
        check_group_weights(self.groups, self._total.weights)
        return self._total
