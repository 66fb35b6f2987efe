"""What is large and what is rounding: errors are compared with the variance."""

from __future__ import annotations

from fairpca._audit.result import Audit

_ROUNDING = 1e-9
_NOTHING_TO_SEE = 1e-4


def unit(audit: Audit) -> float:
    """The size of errors: that of a projection that keeps nothing."""
    return float(audit.group_variances.max())


def lossless(audit: Audit) -> bool:
    """Whether there are so many components that nothing is lost."""
    return audit.pca.overall <= _ROUNDING * unit(audit)


def nearly_equal(audit: Audit, *errors: float) -> bool:
    """Whether these errors differ by less than matters to anyone."""
    return max(errors) - min(errors) <= _NOTHING_TO_SEE * unit(audit)
