"""The paper's experiments, through the public API.

``fairpca reproduce`` on the command line, or::

    from fairpca.reproduction import reproduce

    report = reproduce("reproduction", datasets=["tcred"])
    report.claims

writes to the folder: ``results.csv`` and ``results.json`` (every error, fairness measure, alpha and
certificate), ``claims.csv`` and ``timing.csv``, with LFW ``lfw_sex_by_race.csv`` (eight groups,
beyond the paper), and the figures as PNG and SVG. Results are kept in the subfolder ``results``, so
a run that was interrupted continues where it stopped.
"""

from fairpca.reproduction.claims import Claim, check_claims
from fairpca.reproduction.experiments import DATASETS, METHODS, PAPER_DATASETS, VARIANTS
from fairpca.reproduction.pipeline import Report, prepare_folder, publish, reproduce, run_beyond
from fairpca.reproduction.results import Result
from fairpca.reproduction.runner import Job, plan, run_jobs
from fairpca.reproduction.studies import STUDIES, reproduce_study

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
