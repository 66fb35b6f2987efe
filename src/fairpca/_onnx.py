"""The transform as an ONNX graph: one subtraction and one matrix product."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca import __version__
from fairpca._files import replacing

_OPSET, _IR = 17, 8  # old enough for every runtime of the last years


def write_projection(
    components: NDArray[Any], mean: NDArray[Any], path: str | os.PathLike[str]
) -> None:
    """Write ``(X - mean) @ components.T``; float64, so that large offsets keep their digits."""
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise ImportError(
            'exporting to ONNX needs onnx; install it with pip install "fairpca[onnx]".'
        ) from error
    r, d = components.shape
    matrix = np.ascontiguousarray(components.T, dtype=np.float64)
    graph = helper.make_graph(
        [
            helper.make_node("Sub", ["X", "mean"], ["centred"]),
            helper.make_node("MatMul", ["centred", "components"], ["scores"]),
        ],
        "fairpca",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["rows", d])],
        [helper.make_tensor_value_info("scores", TensorProto.DOUBLE, ["rows", r])],
        [
            numpy_helper.from_array(np.asarray(mean, dtype=np.float64), "mean"),
            numpy_helper.from_array(matrix, "components"),
        ],
    )
    model = helper.make_model(
        graph,
        producer_name="fairpca",
        producer_version=__version__,
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR,
    )
    onnx.checker.check_model(model)
    with replacing(path) as temporary:
        onnx.save_model(model, temporary)
