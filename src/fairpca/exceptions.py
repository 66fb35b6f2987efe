"""Warnings of this library."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = [
    "DualityGapWarning",
    "FewRowsWarning",
    "LevellingDownWarning",
    "ParityInfeasibleWarning",
]


_PACKAGE = str(Path(__file__).parent)


class ParityInfeasibleWarning(UserWarning):
    """No projection of this rank has the disparity asked for; the least possible is returned."""


class DualityGapWarning(UserWarning):
    """The projection is not proven to be the best one; the message says how far off it can be."""


class LevellingDownWarning(UserWarning):
    """A group is worse off than under PCA, and no group is better off."""


class FewRowsWarning(UserWarning):
    """The result depends on very few rows."""


_OF_FITS = (
    ParityInfeasibleWarning,
    DualityGapWarning,
    LevellingDownWarning,
    FewRowsWarning,
)


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that called this library."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def quietly() -> Iterator[None]:
    """Silence these warnings, for callers that report errors, status and gap themselves."""
    with warnings.catch_warnings():
        for category in _OF_FITS:
            warnings.simplefilter("ignore", category)
        yield


@contextmanager
def noted() -> Iterator[list[warnings.WarningMessage]]:
    """Collect the warnings of a fit, for callers that print them themselves."""
    with warnings.catch_warnings(record=True) as caught:
        for category in _OF_FITS:
            warnings.simplefilter("always", category)
        yield caught
