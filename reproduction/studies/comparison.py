"""What every study yields: figures as published beside ours, and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reproduction.claims import Claim
from reproduction.tools import Progress

EXACT = 1e-6  # tolerance where the published figure has all its digits


def printed(digits: int) -> float:
    """Tolerance where the published figure is rounded to so many decimals."""
    return 0.5 * 10.0**-digits + 1e-12


@dataclass(frozen=True)
class Figure:
    """One published figure, and ours.

    ``tolerance`` is None where ours is another method, shown for comparison. ``held_out`` is the
    same figure by an honest protocol, where the published one flatters.
    """

    data: str
    r: int
    split: str
    method: str
    measure: str
    published: float | None
    ours: float
    tolerance: float | None = None
    held_out: float | None = None

    @property
    def difference(self) -> float | None:
        """Ours minus the published one."""
        return None if self.published is None else self.ours - self.published

    @property
    def agrees(self) -> bool | None:
        """Whether both are the same to within the tolerance; None if they need not be."""
        if self.difference is None or self.tolerance is None:
            return None
        return bool(abs(self.difference) <= self.tolerance)

    def as_row(self) -> dict[str, Any]:
        """For a table."""
        agrees = {None: "", True: "yes", False: "no"}[self.agrees]
        return {
            "data": self.data,
            "r": self.r,
            "split": self.split,
            "method": self.method,
            "measure": self.measure,
            "published": self.published,
            "ours": self.ours,
            "difference": self.difference,
            "tolerance": self.tolerance,
            "agrees": agrees,
            "held_out": self.held_out,
        }


@dataclass(frozen=True)
class Study:
    """A published study.

    ``load`` fetches all that ``run`` needs, so that a file that is missing is noticed before
    anything is computed or written. ``notes`` say how the figures come about.
    """

    name: str
    title: str
    reference: str
    notes: tuple[str, ...]
    load: Callable[[], Any]
    run: Callable[[Any, Progress], tuple[list[Figure], list[Claim]]]


def agreement(figures: Sequence[Figure], statement: str, data: str) -> Claim:
    """The verdict on figures that must agree: how many do, and by how much they differ at most."""
    compared = [figure for figure in figures if figure.agrees is not None]
    n_agree = sum(figure.agrees is True for figure in compared)
    largest = max((abs(figure.difference or 0.0) for figure in compared), default=0.0)
    return Claim(
        data,
        statement,
        finding_of(n_agree, len(compared)),
        f"{n_agree} of {len(compared)} figures agree; the largest difference is {largest:.2g}.",
    )


def finding_of(n_true: int, n: int) -> str:
    """In the words of :class:`~reproduction.Claim`."""
    if n == 0:
        return "not run"
    return {n: "holds", 0: "does not hold"}.get(n_true, "holds in part")
