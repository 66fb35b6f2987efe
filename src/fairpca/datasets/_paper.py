"""The tables of the paper: TCRED, LSAC and LFW."""

import hashlib
import os
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_file, get_data_home
from sklearn.utils import Bunch

from fairpca.datasets._bundled import described, make_bunch

PathLike = str | os.PathLike[str]

AUTHORS = "https://raw.githubusercontent.com/GuilhermePelegrina/Datasets/main/FPCA/"
# Checksums of the files, or of the content of an archive.
SHA256 = {
    "default_degree.csv": "c58f7df737cb7953d9022cf9487cf8001c0417ae97bd308301ad733f20c88fc3",
    "lsac.csv": "21091394832942e0c40eda29bd2ec7cecc644e010486c90c544788f6173cf317",
    "lfw.npz": "96270e26db2f4fef2ee681b6f0445c934807efb39220ad30924fe54e5946e5dd",
}
_LSAC_COLUMNS = (
    "zfygpa", "zgpa", "DOB_yr", "fulltime", "sex", "race", "cluster", "fam_inc", "lsat", "ugpa",
    "index6040", "bar",
)  # fmt: skip


def load_tcred(
    *, balanced: bool = False, prepare: bool = True, data_home: PathLike | None = None
) -> Bunch:
    """Load TCRED: 30000 credit card clients, higher against lower education.

    Parameters
    ----------
    balanced : bool, default=False
        Keep only the first rows of each group, as many as the smaller group has.
    prepare : bool, default=True
        Standardise the columns over the rows kept, as in the paper.
    data_home : path, optional
        Folder to look in and to download to: by default the one that the environment variable
        ``FAIRPCA_DATA`` names, or ``fairpca`` in scikit-learn's data home.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (30000 x 22), ``sensitive_features`` ("higher", "lower"), ``target``.
    """
    with _checked_file("default_degree.csv", data_home).open(encoding="utf-8") as stream:
        next(stream)  # the X-codes; the names are on the second line
        names = next(stream).strip().split(",")
        table = np.loadtxt(stream, delimiter=",")
    kept = [j for j, name in enumerate(names[:-1]) if name not in ("ID", "EDUCATION")]
    return make_bunch(
        table[:, kept],
        np.where(np.isin(table[:, names.index("EDUCATION")], (1, 2)), "higher", "lower"),
        [names[j] for j in kept],
        described("tcred"),
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
        Keep the 2825 students of neither race with the white ones, as the paper says, or drop
        them, as its authors' script does.
    balanced, prepare, data_home
        As for :func:`load_tcred`.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (n x 10, of rank 9), ``sensitive_features`` ("black", "white and other" or
        "white"), ``race`` ("black", "other", "white"), ``target``.
    """
    if other not in ("with_white", "drop"):
        raise ValueError(f"other={other!r} is not known: pass other='with_white' or other='drop'.")
    table = np.loadtxt(_checked_file("lsac.csv", data_home), delimiter=",")
    codes = table[:, _LSAC_COLUMNS.index("race")].astype(int)
    race = np.array(["white", "black", "other"])[codes - 1]
    rest = "white and other"
    note = ""
    if other == "drop":
        rest = "white"
        note = " Rows of race other were dropped."
        table = table[race != "other"]
        race = race[race != "other"]
    kept = [j for j, name in enumerate(_LSAC_COLUMNS[:-1]) if name != "race"]
    return make_bunch(
        table[:, kept],
        np.where(race == "black", "black", rest),
        [_LSAC_COLUMNS[j] for j in kept],
        described("lsac") + note,
        balanced=balanced,
        standardize=prepare,
        race=race,
        target=table[:, -1].astype(int),
    )


def load_lfw(
    *, balanced: bool = False, prepare: bool = True, data_home: PathLike | None = None
) -> Bunch:
    """Load LFW: 13232 faces of 49 x 36 pixels, female against male.

    There is no single file to download; if ``lfw.npz`` is missing, the error says how to make it.
    The returned matrix takes 190 MB.

    Parameters
    ----------
    prepare : bool, default=True
        Divide the pixels by 255, as in the paper (the estimators do the centring).
    balanced, data_home
        As for :func:`load_tcred`.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (13232 x 1764), ``sensitive_features`` ("female", "male"), ``asian``, ``black``,
        ``white`` (boolean, not exclusive), ``race`` (one of these names where exactly one of the
        three is set, else "unclear"), ``image_shape``.
    """
    with np.load(_checked_file("lfw.npz", data_home), allow_pickle=False) as archive:
        arrays = dict(archive)
    height, width = (int(side) for side in arrays["image_shape"])
    races = np.array(["asian", "black", "white"])
    flags = np.column_stack([arrays[race].astype(bool) for race in races])
    bunch = make_bunch(
        arrays["images"] / (float(arrays["scale"]) * (255.0 if prepare else 1.0)),
        np.where(arrays["sex"] == 1, "male", "female"),
        [f"pixel_{i}_{j}" for i in range(height) for j in range(width)],
        described("lfw") + (" Pixels were divided by 255." if prepare else ""),
        balanced=balanced,
        race=np.where(flags.sum(axis=1) == 1, races[flags.argmax(axis=1)], "unclear"),
        **dict(zip(races.tolist(), flags.T, strict=True)),
    )
    bunch.image_shape = (height, width)
    return bunch


def _checked_file(name: str, data_home: PathLike | None) -> Path:
    """The path of a data file with the right checksum; it is downloaded if it is not there."""
    home = data_home or os.environ.get("FAIRPCA_DATA") or f"{get_data_home()}/fairpca"
    folder = Path(home).expanduser()
    url = AUTHORS + name
    path = folder / name
    if path.is_file():
        if (actual := digest(path)) == SHA256[name]:
            return path
        raise ValueError(
            f"{path} is not the file the paper used: its sha256 is {actual}, expected "
            f"{SHA256[name]}. It was altered or only partly copied. Delete it and call the loader "
            "again."
        )
    by_hand = (
        f"Put {name} into {folder}, or into a folder of your choice named by the environment "
        "variable FAIRPCA_DATA or by data_home='that/folder'."
    )
    if name == "lfw.npz":
        raise FileNotFoundError(
            f"{name} is not at hand. Its source publishes 13232 text images, not this archive: get "
            "the folder data/images of https://github.com/mhli971/Fair-PCA and pack it, in a "
            "checkout of fairpca, with python -m reproduction.pack_lfw Fair-PCA/data/images "
            f"{folder}. {by_hand}"
        )
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return Path(fetch_file(url, folder, name, SHA256[name], n_retries=0))
    except OSError as error:
        with suppress(OSError):  # they are not empty
            for path in new:
                path.rmdir()
        raise FileNotFoundError(
            f"{name} is not at hand, and {url} could not be downloaded ({error}). {by_hand}"
        ) from error


def digest(path: Path) -> str:
    """The checksum of a file, or of an archive's content, since compression may differ."""
    if path.suffix != ".npz":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    content = hashlib.sha256()
    try:
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                content.update(name.encode() + archive.read(name))
    except (zipfile.BadZipFile, OSError):
        return "unreadable"
    return content.hexdigest()
