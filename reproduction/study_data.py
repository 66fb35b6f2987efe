"""The data of other studies of fair PCA, as their authors prepared them.

Every loader looks in the folder ``data_home``, by default the one that the environment variable
``FAIRPCA_DATA`` names, and returns a Bunch with ``data``, ``sensitive_features``,
``feature_names``, ``groups`` and ``description``. Those of Lee et al. have ten divisions into
training and test rows (``split``, from 0 to 9): the Bunch also has ``target``, ``test_data``,
``test_target`` and ``test_sensitive_features``.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from reproduction.study_files import STUDY_FILES, locate
from reproduction.tools import Array, PathLike, replacing

_LABELS = {
    "compas": ("others", "caucasian"),
    "german": ("under 25", "25 and older"),
    "german_2023": ("under 25", "25 and older"),
    "adult": ("female", "male"),
}


def read_results(key: str, data_home: PathLike | None = None) -> list[dict[str, str]]:
    """A study's published results: one mapping from column to text for each row."""
    with locate(key, data_home).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def load_credit(
    *,
    by: Literal["education", "education_and_sex"] = "education",
    data_home: PathLike | None = None,
) -> Bunch:
    """Credit data of Tantipongpipat et al.: 30000 clients, 23 columns, three or four groups.

    Examples
    --------
    >>> from reproduction.study_data import load_credit
    >>> load_credit().groups.tolist()  # doctest: +SKIP
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
    return _bunch("credit", data, sensitive, names)


def load_compas(*, split: int = 0, data_home: PathLike | None = None) -> Bunch:
    """COMPAS as prepared by Lee et al.: 1727 defendants, 11 columns, Caucasian against others."""
    return _load_split("compas", split, data_home)


def load_german(
    *, split: int = 0, version: Literal[2022, 2023] = 2022, data_home: PathLike | None = None
) -> Bunch:
    """German credit as prepared by Lee et al.: 700 applicants, under 25 against older.

    ``version`` is the study: that of 2022 has 57 columns, that of 2023 has 59.
    """
    if version not in (2022, 2023):
        raise ValueError(f"version={version!r} is not known: pass version=2022 or version=2023.")
    return _load_split("german" if version == 2022 else "german_2023", split, data_home)


def load_adult(*, split: int = 0, data_home: PathLike | None = None) -> Bunch:
    """Adult as prepared by Lee et al.: 1582 people, 97 columns, women against men."""
    return _load_split("adult", split, data_home)


def load_vu(
    name: Literal["biodeg", "wine", "german_credit"], *, data_home: PathLike | None = None
) -> Bunch:
    """A table of Vu et al.: 1055 chemicals, 6497 wines, or 1000 applicants for a credit.

    The columns are standardised as in their experiments, constant ones left out; the labels of the
    groups are the codes of the file, "0" and "1".
    """
    if name not in ("biodeg", "wine", "german_credit"):
        raise ValueError(f"name={name!r} is not known: pass 'biodeg', 'wine' or 'german_credit'.")
    names, table = _read_table(name, data_home)
    varying = np.flatnonzero(table[:, :-2].std(axis=0) > 0)
    data = table[:, varying]
    return _bunch(
        name,
        (data - data.mean(axis=0)) / data.std(axis=0),
        table[:, -1].astype(int).astype(str),
        [names[j] for j in varying],
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
    with replacing(Path(out)) as temporary:
        np.savez_compressed(temporary, allow_pickle=False, **arrays)
    return Path(out)


def _load_split(key: str, split: int, data_home: PathLike | None) -> Bunch:
    if split not in range(10):
        raise ValueError(f"split={split!r} is not known: pass an integer from 0 to 9.")
    with np.load(locate(key, data_home), allow_pickle=False) as archive:
        train, test = archive[f"train_{split}"], archive[f"test_{split}"]
    labels = np.array(_LABELS[key])
    codes, test_codes = (rows[:, -1].astype(int) for rows in (train, test))
    return _bunch(
        key,
        train[:, :-2],
        labels[codes],
        [f"x{j}" for j in range(train.shape[1] - 2)],
        target=train[:, -2].astype(int),
        test_data=test[:, :-2],
        test_target=test[:, -2].astype(int),
        test_sensitive_features=labels[test_codes],
    )


def _bunch(
    key: str, data: Array, sensitive: NDArray[np.str_], names: list[str], **fields: Any
) -> Bunch:
    return Bunch(
        data=data,
        sensitive_features=sensitive,
        feature_names=names,
        groups=np.unique(sensitive),
        description=STUDY_FILES[key].description,
        **fields,
    )


def _read_table(key: str, data_home: PathLike | None) -> tuple[list[str], NDArray[Any]]:
    """Names of columns and numbers of a compressed table."""
    with gzip.open(locate(key, data_home), "rt", encoding="utf-8") as stream:
        names = next(csv.reader(stream))
        table = np.loadtxt(stream, delimiter=",")
    return [name.strip('"') for name in names], table
