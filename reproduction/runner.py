"""Running the experiments: what is planned, and what is still to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from reproduction.experiments import (
    DATASETS,
    METHODS,
    PAPER_DATASETS,
    VARIANTS,
    Dataset,
    Method,
    choose,
)
from reproduction.results import Result, ResultFiles
from reproduction.tools import Progress, silent


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

    @property
    def title(self) -> str:
        """What is shown while it runs."""
        return f"{self.dataset.title}, {self.variant}, {self.method.title}"


def plan(
    datasets: Iterable[str] | None = None,
    methods: Iterable[str] | None = None,
    variants: Iterable[str] | None = None,
) -> list[Job]:
    """The jobs to do, by names; without names all those of the paper.

    Examples
    --------
    >>> from reproduction import plan
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


def run_jobs(jobs: Iterable[Job], folder: Path, progress: Progress = silent) -> list[Result]:
    """Do the jobs that are not done yet and return the results of all.

    The results of a job are kept in ``folder`` once it is done. Rows are loaded once per dataset
    and variant, and not at all when nothing is left to do.
    """
    jobs, files, results = list(jobs), ResultFiles(folder), list[Result]()
    total = sum(len(job.dataset.ranks) for job in jobs)
    for (dataset_name, variant), group in groupby(jobs, key=lambda job: job.names[:2]):
        data = DATASETS[dataset_name].variant(variant)
        for job in group:
            finished = files.read(*job.names, job.dataset.ranks)
            if finished is None:
                finished = []
                progress(job.title, len(results) / total)
                for result in job.method.run(data, job.dataset.ranks):
                    finished.append(result)
                    progress(job.title, (len(results) + len(finished)) / total)
                files.write(*job.names, finished)
            results += finished
    return results
