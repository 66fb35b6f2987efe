"""Data sets that need no download, and the data of the paper.

Every loader returns a :class:`sklearn.utils.Bunch` with ``data`` (n x d, float64),
``sensitive_features`` (one readable label per row), ``feature_names``, ``groups`` (the labels in
the order of the estimators' ``groups_``) and ``description`` (source, licence, what was done; also
under scikit-learn's name ``DESCR``). By default the attributes are prepared as in the paper;
``prepare=False`` gives them as they are in the file. Groups are never re-centred.

The table of :func:`load_rand_health` is part of the package. ``fairpca report`` shows it if no file
is named.

The files of TCRED, LSAC and LFW are looked for in the folder named by the environment variable
``FAIRPCA_DATA``, then in the per-user cache, then downloaded (``pip install "fairpca[data]"``).
Those of other studies are looked for in the same places; the error says where their authors publish
them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.utils import Bunch, check_random_state

from fairpca.datasets import _files
from fairpca.datasets._bunch import BALANCED, make_bunch, rows_kept
from fairpca.datasets._pack_lfw import pack_lfw
from fairpca.datasets._rand_health import load_rand_health
from fairpca.datasets._studies import (
    load_adult,
    load_compas,
    load_credit,
    load_german,
    load_vu,
    pack_splits,
)

__all__ = [
    "load_adult",
    "load_compas",
    "load_credit",
    "load_diabetes_by_sex",
    "load_german",
    "load_lfw",
    "load_lsac",
    "load_rand_health",
    "load_tcred",
    "load_vu",
    "make_two_groups",
    "pack_lfw",
    "pack_splits",
]

PathLike = str | os.PathLike[str]

_DIABETES = (
    "Diabetes: 442 patients. B. Efron, T. Hastie, I. Johnstone and R. Tibshirani, Least Angle "
    "Regression, Annals of Statistics 32, 2004; bundled with scikit-learn (BSD licence). Sensitive "
    "attribute: sex, coded 1 and 2 in the file. scikit-learn does not say which is which; the R "
    "package biglars documents the same table as 1 = female, 2 = male, and the data agree (mean "
    "HDL cholesterol 54.4 for code 1, 44.6 for code 2; it is higher in women). Attributes: all "
    "columns but sex. The label (progression after one year) is in target."
)

_LSAC_COLUMNS = (
    "zfygpa", "zgpa", "DOB_yr", "fulltime", "sex", "race", "cluster", "fam_inc", "lsat", "ugpa",
    "index6040", "bar",
)  # fmt: skip
_LSAC_RACES = {1: "white", 2: "black", 3: "other"}


def load_tcred(
    *, balanced: bool = False, prepare: bool = True, data_home: PathLike | None = None
) -> Bunch:
    """Load TCRED: 30000 credit card clients, higher against lower education.

    Parameters
    ----------
    balanced : bool, default=False
        Keep only the first n rows of each group, n being the size of the smaller one.
    prepare : bool, default=True
        Standardise the columns over the rows kept, as in the paper.
    data_home : path, optional
        Folder to look in and to download to, in place of ``FAIRPCA_DATA`` and the user's cache.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (30000 x 22), ``sensitive_features`` ("higher", "lower"), ``feature_names``,
        ``groups``, ``description``, ``target``.

    Examples
    --------
    >>> from fairpca.datasets import load_tcred
    >>> tcred = load_tcred()  # doctest: +SKIP
    >>> tcred.data.shape  # doctest: +SKIP
    (30000, 22)
    """
    path = _files.locate("tcred", data_home)
    with path.open(encoding="utf-8") as stream:
        next(stream)  # the X-codes; the names are on the second line
        names = next(stream).strip().split(",")
        table = np.loadtxt(stream, delimiter=",")
    sensitive = np.where(np.isin(table[:, names.index("EDUCATION")], (1, 2)), "higher", "lower")
    kept = [j for j, name in enumerate(names[:-1]) if name not in ("ID", "EDUCATION")]
    return make_bunch(
        table[:, kept],
        sensitive,
        [names[j] for j in kept],
        _files.FILES["tcred"].description,
        balanced=balanced,
        standardize=prepare,
        target=table[:, -1].astype(int),
    )


def load_lsac(
    *,
    other: str = "with_white",
    balanced: bool = False,
    prepare: bool = True,
    data_home: PathLike | None = None,
) -> Bunch:
    """Load LSAC: 26551 law students, black against white (and other).

    Parameters
    ----------
    other : {"with_white", "drop"}, default="with_white"
        What becomes of the 2825 students of neither race: kept together with the white ones, as
        the paper says, or dropped, as its authors' script does.
    balanced : bool, default=False
        Keep only the first n rows of each group, n being the size of the smaller one.
    prepare : bool, default=True
        Standardise the columns over the rows kept, as in the paper.
    data_home : path, optional
        Folder to look in and to download to, in place of ``FAIRPCA_DATA`` and the user's cache.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (n x 10, of rank 9), ``sensitive_features`` ("black", "white and other" or
        "white"), ``race`` ("black", "other", "white"), ``feature_names``, ``groups``,
        ``description``, ``target``.

    Examples
    --------
    >>> from fairpca.datasets import load_lsac
    >>> lsac = load_lsac(other="drop")  # doctest: +SKIP
    >>> lsac.data.shape  # doctest: +SKIP
    (23726, 10)
    """
    if other not in ("with_white", "drop"):
        raise ValueError(
            f"other={other!r} is not known: pass other='with_white' to keep the race \"other\" "
            "with white, or other='drop' to leave those rows out."
        )
    table = np.loadtxt(_files.locate("lsac", data_home), delimiter=",")
    codes = table[:, _LSAC_COLUMNS.index("race")].astype(int)
    race = np.array([_LSAC_RACES[code] for code in codes])
    rest = "white and other" if other == "with_white" else "white"
    rows = np.flatnonzero((race != "other") | (other == "with_white"))
    kept = [j for j, name in enumerate(_LSAC_COLUMNS[:-1]) if name != "race"]
    return make_bunch(
        table[rows][:, kept],
        np.where(race[rows] == "black", "black", rest),
        [_LSAC_COLUMNS[j] for j in kept],
        _files.FILES["lsac"].description
        + ("" if other == "with_white" else " Rows of race other were dropped."),
        balanced=balanced,
        standardize=prepare,
        race=race[rows],
        target=table[rows, -1].astype(int),
    )


def load_lfw(
    *, balanced: bool = False, prepare: bool = True, data_home: PathLike | None = None
) -> Bunch:
    """Load LFW: 13232 faces of 49 x 36 pixels, female against male.

    There is nothing to download as one file; if ``lfw.npz`` is not at hand, the error says how
    :func:`pack_lfw` makes it. The returned matrix takes 190 MB.

    Parameters
    ----------
    balanced : bool, default=False
        Keep only the first n rows of each group, n being the size of the smaller one.
    prepare : bool, default=True
        Divide the pixels by 255, as in the paper (the estimators do the centring).
    data_home : path, optional
        Folder to look in, in place of ``FAIRPCA_DATA`` and the user's cache.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (13232 x 1764), ``sensitive_features`` ("female", "male"), ``asian``, ``black``,
        ``white`` (boolean, not exclusive), ``race`` (one of these names where exactly one of the
        three is set, else "unclear"), ``image_shape``, ``feature_names``, ``groups``,
        ``description``.

    Examples
    --------
    >>> from fairpca.datasets import load_lfw
    >>> lfw = load_lfw()  # doctest: +SKIP
    >>> lfw.data[0].reshape(lfw.image_shape).shape  # doctest: +SKIP
    (49, 36)
    """
    with np.load(_files.locate("lfw", data_home), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    height, width = (int(side) for side in arrays["image_shape"])
    sensitive = np.where(arrays["sex"] == 1, "male", "female")
    rows = rows_kept(sensitive, balanced)
    races = np.array(["asian", "black", "white"])
    flags = np.column_stack([arrays[race].astype(bool) for race in races])
    race = np.where(flags.sum(axis=1) == 1, races[flags.argmax(axis=1)], "unclear")
    scale = float(arrays["scale"]) * (255.0 if prepare else 1.0)
    return make_bunch(
        arrays["images"][rows] / scale,
        sensitive[rows],
        [f"pixel_{i}_{j}" for i in range(height) for j in range(width)],
        _files.FILES["lfw"].description
        + (" Pixels were divided by 255." if prepare else "")
        + (BALANCED.format(n=len(rows) // 2) if balanced else ""),
        image_shape=(height, width),
        race=race[rows],
        **dict(zip(races.tolist(), flags[rows].T, strict=True)),
    )


def load_diabetes_by_sex(*, prepare: bool = True) -> Bunch:
    """Load scikit-learn's diabetes data with sex as the sensitive attribute; no download.

    Parameters
    ----------
    prepare : bool, default=True
        Standardise the columns (standard deviation with n - 1).

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (442 x 9), ``sensitive_features`` ("female", "male"), ``feature_names``,
        ``groups``, ``description`` (which says why code 1 is read as female), ``target``.

    Examples
    --------
    >>> from fairpca.datasets import load_diabetes_by_sex
    >>> diabetes = load_diabetes_by_sex()
    >>> diabetes.data.shape
    (442, 9)
    >>> diabetes.feature_names
    ['age', 'bmi', 'bp', 's1', 's2', 's3', 's4', 's5', 's6']
    """
    source = load_diabetes(scaled=False)
    names = list(source.feature_names)
    sex = names.index("sex")
    return make_bunch(
        np.delete(source.data, sex, axis=1),
        np.where(source.data[:, sex] == 1, "female", "male"),
        names[:sex] + names[sex + 1 :],
        _DIABETES,
        standardize=prepare,
        target=source.target,
    )


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
        Rows of the majority and of the minority.
    n_features : int, default=2
        Columns, at least 2; those after the second hold noise as wide as the groups are narrow.
    shift : float, default=1.0
        Distance between the means of the two groups, along the minority's long axis.
    random_state : int, RandomState or None, default=None
        Seed of the draw.

    Returns
    -------
    sklearn.utils.Bunch
        ``data``, ``sensitive_features`` ("majority", "minority"), ``feature_names``, ``groups``,
        ``description``. The rows of the majority come first.

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
    if n_features < 2:
        raise ValueError(f"n_features={n_features!r} is below 2: pass n_features=2 or more.")
    rng = check_random_state(random_state)
    blocks = []
    for n, degrees, distance in zip(sizes, (20.0, 95.0), (0.0, shift), strict=True):
        block = rng.normal(scale=0.6, size=(n, n_features))
        block[:, 0] = 5.0 * block[:, 0] + distance
        cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        block[:, :2] = block[:, :2] @ np.array([[cos, sin], [-sin, cos]])
        blocks.append(block)
    return make_bunch(
        np.concatenate(blocks),
        np.repeat(["majority", "minority"], sizes),
        [f"x{j}" for j in range(n_features)],
        f"Made by fairpca.datasets.make_two_groups({sizes}, {n_features}, shift={shift}).",
    )
