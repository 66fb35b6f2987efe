"""LFW as its source distributes it, as 13232 text images, packed into one checked archive."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from fairpca._tables.atomic import replacing
from fairpca.datasets import _files


def pack_lfw(images: str | os.PathLike[str], target: str | os.PathLike[str] | None = None) -> Path:
    """Pack the text images that the source of LFW distributes into the ``lfw.npz`` read here.

    Pixels are averages of three colours, so three times a pixel is a whole number and packing loses
    nothing. The result is compared with the checksum before it takes its name.

    Parameters
    ----------
    images : path
        Folder with ``img0.txt`` ... ``img13231.txt``, ``sex.txt``, ``asian.txt``, ``black.txt`` and
        ``white.txt``: ``data/images`` of https://github.com/mhli971/Fair-PCA.
    target : path, optional
        Folder to put ``lfw.npz`` into; the per-user cache by default.

    Returns
    -------
    pathlib.Path
        The file made.

    Examples
    --------
    >>> from fairpca.datasets import pack_lfw
    >>> pack_lfw("Fair-PCA/data/images")  # doctest: +SKIP
    """
    file = _files.FILES["lfw"]
    source = Path(images).expanduser()
    labels = {}
    for name in ("sex", "asian", "black", "white"):
        labels[name] = np.loadtxt(_text_file(source, f"{name}.txt"), ndmin=1).astype(np.uint8)
    pixels = [
        np.loadtxt(_text_file(source, f"img{i}.txt"), ndmin=2) for i in range(len(labels["sex"]))
    ]
    arrays: dict[str, Any] = {
        "images": np.rint([3.0 * image.ravel() for image in pixels]).astype(np.uint16),
        **labels,
        "image_shape": np.array(pixels[0].shape, dtype=np.int64),
        "scale": np.array(3, dtype=np.int64),
    }
    folder = _files.cache_folder(file) if target is None else Path(target).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / file.name) as temporary:
        np.savez_compressed(temporary, allow_pickle=False, **arrays)
        if problem := _files.problem_with(temporary, file):
            raise ValueError(
                f"The images of {source} do not give the {file.name} the paper used: {problem}. "
                "Get the folder data/images of https://github.com/mhli971/Fair-PCA again."
            )
    return folder / file.name


def _text_file(folder: Path, name: str) -> Path:
    path = folder / name
    if not path.is_file():
        raise FileNotFoundError(
            f"{folder} has no {name}: pass the folder data/images of "
            "https://github.com/mhli971/Fair-PCA, for example "
            "pack_lfw('Fair-PCA/data/images')."
        )
    return path
