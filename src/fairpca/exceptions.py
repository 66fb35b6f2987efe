"""Warnings of this library."""


class ParityInfeasibleWarning(UserWarning):
    """No projection of this rank has the disparity asked for; the least possible is returned."""
