"""Warnings and errors of this library."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

__all__ = [
    "DualityGapWarning",
    "FewRowsWarning",
    "LevellingDownWarning",
    "ParityInfeasibleWarning",
    "TableError",
]

_PACKAGE = str(Path(__file__).parent)


class FitWarning(UserWarning):
    """Base of the warnings about a fit."""


class ParityInfeasibleWarning(FitWarning):
    """No projection of this rank has the disparity asked for; the least possible is returned."""


class DualityGapWarning(FitWarning):
    """The projection is not proven to be the best one; the message says how far off it can be."""


class LevellingDownWarning(FitWarning):
    """A group is worse off than under PCA, and no group is better off."""


class FewRowsWarning(FitWarning):
    """The result depends on very few rows."""


class NotEnoughRows(ValueError):
    """The rows seen so far allow no fit, and more rows may help: ``partial_fit`` waits for them."""


class TableError(ValueError):
    """A table that cannot be used as it was asked for: what is wrong, and what to do in Python.

    ``problem`` is a code, such as "missing"; ``facts`` are the column, value or row it is about.
    """

    def __init__(self, problem: str, fact: str, advice: str, **facts: Any) -> None:
        super().__init__(f"{fact}; {advice}{'' if advice.endswith('?') else '.'}")
        self.problem = problem
        self.fact = fact
        self.advice = advice
        self.facts = facts

    def at(self, place: str) -> TableError:
        """The same error, with a place in front."""
        return TableError(self.problem, f"{place}: {self.fact}", self.advice, **self.facts)


class NoFileError(TableError, FileNotFoundError):
    """A file or folder that does not exist."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the line of the user's code that called this library."""
    frame = sys._getframe(1)
    level = 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level = level + 1
    warnings.warn(message, category, stacklevel=level)


def quietly() -> warnings.catch_warnings[None]:
    """Silence these warnings, for callers that report errors, status and gap themselves."""
    return warnings.catch_warnings(action="ignore", category=FitWarning)


def noted() -> warnings.catch_warnings[list[warnings.WarningMessage]]:
    """Collect the warnings of a fit, for callers that print them themselves."""
    return warnings.catch_warnings(record=True, action="always", category=FitWarning)
