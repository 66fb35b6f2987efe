"""TCRED without a download: its licence allows a copy here; data/README.md has the source."""

from __future__ import annotations

import gzip
from pathlib import Path
from tempfile import TemporaryDirectory

from sklearn.utils import Bunch

from fairpca import datasets

PACKED = Path(__file__).parent / "data" / "default_degree.csv.gz"


def unpack_tcred(folder: Path) -> None:
    """Write the table into a folder, under the name that the loader of the library looks for."""
    (folder / PACKED.stem).write_bytes(gzip.decompress(PACKED.read_bytes()))


def load_tcred(balanced: bool = False) -> Bunch:
    """:func:`fairpca.datasets.load_tcred`, which checks the checksum, without a download."""
    with TemporaryDirectory() as folder:
        unpack_tcred(Path(folder))
        return datasets.load_tcred(balanced=balanced, data_home=folder)
