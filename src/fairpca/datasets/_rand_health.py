"""The bundled data: participants of the RAND Health Insurance Experiment.

``_pack_rand_health.py`` makes ``rand_health.csv.gz``.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from fairpca.datasets._bunch import make_bunch

RAND_HEALTH = Path(__file__).parent / "rand_health.csv.gz"

_DESCRIPTION = (
    "RAND Health Insurance Experiment: 5827 people in the first year in which they took part "
    "(1974 to 1982). Collected by the RAND Corporation; used in A. C. Cameron and P. K. Trivedi, "
    "Microeconometrics, Cambridge 2005; taken from statsmodels (datasets/randhie/src/randhie.csv), "
    "which declares it to be in the public domain. Sensitive attribute: whether the head of the "
    "household is black. Attributes: visits to a doctor in that year, index of chronic diseases, "
    "indices of mental and general health (higher is better), physical limitation, self-rated "
    "health (excellent if all three columns are 0), log of family income (of 1 dollar if there was "
    "none), log of family size, schooling of the head of the household in years, age, sex, child. "
    "Other values that the source imputed are kept; values are rounded. Left out: 81 people whose "
    "race was imputed, 4 without a value for schooling, and columns about the insurance plan. "
    "Members of a family are rows of their own."
)


def load_rand_health(*, prepare: bool = True) -> Bunch:
    """Load the RAND Health Insurance Experiment, black participants against others; no download.

    Does a summary of people's health and means describe black participants as well as others?
    Under PCA it does not, and on rows held out the difference is far beyond chance.

    Parameters
    ----------
    prepare : bool, default=True
        Standardise the columns (standard deviation with n - 1).

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (5827 x 14), ``sensitive_features`` ("black", "others"), ``feature_names``,
        ``groups``, ``description`` (source, licence, what was left out).

    Examples
    --------
    >>> from fairpca.datasets import load_rand_health
    >>> people = load_rand_health()
    >>> people.data.shape, people.groups.tolist()
    ((5827, 14), ['black', 'others'])
    >>> people.feature_names[:4]
    ['doctor_visits', 'chronic_diseases', 'mental_health', 'general_health']
    """
    with gzip.open(RAND_HEALTH, "rt", encoding="ascii") as stream:
        names = next(stream).strip().split(",")
        table = np.loadtxt(stream, delimiter=",")
    return make_bunch(
        table[:, :-1],
        np.where(table[:, -1] == 1, "black", "others"),
        names[:-1],
        _DESCRIPTION,
        standardize=prepare,
    )
