"""What the paper's experiments are: datasets, variants, methods, and how each is run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.decomposition import PCA
from sklearn.utils import Bunch

from fairpca import FairPCA, GroupMoments, MinMaxPCA
from fairpca.baselines import MultiplicativeWeightsPCA, SubsetFairPCA
from fairpca.datasets import load_lfw, load_lsac
from fairpca.metrics import group_reconstruction_errors
from reproduction.bundled import load_tcred
from reproduction.results import Result
from reproduction.tools import Array, quietly


@dataclass(frozen=True)
class Dataset:
    """One of the paper's datasets and the numbers of components it is reduced to."""

    name: str
    title: str
    ranks: tuple[int, ...]
    load: Callable[..., Bunch]

    def variant(self, name: str) -> DatasetVariant:
        """The rows of one variant, loaded when asked for."""
        return DatasetVariant(self.name, name, lambda: self.load(balanced=name == "balanced"))


class DatasetVariant:
    """A dataset in one variant; rows and moments are computed once, when first needed."""

    def __init__(self, dataset: str, variant: str, load: Callable[[], Bunch]) -> None:
        self.dataset = dataset
        self.variant = variant
        self._load = load

    @cached_property
    def rows(self) -> Bunch:
        """What the loader returns."""
        return self._load()

    @cached_property
    def moments(self) -> GroupMoments:
        """All that the fair methods need of the rows."""
        return GroupMoments.from_data(self.rows.data, self.rows.sensitive_features)


@dataclass(frozen=True)
class Method:
    """One of the compared methods; without an estimator of ours it is scikit-learn's PCA."""

    name: str
    title: str
    estimator: Callable[[int], Any] | None = None
    shown: bool = True

    def run(self, data: DatasetVariant, ranks: Iterable[int]) -> Iterator[Result]:
        """Fit for every number of components, one result at a time."""
        if self.estimator is None:
            return _fit_pca(self.name, data, ranks)
        return _fit_estimator(self.name, self.estimator, data, ranks)


def _fit_pca(method: str, data: DatasetVariant, ranks: Iterable[int]) -> Iterator[Result]:
    """scikit-learn's PCA, fitted once: fewer components are the first of these."""
    ranks = list(ranks)
    X, groups = data.rows.data, data.rows.sensitive_features
    labels, counts = np.unique(groups, return_counts=True)
    start = _clocks()
    pca = PCA(max(ranks), svd_solver="covariance_eigh").fit(X)
    seconds, cpu_seconds = _clocks() - start
    for r in ranks:
        first = SimpleNamespace(components_=pca.components_[:r], mean_=pca.mean_)
        errors = np.array(list(group_reconstruction_errors(first, X, groups).values()))
        harmed = int(errors.argmax())
        yield Result(
            dataset=data.dataset,
            variant=data.variant,
            method=method,
            r=r,
            overall_error=float(np.average(errors, weights=counts)),
            group_1=str(labels[0]),
            group_2=str(labels[1]),
            error_1=float(errors[0]),
            error_2=float(errors[1]),
            harmed_group=str(labels[harmed]),
            disparity=float(np.ptp(errors)),
            pca_harmed_error=float(errors[harmed]),
            alpha=1.0,
            duality_gap=None,
            status="",
            seconds=float(seconds),
            cpu_seconds=float(cpu_seconds),
            n_eigensolves=1,
        )


def _fit_estimator(
    method: str, estimator: Callable[[int], Any], data: DatasetVariant, ranks: Iterable[int]
) -> Iterator[Result]:
    """One of our estimators, from the moments."""
    moments = data.moments
    for r in ranks:
        fair = estimator(r)
        start = _clocks()
        with quietly():
            fair.fit(moments)
        seconds, cpu_seconds = _clocks() - start
        yield Result(
            dataset=data.dataset,
            variant=data.variant,
            method=method,
            r=r,
            overall_error=fair.reconstruction_error_,
            group_1=str(fair.groups_[0]),
            group_2=str(fair.groups_[1]),
            error_1=float(fair.group_errors_[0]),
            error_2=float(fair.group_errors_[1]),
            harmed_group=str(fair.harmed_group_),
            disparity=fair.disparity_,
            pca_harmed_error=float(fair.pca_group_errors_.max()),
            alpha=_finite_or_none(fair.alpha_),
            duality_gap=_finite_or_none(fair.duality_gap_),
            status=fair.status_,
            seconds=float(seconds),
            cpu_seconds=float(cpu_seconds),
            n_eigensolves=fair.n_eigensolves_,
        )


def _clocks() -> Array:
    """Wall-clock seconds, and CPU seconds of all threads."""
    return np.array([time.perf_counter(), time.process_time()])


def _finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _load_lsac_without_other(balanced: bool) -> Bunch:
    return load_lsac(other="drop", balanced=balanced)


def _by_name(*entries: Any) -> dict[str, Any]:
    return {entry.name: entry for entry in entries}


#: In the order of the paper's figures. The last is what the authors' script made of LSAC.
DATASETS: Mapping[str, Dataset] = _by_name(
    Dataset("tcred", "TCRED", tuple(range(1, 22)), load_tcred),
    Dataset("lfw", "LFW", tuple(range(1, 16)), load_lfw),
    Dataset("lsac", "LSAC", tuple(range(1, 11)), load_lsac),
    Dataset("lsac-without-other", "LSAC, no other", tuple(range(1, 11)), _load_lsac_without_other),
)
PAPER_DATASETS = ("tcred", "lfw", "lsac")
VARIANTS = ("unbalanced", "balanced")

#: FairPCA is solved exactly, with the groups centred as its authors do. For comparison it is run by
#: multiplicative weights as well, as in the paper, and u-FPCA and c-FPCA by golden section; these
#: appear in no figure.
METHODS: Mapping[str, Method] = _by_name(
    Method("pca", "PCA"),
    Method("fairpca", "FairPCA", MinMaxPCA),
    Method("mofpca", "MOFPCA", lambda r: SubsetFairPCA(r, random_state=0)),
    Method("u-fpca", "u-FPCA", lambda r: FairPCA(r, constraint="parity")),
    Method("c-fpca", "c-FPCA", lambda r: FairPCA(r, constraint="no_worse")),
    Method(
        "fairpca-weights",
        "FairPCA, multiplicative weights",
        lambda r: MultiplicativeWeightsPCA(r),
        shown=False,
    ),
    Method(
        "u-fpca-golden",
        "u-FPCA, golden section",
        lambda r: FairPCA(r, constraint="parity", solver="golden"),
        shown=False,
    ),
    Method(
        "c-fpca-golden",
        "c-FPCA, golden section",
        lambda r: FairPCA(r, constraint="no_worse", solver="golden"),
        shown=False,
    ),
)


METHODS_SHOWN = tuple(name for name, method in METHODS.items() if method.shown)


def choose(
    names: Iterable[str] | None, known: Iterable[str], what: str, default: Iterable[str]
) -> list[str]:
    """Check names that a user gave, and put them in the order of the known ones.

    Parameters
    ----------
    names : iterable of str, or None
        None or an empty one means ``default``.
    known : iterable of str
    what : str
        What is named, for the error.
    default : iterable of str

    Returns
    -------
    list of str
    """
    wanted, known = list(names or default), list(known)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(
            f"{what} {', '.join(map(repr, unknown))} not known: choose from {', '.join(known)}."
        )
    return [name for name in known if name in wanted]
