"""Files of other studies: checksums, what they hold, and where their authors publish them.

Nothing of it is downloaded; the error for a missing file says how to put it into place.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

from reproduction.tools import PathLike

_MULTI = "https://github.com/SDPforAll/multiCriteriaDimReduction"
_MANIFOLD = "https://github.com/nick-jhlee/fair-manifold-pca"
_STREAMING = "https://github.com/HanseulJo/fair-streaming-pca"
_ROBUST = "https://github.com/hieuvt29/distributionally_robust_fair_pca"


@dataclass(frozen=True)
class StudyFile:
    """A file of a study.

    Compression libraries write different bytes for the same content, so an archive (``.npz``) and a
    compressed table (``.csv.gz``) may also be recognised by ``content_sha256``, the checksum of
    what is inside.
    """

    name: str
    sha256: str
    description: str
    by_hand: str
    content_sha256: str = ""


def locate(key: str, data_home: PathLike | None = None) -> Path:
    """The path of a file in ``data_home``, or in the folder ``FAIRPCA_DATA``, once it is checked.

    Raises
    ------
    FileNotFoundError
        If the file is not there.
    ValueError
        If it is another file.
    """
    file = STUDY_FILES[key]
    folder = Path(data_home or os.environ.get("FAIRPCA_DATA") or ".").expanduser()
    path = folder / file.name
    if not path.is_file():
        raise FileNotFoundError(
            f"{file.name} is not at hand. {file.by_hand}. Put {file.name} into a folder of your "
            "choice and name it by the environment variable FAIRPCA_DATA or by "
            "data_home='that/folder'."
        )
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest != file.sha256 and digest_of_content(path) != file.content_sha256:
        raise ValueError(
            f"{path} is not the file of the study: its sha256 is {digest}, expected {file.sha256}. "
            f"It was altered or only partly copied. {file.by_hand}."
        )
    return path


def digest_of_content(path: Path) -> str:
    """The checksum of what an archive or a compressed table holds."""
    try:
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                digest = hashlib.sha256()
                for name in sorted(archive.namelist()):
                    digest.update(name.encode() + archive.read(name))
                return digest.hexdigest()
        return hashlib.sha256(gzip.decompress(path.read_bytes())).hexdigest()
    except (zipfile.BadZipFile, OSError, EOFError):
        return "unreadable"


def _results_of_multi(name: str, sha256: str) -> StudyFile:
    return StudyFile(
        name=f"studies/tantipongpipat2019/{name}.csv",
        sha256=sha256,
        by_hand=f"Its authors publish it at {_MULTI}",
        description="Published results of U. Tantipongpipat et al., NeurIPS 2019.",
    )


def _splits(
    study: str, name: str, folder: str, sha256: str, content_sha256: str, description: str
) -> StudyFile:
    path = f"studies/{study}/{name}.npz"
    return StudyFile(
        name=path,
        sha256=sha256,
        content_sha256=content_sha256,
        by_hand=(
            f"Its authors publish ten pairs of text files, not this archive: get {folder} and pack "
            f"it with reproduction.study_data.pack_splits('{folder.rsplit('/', 1)[1]}', "
            f"'{name}.npz')"
        ),
        description=description
        + " Ten divisions into 70 % for training and 30 % for testing; features were standardised "
        "by the training rows. Licence of the repository: see there.",
    )


def _table_of_robust(name: str, sha256: str, content_sha256: str, description: str) -> StudyFile:
    return StudyFile(
        name=f"studies/vu2022/{name}.csv.gz",
        sha256=sha256,
        content_sha256=content_sha256,
        by_hand=f"Get data/{name}.csv of {_ROBUST} and compress it with gzip",
        description=f"{description} As prepared by H. Vu et al., ICLR 2022 ({_ROBUST}). Sensitive "
        "attribute: the last column of the file; the one before it is in target.",
    )


_COMPAS = (
    "COMPAS: defendants in Broward County, Florida (ProPublica, 2016), 40 % of the rows, prepared "
    f"by J. Lee et al., AAAI 2022 ({_MANIFOLD}, datasets/COMPAS). Sensitive attribute: race, "
    "Caucasian against others. The label (recidivism within two years) is in target."
)
_GERMAN = (
    "German credit: 1000 applicants (H. Hofmann, UCI Machine Learning Repository, doi "
    "10.24432/C5NC77), prepared by {by}. Sensitive attribute: age, under 25 against 25 and older. "
    "The label (1: bad credit risk) is in target."
)
_ADULT = (
    "Adult: people of the United States census of 1994 (B. Becker and R. Kohavi, UCI Machine "
    "Learning Repository, doi 10.24432/C5XW20), 5 % of the rows, prepared by J. Lee et al., AAAI "
    f"2022 ({_MANIFOLD}, datasets/Adult). Sensitive attribute: sex. The label (income above 50000 "
    "dollars) is in target."
)

STUDY_FILES: dict[str, StudyFile] = {
    "credit": StudyFile(
        name="studies/tantipongpipat2019/credit.csv.gz",
        sha256="723c1bf866b383b716a32d14f1ca1f794666e95bc4320ebfc8e182fe4246d086",
        content_sha256="93aa9fb462ac27cbda923f07d4bbdf62783ce301101958738e2a1936bd150ae0",
        by_hand=f"Get the credit data of {_MULTI} and compress them with gzip",
        description=(
            "Default of credit card clients in Taiwan, 2005. I-Cheng Yeh, UCI Machine Learning "
            "Repository, doi 10.24432/C55S3H, licence CC BY 4.0; as prepared by U. Tantipongpipat "
            f"et al., NeurIPS 2019 ({_MULTI}): columns up to AGE were divided by their standard "
            "deviations, each of the blocks PAY, BILL_AMT and PAY_AMT by that of all its values. "
            "Attributes: all 23 columns, the sensitive ones too."
        ),
    ),
    "k3_variance": _results_of_multi(
        "k3maxminvar", "b299af416dc84e21218422b14096103f16c58e9b7ed8c36d670ebd4926dbfc61"
    ),
    "k3_loss": _results_of_multi(
        "k3maxminloss", "740092cc63916b0a1e82340226984c956aaf29423447224f6a32e57afcd0841e"
    ),
    "k3_nash": _results_of_multi(
        "k3NSW", "718f9d14aea847500b98a503549e5b5db4eaaa0eb43b91d8f9c5c85b454e5cb1"
    ),
    "k4_variance": _results_of_multi(
        "k4_maxminvar", "a38f80d42fff1dad45a5bd2897fda85c5ca0d70a62daf7e069418598ecbd1edb"
    ),
    "k4_loss": _results_of_multi(
        "k4_maxminloss", "7036ffe32bd4d98411a97a138a29702916dc0874ee25be7e97954b68b0a42a1f"
    ),
    "k4_nash": _results_of_multi(
        "k4_NSW", "c1b0a02c2c2435e50e572dffc33ddf4a0c2d25e2590fd493db5a331226c7bda6"
    ),
    "compas": _splits(
        "lee2022",
        "compas",
        f"{_MANIFOLD}/tree/main/datasets/COMPAS",
        "041ca74edcc8df8ea2d5a220280d839c50506e92f3d0e27a973dbd8c451cb6ce",
        "f4a2bb17163e7476f37901750d8b1dafb35dc3f7ed6ce9a58456bb601b9634b8",
        _COMPAS,
    ),
    "german": _splits(
        "lee2022",
        "german",
        f"{_MANIFOLD}/tree/main/datasets/German",
        "244543c6fb15b7bc0d84ebae2f029db487b0d61f271239b73aafb282ba50800f",
        "000edae75d6c5ca384f433284db1068885c4e5f7169a5373a3a61e7fe7eb9a68",
        _GERMAN.format(by=f"J. Lee et al., AAAI 2022 ({_MANIFOLD}, datasets/German)"),
    ),
    "adult": _splits(
        "lee2022",
        "adult",
        f"{_MANIFOLD}/tree/main/datasets/Adult",
        "15d52ca9567edef13ee4de361016bad93ac682f78f71ccdaf8a088189de4f122",
        "72e3c983c2aecf8ed16f76ecaa335ec41c9c1037b7b6390ed015502ecd3eef61",
        _ADULT,
    ),
    "german_2023": _splits(
        "lee2023",
        "german",
        f"{_STREAMING}/tree/main/downstream_tasks_fair_streaming_pca/datasets/German",
        "d97239ca2c1b75251b653e41a6b53b5c3c64e44d6ff3556f697c6f1aff67f7dd",
        "ae13ed7c7eb4a582242f9b2f36fe99219347c3ffde438522e031788b6b9b53ec",
        _GERMAN.format(by=f"J. Lee et al., NeurIPS 2023 ({_STREAMING})"),
    ),
    "lee2022": StudyFile(
        name="studies/lee2022/reference.csv",
        sha256="9357f341d1b216838ca51dbdaf0d7cfbbf9ef314b1d685b3f4070085cb8c0f5d",
        by_hand=f"It collects the results stored at {_MANIFOLD}, one row for each split",
        description="Published results of J. Lee et al., AAAI 2022.",
    ),
    "biodeg": _table_of_robust(
        "Biodeg_Data",
        "8ae0ee968a0e03f147283c52fc680617f4408335d1c3319ce95949bef9a4cdf4",
        "bcc1eb1c9cb30129de1be68ad8502b9ebe1dd1318ecc21c6b7f82e11cd68871d",
        "Biodegradation: 1055 chemicals (K. Mansouri et al., UCI, doi 10.24432/C5H60M).",
    ),
    "wine": _table_of_robust(
        "Wine_Quality_Data",
        "b25c7acd86a76286461b8c74d29ce1a18d5af09e57e71fbbfafcef50d8ac7cf3",
        "aa9cb850c02f8c0725d11990f60efa1ecd8f5e1f4425045932c33457b05bfcf5",
        "Wine quality: 6497 white and red wines (P. Cortez et al., UCI, doi 10.24432/C56S3T).",
    ),
    "german_credit": _table_of_robust(
        "German_Credit_Data",
        "d36ea612aa0c17d2876407d803e5400b6d57c3f3237ac53d1b3db5d56edf1a1d",
        "83b94c63bcbf07db03db61a477af95eae8da51953712352f09f6eb339eedc548",
        "German credit: 1000 applicants (H. Hofmann, UCI, doi 10.24432/C5NC77).",
    ),
}
