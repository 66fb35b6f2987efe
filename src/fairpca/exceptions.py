"""Warnings of this library."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["DualityGapWarning", "ParityInfeasibleWarning"]


class ParityInfeasibleWarning(UserWarning):
    """No projection of this rank has the disparity asked for; the least possible is returned."""


class DualityGapWarning(UserWarning):
    """The projection is not proven to be the best one; the message says how far off it can be."""


@contextmanager
def quietly() -> Iterator[None]:
    """Fit without these warnings, where ``status_`` and ``duality_gap_`` are reported instead."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ParityInfeasibleWarning)
        warnings.simplefilter("ignore", DualityGapWarning)
        yield
