"""Warnings of this library."""


class ParityInfeasibleWarning(UserWarning):
    """No projection of this rank has the disparity asked for; the least possible is returned."""


class DualityGapWarning(UserWarning):
    """The projection is not proven to be the best one; the message says how far off it can be."""
