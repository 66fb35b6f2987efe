"""Where the paper's data files are, and whether they are the right ones.

A file is looked for in three places, in this order: the folder named by the environment variable
``FAIRPCA_DATA``, the per-user cache, the file's own address. A file that is found must have the
checksum of the table ``FILES``. This is the only file of the library that imports pooch, and it
does so only when the first place does not hold the file.

``pooch.create`` is not used. It needs pooch even for a file in ``FAIRPCA_DATA``, downloads to that
folder, and replaces a file of another checksum there without asking.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairpca._tables.atomic import replacing

ENVIRONMENT_VARIABLE = "FAIRPCA_DATA"
_AUTHORS = "https://raw.githubusercontent.com/GuilhermePelegrina/Datasets/main/FPCA/"


@dataclass(frozen=True)
class PaperFile:
    """One file: its checksum, its address, what it holds, and how to get it by hand."""

    name: str
    sha256: str
    description: str
    url: str = ""
    by_hand: str = ""
    # Archives only: the checksum of what is inside, see `digest_of_members`.
    members_sha256: str = ""
    # Files compressed by gzip only: the checksum of the text.
    text_sha256: str = ""


FILES = {
    "tcred": PaperFile(
        name="default_degree.csv",
        sha256="c58f7df737cb7953d9022cf9487cf8001c0417ae97bd308301ad733f20c88fc3",
        url=_AUTHORS + "default_degree.csv",
        description=(
            "TCRED: default of credit card clients in Taiwan, 2005. I-Cheng Yeh, UCI Machine "
            "Learning Repository, doi 10.24432/C55S3H, licence CC BY 4.0; file from "
            "https://github.com/GuilhermePelegrina/Datasets. Sensitive attribute: EDUCATION, 1 "
            "(graduate school) and 2 (university) = higher, every other code = lower. Attributes: "
            "all columns but ID, EDUCATION and the label. The label (default in the next month) "
            "is in target."
        ),
    ),
    "lsac": PaperFile(
        name="lsac.csv",
        sha256="21091394832942e0c40eda29bd2ec7cecc644e010486c90c544788f6173cf317",
        url=_AUTHORS + "lsac.csv",
        description=(
            "LSAC: law students in the United States, National Longitudinal Bar Passage Study. L. "
            "F. Wightman, Law School Admission Council, 1998; file from "
            "https://github.com/GuilhermePelegrina/Datasets; we know of no licence: use it for "
            "research and do not redistribute it. Sensitive attribute: race; all three races are "
            "in race. Attributes: all columns but race and the label; index6040 is a combination "
            "of LSAT and UGPA, so the data have rank 9. The label (bar passed) is in target."
        ),
    ),
    "lfw": PaperFile(
        name="lfw.npz",
        sha256="13083b6af344e02080ce5e43add7f41f6ed9dd71a9bcacdffe8ec8a9313985aa",
        by_hand=(
            "Its source publishes 13232 text images, not this archive: get the folder data/images "
            "of https://github.com/mhli971/Fair-PCA and pack it with "
            "fairpca.datasets.pack_lfw('Fair-PCA/data/images')"
        ),
        members_sha256="96270e26db2f4fef2ee681b6f0445c934807efb39220ad30924fe54e5946e5dd",
        description=(
            "LFW: Labeled Faces in the Wild, 13232 faces of 49 x 36 grey pixels. G. B. Huang, M. "
            "Ramesh, T. Berg and E. Learned-Miller, University of Massachusetts, Amherst, TR "
            "07-49, 2007; cropped images and labels as distributed with the fair PCA of S. Samadi "
            "et al., 2018 (https://github.com/mhli971/Fair-PCA). We know of no licence, and "
            "the photographs belong to their owners: use them for research and do not "
            "redistribute them. Sensitive attribute: sex. Further labels, not used in the paper: "
            "asian, black, white. They are three separate yes/no labels: 9572 faces carry exactly "
            "one of them, 3632 several, 28 none."
        ),
    ),
}


def locate(key: str, data_home: str | os.PathLike[str] | None = None) -> Path:
    """Return the path of a checked data file, downloading it where necessary.

    Parameters
    ----------
    key : str
        A key of ``FILES``.
    data_home : path, optional
        Look here, and download to here, in place of ``FAIRPCA_DATA`` and the per-user cache.

    Raises
    ------
    ValueError
        If a file is there but is not the one of the table.
    FileNotFoundError
        If the file is in none of the places and cannot be downloaded.
    """
    return locate_file(FILES[key], data_home)


def locate_file(file: PaperFile, data_home: str | os.PathLike[str] | None = None) -> Path:
    """The same for any file with a checksum."""
    named = _named_folder() if data_home is None else None
    if named is not None and (named / file.name).is_file():
        return _checked_path(named / file.name, file)
    folder = cache_folder(file) if data_home is None else Path(data_home).expanduser()
    if (folder / file.name).is_file():
        return _checked_path(folder / file.name, file)
    return _download(file, folder)


def _named_folder() -> Path | None:
    """Folder of the environment variable; it is an error if it does not exist."""
    name = os.environ.get(ENVIRONMENT_VARIABLE, "")
    if not name:
        return None
    folder = Path(name).expanduser()
    if not folder.is_dir():
        names = ", ".join(file.name for file in FILES.values())
        raise FileNotFoundError(
            f"The environment variable {ENVIRONMENT_VARIABLE} names {name!r}, which is not a "
            f"folder. Set it to the folder that holds {names}, or unset it."
        )
    return folder


def cache_folder(file: PaperFile) -> Path:
    """Per-user cache folder, which pooch places according to the operating system."""
    return Path(_pooch(file).os_cache("fairpca"))


def _pooch(file: PaperFile) -> Any:
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f"{file.name} is not in a folder named by {ENVIRONMENT_VARIABLE}, and looking in the "
            'cache or downloading needs pooch: pip install "fairpca[data]". Without pooch, put '
            f"{file.name} into a folder and pass data_home='that/folder'."
        ) from error
    return pooch


def digest_of_members(path: Path) -> str:
    """Hash what a zip archive holds.

    Compression libraries write different bytes for the same content, so an archive packed on
    another machine is recognised by its members instead.
    """
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(path) as archive:
            for name in sorted(archive.namelist()):
                digest.update(name.encode())
                with archive.open(name) as member:
                    while piece := member.read(1 << 20):
                        digest.update(piece)
    except (zipfile.BadZipFile, OSError):
        return "unreadable"
    return digest.hexdigest()


def _digest_of_text(path: Path) -> str:
    """Hash what gzip has compressed, for the same reason."""
    try:
        return hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest()
    except (OSError, EOFError):
        return "unreadable"


def problem_with(path: Path, file: PaperFile) -> str:
    """Say how a file differs from the one of the table; the empty string if it does not."""
    with path.open("rb") as stream:
        actual = hashlib.file_digest(stream, "sha256").hexdigest()
    if actual == file.sha256:
        return ""
    if file.members_sha256 and digest_of_members(path) == file.members_sha256:
        return ""
    if file.text_sha256 and _digest_of_text(path) == file.text_sha256:
        return ""
    return f"its sha256 is {actual}, expected {file.sha256}"


def _checked_path(path: Path, file: PaperFile) -> Path:
    if problem := problem_with(path, file):
        remedy = "it will be downloaded again" if file.url else file.by_hand
        raise ValueError(
            f"{path} is not the file the paper used: {problem}. It was altered or only partly "
            f"copied. Delete it and call the loader again: {remedy}."
        )
    return path


def _download(file: PaperFile, folder: Path) -> Path:
    """Fetch a file; it takes its name only once its checksum is right."""
    by_hand = (
        f"{file.by_hand or 'Download ' + file.url}. Put {file.name} into {folder}, or into a "
        f"folder of your choice named by the environment variable {ENVIRONMENT_VARIABLE} or by "
        "data_home='that/folder'."
    )
    if not file.url:
        raise FileNotFoundError(f"{file.name} is not at hand. {by_hand}")
    failed = f"{file.name} is not at hand. It could not be downloaded from {file.url}"
    fetch = _pooch(file).HTTPDownloader()
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / file.name) as temporary:
        try:
            fetch(file.url, str(temporary), None)
        except OSError as error:
            raise FileNotFoundError(f"{failed} ({error}). {by_hand}") from error
        if problem := problem_with(temporary, file):
            raise ValueError(f"{failed} ({problem}). {by_hand}")
    return folder / file.name
