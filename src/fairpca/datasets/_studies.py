"""The data of other studies of fair PCA, as their authors prepared them."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from fairpca._tables.atomic import replacing
from fairpca.datasets._bunch import make_bunch
from fairpca.datasets._files import locate_file
from fairpca.datasets._study_files import STUDY_FILES

PathLike = str | os.PathLike[str]

_LABELS = {
    "compas": ("others", "caucasian"),
    "german": ("under 25", "25 and older"),
    "german_2023": ("under 25", "25 and older"),
    "adult": ("female", "male"),
}


def read_results(key: str, data_home: PathLike | None = None) -> list[dict[str, str]]:
    """A study's published results: one mapping from column to text for each row."""
    with locate_file(STUDY_FILES[key], data_home).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def load_credit(
    *,
    by: Literal["education", "education_and_sex"] = "education",
    data_home: PathLike | None = None,
) -> Bunch:
    """Load the credit data of Tantipongpipat et al.: 30000 clients in three or four groups.

    Parameters
    ----------
    by : {"education", "education_and_sex"}, default="education"
        Three groups by education, or four by education and sex.
    data_home : path, optional
        Folder to look in, in place of ``FAIRPCA_DATA`` and the user's cache.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (30000 x 23, scaled as in the study), ``sensitive_features``, ``feature_names``,
        ``groups``, ``description``.

    Examples
    --------
    >>> from fairpca.datasets import load_credit
    >>> credit = load_credit()  # doctest: +SKIP
    >>> credit.groups.tolist()  # doctest: +SKIP
    ['high school', 'higher', 'other']
    """
    if by not in ("education", "education_and_sex"):
        raise ValueError(
            f"by={by!r} is not known: pass by='education' for three groups, or "
            "by='education_and_sex' for four."
        )
    names, table = _read_table("credit", data_home)
    education, sex = (table[:, names.index(name)] for name in ("EDUCATION", "SEX"))
    if by == "education":
        below = np.where(education < 4, "high school", "other")
        sensitive = np.where(education < 3, "higher", below)
    else:
        schooling = np.where(education < 3, "higher", "lower")
        sensitive = np.char.add(schooling, np.where(sex == 1, " & male", " & female"))
    names, data = names[1:], table[:, 1:]  # without ID
    blocks = [*range(5), slice(5, 11), slice(11, 17), slice(17, 23)]  # PAY, BILL_AMT, PAY_AMT
    for block in blocks:
        data[:, block] /= data[:, block].std(ddof=1)
    return make_bunch(data, sensitive, names, STUDY_FILES["credit"].description)


def load_compas(*, split: int = 0, data_home: PathLike | None = None) -> Bunch:
    """Load COMPAS as prepared by Lee et al.: defendants, Caucasian against others.

    Parameters
    ----------
    split : int, default=0
        Which of the ten divisions into training and test rows, from 0 to 9.
    data_home : path, optional
        Folder to look in, in place of ``FAIRPCA_DATA`` and the user's cache.

    Returns
    -------
    sklearn.utils.Bunch
        The training rows: ``data`` (1727 x 11), ``target`` (0, 1), ``sensitive_features``
        ("caucasian", "others"); the test rows: ``test_data``, ``test_target``,
        ``test_sensitive_features``; ``feature_names``, ``groups``, ``description``.

    Examples
    --------
    >>> from fairpca.datasets import load_compas
    >>> load_compas().data.shape  # doctest: +SKIP
    (1727, 11)
    """
    return _load_split("compas", split, data_home)


def load_german(
    *, split: int = 0, version: Literal[2022, 2023] = 2022, data_home: PathLike | None = None
) -> Bunch:
    """Load German credit as prepared by Lee et al.: applicants under 25 against older ones.

    Parameters
    ----------
    split : int, default=0
        Which of the ten divisions into training and test rows, from 0 to 9.
    version : {2022, 2023}, default=2022
        The study: 57 features, or 59.
    data_home : path, optional
        Folder to look in, in place of ``FAIRPCA_DATA`` and the user's cache.

    Returns
    -------
    sklearn.utils.Bunch
        As :func:`load_compas`; 700 training rows, ``sensitive_features`` ("25 and older",
        "under 25").

    Examples
    --------
    >>> from fairpca.datasets import load_german
    >>> load_german(version=2023).data.shape  # doctest: +SKIP
    (700, 59)
    """
    if version not in (2022, 2023):
        raise ValueError(f"version={version!r} is not known: pass version=2022 or version=2023.")
    return _load_split("german" if version == 2022 else "german_2023", split, data_home)


