"""Running the experiments: what is planned, what is still to do, and the results as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from fairpca.reproduction.experiments import (
    DATASETS,
    METHODS,
    PAPER_DATASETS,
    VARIANTS,
    Dataset,
    Method,
    choose,
)
from fairpca.reproduction.results import Result, ResultFiles


@dataclass(frozen=True)
class Job:
    """One method on one dataset in one variant, for all numbers of components."""

    dataset: Dataset
    variant: str
    method: Method

    @property
    def names(self) -> tuple[str, str, str]:
        """The names by which its results are kept."""
        return self.dataset.name, self.variant, self.method.name


@dataclass(frozen=True)
class Step:
    """A result as it becomes known; ``resumed`` when it was read from an earlier run."""

    job: Job
    result: Result
    resumed: bool


def plan(
    datasets: Iterable[str] | None = None,
    methods: Iterable[str] | None = None,
    variants: Iterable[str] | None = None,
) -> list[Job]:
    """The jobs to do, by names; without names all those of the paper.

    Examples
    --------
    >>> from fairpca.reproduction import plan
    >>> [job.names for job in plan(["lsac"], ["pca", "c-fpca"], ["balanced"])]
    [('lsac', 'balanced', 'pca'), ('lsac', 'balanced', 'c-fpca')]
    >>> plan(["adult"])
    Traceback (most recent call last):
    ...
    ValueError: dataset 'adult' not known: choose from tcred, lfw, lsac, lsac-without-other.
    """
    return [
        Job(DATASETS[dataset], variant, METHODS[method])
        for dataset in choose(datasets, DATASETS, "dataset", PAPER_DATASETS)
        for variant in choose(variants, VARIANTS, "variant", VARIANTS)
        for method in choose(methods, METHODS, "method", METHODS)
    ]


def run(jobs: Iterable[Job], folder: Path) -> Iterator[Step]:
    """Do the jobs that are not done yet, keep their results in ``folder``, and yield all results.

    Rows are loaded once per dataset and variant, and not at all when nothing is left to do.
    """
    files = ResultFiles(folder)
    for (dataset_name, variant), group in groupby(jobs, key=lambda job: job.names[:2]):
        data = DATASETS[dataset_name].variant(variant)
        for job in group:
            ranks = job.dataset.ranks
            known = files.read(*job.names, ranks)
            results: list[Result] = []
            for result in known if known is not None else job.method.run(data, ranks):
                results.append(result)
                yield Step(job, result, resumed=known is not None)
            if known is None:
                files.write(*job.names, results)
