"""Model files with other content than the library writes, and its private names for them."""

from __future__ import annotations

import json

import pytest

from fairpca._models.safetensors import ModelPipeline, _checksum, _text, read_extra, write_model

__all__ = ["ModelPipeline", "read_extra", "rewrite", "write_model"]


def rewrite(path, change):
    """Write a model file again, with a right checksum, after ``change(header, arrays)``.

    A text that ``change`` returns is written instead of the header.
    """
    safetensors = pytest.importorskip("safetensors", reason="needs the model extra")
    from safetensors.numpy import save_file

    with safetensors.safe_open(path, framework="numpy") as file:
        header = json.loads(file.metadata()["fairpca"])
        arrays = {name: file.get_tensor(name).copy() for name in file.keys()}  # noqa: SIM118
    header.pop("sha256")
    text = change(header, arrays)
    if text is None:
        text = _text(header | {"sha256": _checksum(header, arrays)})
    save_file(arrays, path, metadata={"fairpca": text})
