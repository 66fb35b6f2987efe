"""The paper's experiments and other studies of fair PCA, through fairpca's public names.

From the root of the repository, ``python -m reproduction``, or::

    from reproduction import reproduce

    report = reproduce("paper", datasets=["tcred"])
    report.claims

writes to the folder: ``results.csv`` and ``results.json`` (every error, fairness measure, alpha and
certificate), ``claims.csv`` and ``timing.csv``, with LFW ``lfw_sex_by_race.csv`` (eight groups,
beyond the paper), and the figures as PNG and SVG. Results are kept in the subfolder ``results``, so
a run that was interrupted continues where it stopped.
"""

from reproduction.claims import Claim, check_claims
from reproduction.experiments import DATASETS, METHODS, PAPER_DATASETS, VARIANTS
from reproduction.pipeline import Report, prepare_folder, publish, reproduce, run_beyond
from reproduction.results import Result
from reproduction.runner import Job, plan, run_jobs
from reproduction.studies import STUDIES, reproduce_study

__all__ = [
    "DATASETS",
    "METHODS",
    "PAPER_DATASETS",
    "STUDIES",
    "VARIANTS",
    "Claim",
    "Job",
    "Report",
    "Result",
    "check_claims",
    "plan",
    "prepare_folder",
    "publish",
    "reproduce",
    "reproduce_study",
    "run_beyond",
    "run_jobs",
]
