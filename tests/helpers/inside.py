"""Private names of the package that tests use: parts of algorithms that have no public door.

Tests import them from here, so that a file of the package can move without a change to them.
"""

# ruff: noqa: F401

from __future__ import annotations

from fairpca import _blas, _solvers
from fairpca._blas import blas_threads, parallel_map, single_threaded_blas
from fairpca._cv.cross_fit import CrossFit, Curve, Sides
from fairpca._cv.held_out import HeldOut
from fairpca._cv.leave_out import LeaveOut
from fairpca._cv.path import path_of
from fairpca._cv.stopping import choose, chosen_stop
from fairpca._estimators import advice, base
from fairpca._estimators.advice import warn_of_held_out
from fairpca._estimators.base import GroupEstimator
from fairpca._estimators.fitted import declared_by, numbers, record_of
from fairpca._input import device, rows
from fairpca._input.folds import FoldRule
from fairpca._input.rows import FrameRows, as_rows
from fairpca._input.stream import Input
from fairpca._moments import accumulate, few_rows, implicit, operand
from fairpca._moments.few_rows import FewRows
from fairpca._moments.implicit import ImplicitMoments
from fairpca._moments.operand import Complement, Operand
from fairpca._moments.row_space import RowSpace
from fairpca._moments.small_groups import settle_small_groups
from fairpca._problems import linear
from fairpca._problems.linear import least_error, least_maximum, least_spread
from fairpca._problems.problems import PLAIN_PCA, FairProblem, WelfareProblem, WorstOffProblem
from fairpca._problems.solution import Solution, best_and_worst
from fairpca._problems.status import Status
from fairpca._solvers import search_in_basis, solve
from fairpca._solvers.eigenspaces import lapack
from fairpca._solvers.eigenspaces.dense import Eigenspaces
from fairpca._solvers.eigenspaces.lapack import eigen, is_top, values_within
from fairpca._solvers.eigenspaces.many_features import GrowingBasis, LeadingBasis, ThinSpaces
from fairpca._solvers.many_groups import descent, recovery, workspace
from fairpca._solvers.many_groups.barrier import follow
from fairpca._solvers.many_groups.dual import minimise
from fairpca._solvers.many_groups.pareto import EfficientFrontier, solve_pareto
from fairpca._solvers.many_groups.spread import SpreadFrontier, solve_spread
from fairpca._solvers.many_groups.workspace import Workspace
from fairpca._solvers.two_groups.exact import solve_exact
from fairpca._solvers.two_groups.frontier import Frontier, solve_fixed, solve_golden
from fairpca._solvers.two_groups.root import Crossing, Line, Sample, SubspacePath
from fairpca._solvers.welfare import solve_welfare, solve_welfare_of_two
from fairpca._solvers.worst_off import solve_minmax, solve_worst
from fairpca.baselines import _subset
from fairpca.baselines._robust import RobustProblem, solve_robust
from fairpca.baselines._subset import Front, Rule, exact_front, select, spea2_front


def products_only(monkeypatch, above=0):
    """More features than this are never held as matrices, as with more than 5,000."""
    monkeypatch.setattr(implicit, "_GRAMS_UP_TO", above)


def growing_bases(monkeypatch, start):
    """From this many features on, eigenspaces are searched in a basis that grows."""
    monkeypatch.setattr(_solvers, "_GROWING_BASIS_FROM", start)


def leading_bases(monkeypatch):
    """Two groups are searched in a basis of leading eigenvectors, however few the features."""
    monkeypatch.setattr(_solvers, "_LEADING_BASIS_FROM", 1)
    monkeypatch.setattr(_solvers, "_LEADING_BASIS_PER_RANK", 1)


def generations(monkeypatch, number):
    """SPEA2 goes through this many; it needs pymoo."""
    from fairpca.baselines import _spea2

    monkeypatch.setattr(_spea2, "_GENERATIONS", number)
