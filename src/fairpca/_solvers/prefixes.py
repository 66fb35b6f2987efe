"""An order of the components in which every prefix is fair.

The first components of a fair projection, ordered by variance, are not fair. Another order of the
same span is: inside the span of all R components solve the same problem for R - 1, inside that span
for R - 2, and so on. The directions that drop out, the last one first, are the order. The span and
its errors stay as they are, since errors depend on the span alone.

Each step solves a problem of as many features as components are left, with the second moments
``U'C_gU`` inside the span U and the traces of the whole ``C_g``: what lies outside is always lost.
"""

from __future__ import annotations

import numpy as np

from fairpca._moments.operand import Operand
from fairpca._solvers import Problem, solve
from fairpca._typing import Array


def fair_order(problem: Problem, operand: Operand, basis: Array, tol: float = 1e-6) -> Array:
    """A basis of the same span; each prefix solves the problem inside the next longer one."""
    span = basis
    inside = operand.within(basis)
    dropped = []
    while span.shape[1] > 1:
        solution = solve(problem, inside, span.shape[1] - 1, tol)
        turned = np.linalg.qr(solution.basis, mode="complete")[0]  # its last column is left out
        dropped.append(span @ turned[:, -1])
        span = span @ turned[:, :-1]
        inside = inside.within(turned[:, :-1])
    return np.column_stack([span, *reversed(dropped)])
