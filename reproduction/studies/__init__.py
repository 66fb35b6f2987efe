"""Other studies' published tables, reproduced.

``python -m reproduction --study lee2023``, or::

    from reproduction import reproduce_study

    report = reproduce_study("lee2023", "studies")

writes ``figures.csv`` (published, ours, difference), ``claims.csv`` (a verdict for each claim) and
``index.html`` (both, as a page) to a folder named after the study. Everything is loaded first: if a
file is missing, nothing is computed and nothing is written.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from reproduction.claims import Claim
from reproduction.studies.comparison import Figure, Study
from reproduction.studies.lee2022 import LEE2022
from reproduction.studies.lee2023 import LEE2023
from reproduction.studies.page import study_page
from reproduction.studies.samadi2018 import SAMADI2018
from reproduction.studies.tantipongpipat2019 import TANTIPONGPIPAT2019
from reproduction.studies.vu2022 import VU2022
from reproduction.tables import as_csv
from reproduction.tools import Progress, silent, writable_folder, write_text

STUDIES: dict[str, Study] = {
    study.name: study for study in (SAMADI2018, TANTIPONGPIPAT2019, LEE2022, VU2022, LEE2023)
}


@dataclass(frozen=True)
class StudyReport:
    """What the reproduction of a study found, and the files it wrote."""

    figures: list[Figure]
    claims: list[Claim]
    files: list[Path]


def reproduce_study(
    name: str, out: str | os.PathLike[str], *, progress: Progress = silent
) -> StudyReport:
    """Compute a study's figures and write them beside the published ones.

    Parameters
    ----------
    name : str
        One of ``STUDIES``.
    out : path
        Folder to write to; the study gets a folder of its own in it.
    progress : callable, optional
        Called with what is being done.

    Returns
    -------
    StudyReport

    Examples
    --------
    >>> from reproduction import reproduce_study
    >>> report = reproduce_study("vu2022", "studies")  # doctest: +SKIP
    >>> [claim.finding for claim in report.claims]  # doctest: +SKIP
    ['holds', 'holds']
    """
    if name not in STUDIES:
        raise ValueError(
            f"study {name!r} not known: choose from {', '.join(STUDIES)}. The study pelegrina2022 "
            "is run by python -m reproduction without --study."
        )
    study = STUDIES[name]
    progress("reading data")
    data = study.load()
    folder = writable_folder(Path(out) / name)
    figures, claims = study.run(data, progress)
    texts = {
        "figures.csv": as_csv([figure.as_row() for figure in figures]),
        "claims.csv": as_csv([_verdict_row(claim) for claim in claims]),
        "index.html": study_page(study, figures, claims),
    }
    for file, text in texts.items():
        write_text(folder / file, text)
    return StudyReport(figures, claims, [folder / file for file in texts])


def _verdict_row(claim: Claim) -> dict[str, str]:
    return {
        "data": claim.variant,
        "claim": claim.statement,
        "verdict": claim.finding,
        "numbers": claim.numbers,
    }
