"""Make ``lfw.npz``, which :func:`fairpca.datasets.load_lfw` reads, from the source's text images.

Get the folder ``data/images`` of https://github.com/mhli971/Fair-PCA, then::

    python -m reproduction.pack_lfw Fair-PCA/data/images folder/of/FAIRPCA_DATA
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from fairpca.datasets import load_lfw
from reproduction.tools import PathLike, replacing, writable_folder


def pack_lfw(images: PathLike, target: PathLike) -> Path:
    """Pack the text images into ``lfw.npz``, and check that they are those of the paper.

    Pixels are averages of three colours, so three times a pixel is a whole number and packing loses
    nothing.

    Parameters
    ----------
    images : path
        Folder with ``img0.txt`` ... ``img13231.txt``, ``sex.txt``, ``asian.txt``, ``black.txt`` and
        ``white.txt``.
    target : path
        Folder to put ``lfw.npz`` into, for example the one that ``FAIRPCA_DATA`` names.

    Returns
    -------
    Path
        The file made.

    Raises
    ------
    ValueError
        If the images are not those that the paper used.
    """
    source, path = Path(images).expanduser(), writable_folder(Path(target)) / "lfw.npz"
    labels = {
        name: np.loadtxt(_text_file(source, f"{name}.txt"), ndmin=1).astype(np.uint8)
        for name in ("sex", "asian", "black", "white")
    }
    pixels = [
        np.loadtxt(_text_file(source, f"img{i}.txt"), ndmin=2) for i in range(len(labels["sex"]))
    ]
    arrays: dict[str, Any] = {
        "images": np.rint([3.0 * image.ravel() for image in pixels]).astype(np.uint16),
        **labels,
        "image_shape": np.array(pixels[0].shape, dtype=np.int64),
        "scale": np.array(3, dtype=np.int64),
    }
    with replacing(path) as temporary:
        np.savez_compressed(temporary, allow_pickle=False, **arrays)
        try:
            load_lfw(data_home=temporary.parent)  # compares the checksum
        except ValueError as error:
            raise ValueError(
                f"The images of {source} do not give the lfw.npz the paper used. Get the folder "
                "data/images of https://github.com/mhli971/Fair-PCA again."
            ) from error
    return path


def _text_file(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} has no {name}: pass the folder data/images of "
            "https://github.com/mhli971/Fair-PCA, for example "
            "python -m reproduction.pack_lfw Fair-PCA/data/images out."
        )
    return path


if __name__ == "__main__":
    print(pack_lfw(*sys.argv[1:]))
