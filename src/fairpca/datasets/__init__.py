"""Data to try fair PCA on.

:func:`load_checkup` and :func:`load_rand_health` read tables that are part of the package,
:func:`make_two_groups` draws one. :func:`load_tcred`, :func:`load_lsac` and :func:`load_lfw` read
the tables of the paper from the folder that the environment variable ``FAIRPCA_DATA`` names, or
from scikit-learn's data home, and download missing files (except LFW).

Every loader returns a :class:`sklearn.utils.Bunch` with ``data`` (n x d, float64),
``sensitive_features`` (one readable label per row), ``feature_names``, ``groups`` (the labels in
the order of the estimators' ``groups_``) and ``description`` (source, licence, what was done; also
under scikit-learn's name ``DESCR``). ``prepare`` standardises the columns (of LFW, scales pixels)
as in the paper; ``prepare=False`` leaves them as they are in the file. Groups are never re-centred.
"""

from fairpca.datasets._bundled import load_checkup, load_rand_health, make_two_groups
from fairpca.datasets._paper import load_lfw, load_lsac, load_tcred

__all__ = [
    "load_checkup",
    "load_lfw",
    "load_lsac",
    "load_rand_health",
    "load_tcred",
    "make_two_groups",
]