def load_adult(*, split: int = 0, data_home: PathLike | None = None) -> Bunch:
    """Load Adult as prepared by Lee et al.: incomes of women and men.

    Parameters
    ----------
    split : int, default=0
        Which of the ten divisions into training and test rows, from 0 to 9.
    data_home : path, optional
        Folder to look in, in place of ``FAIRPCA_DATA`` and the user's cache.

    Returns
    -------
    sklearn.utils.Bunch
        As :func:`load_compas`; 1582 training rows of 97 features, ``sensitive_features``
        ("female", "male").

    Examples
    --------
    >>> from fairpca.datasets import load_adult
    >>> load_adult().data.shape  # doctest: +SKIP
    (1582, 97)
    """
    return _load_split("adult", split, data_home)


def load_vu(
    name: Literal["biodeg", "wine", "german_credit"], *, data_home: PathLike | None = None
) -> Bunch:
    """Load a table of Vu et al., standardised as in their experiments.

    Parameters
    ----------
    name : {"biodeg", "wine", "german_credit"}
        1055 chemicals, 6497 wines, or 1000 applicants for a credit.
    data_home : path, optional
        Folder to look in, in place of ``FAIRPCA_DATA`` and the user's cache.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (standardised; constant columns are left out), ``target``, ``sensitive_features``
        ("0", "1": the codes of the file), ``feature_names``, ``groups``, ``description``.

    Examples
    --------
    >>> from fairpca.datasets import load_vu
    >>> load_vu("wine").data.shape  # doctest: +SKIP
    (6497, 11)
    """
    if name not in ("biodeg", "wine", "german_credit"):
        raise ValueError(f"name={name!r} is not known: pass 'biodeg', 'wine' or 'german_credit'.")
    names, table = _read_table(name, data_home)
    varying = np.flatnonzero(table[:, :-2].std(axis=0) > 0)
    data = table[:, varying]
    return make_bunch(
        (data - data.mean(axis=0)) / data.std(axis=0),
        table[:, -1].astype(int).astype(str),
        [names[j] for j in varying],
        STUDY_FILES[name].description,
        target=table[:, -2].astype(int),
    )


def pack_splits(folder: PathLike, out: PathLike) -> Path:
    """Pack the text files of Lee et al. into the archive that the loaders read.

    Parameters
    ----------
    folder : path
        Where ``train_0.csv`` to ``train_9.csv`` and ``test_0.csv`` to ``test_9.csv`` are.
    out : path
        The archive to write, for example ``compas.npz``.

    Returns
    -------
    Path
        The archive; put it where the loader's message says.
    """
    arrays: dict[str, Any] = {
        f"{part}_{i}": np.loadtxt(Path(folder) / f"{part}_{i}.csv", delimiter=",")
        for part in ("test", "train")
        for i in range(10)
    }
    with replacing(Path(out)) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **arrays)
    return Path(out)


def _load_split(key: str, split: int, data_home: PathLike | None) -> Bunch:
    if split not in range(10):
        raise ValueError(f"split={split!r} is not known: pass an integer from 0 to 9.")
    with np.load(locate_file(STUDY_FILES[key], data_home), allow_pickle=False) as archive:
        train, test = archive[f"train_{split}"], archive[f"test_{split}"]
    labels = np.array(_LABELS[key])
    codes, test_codes = (rows[:, -1].astype(int) for rows in (train, test))
    return make_bunch(
        train[:, :-2],
        labels[codes],
        [f"x{j}" for j in range(train.shape[1] - 2)],
        STUDY_FILES[key].description,
        target=train[:, -2].astype(int),
        test_data=test[:, :-2],
        test_target=test[:, -2].astype(int),
        test_sensitive_features=labels[test_codes],
    )


def _read_table(key: str, data_home: PathLike | None) -> tuple[list[str], NDArray[Any]]:
    """Names of columns and numbers of a compressed table."""
    with gzip.open(locate_file(STUDY_FILES[key], data_home), "rt", encoding="utf-8") as stream:
        names = next(csv.reader(stream))
        table = np.loadtxt(stream, delimiter=",")
    return [name.strip('"') for name in names], table
