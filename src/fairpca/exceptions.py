"""Warnings of this library."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "DualityGapWarning",
    "FewRowsWarning",
    "LevellingDownWarning",
    "ParityInfeasibleWarning",
]


class ParityInfeasibleWarning(UserWarning):
    """No projection of this rank has the disparity asked for; the least possible is returned."""


class DualityGapWarning(UserWarning):
    """The projection is not proven to be the best one; the message says how far off it can be."""


class LevellingDownWarning(UserWarning):
    """A group is worse off than under PCA, and no group is better off."""


class FewRowsWarning(UserWarning):
    """One row in a thousand, or a single one, decides which group is worse off under PCA."""


@contextmanager
def quietly() -> Iterator[None]:
    """Fit without these warnings, where errors, status and gap are reported instead."""
    with warnings.catch_warnings():
        for category in (ParityInfeasibleWarning, DualityGapWarning, LevellingDownWarning):
            warnings.simplefilter("ignore", category)
        yield
