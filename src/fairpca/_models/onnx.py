"""The transform as an ONNX graph: missing values, a division, a subtraction, a matrix product."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairpca import __version__
from fairpca._tables.atomic import FileName, replacing

_OPSET, _IR = 17, 8  # old enough for every runtime of the last years


def write_projection(
    components: NDArray[Any],
    mean: NDArray[Any],
    path: str | os.PathLike[str],
    scale: NDArray[Any] | None = None,
    fill: NDArray[Any] | None = None,
    reads: Sequence[FileName] = (),
) -> None:
    """Write ``(X / scale - mean) @ components.T``; float64: large offsets keep their digits.

    ``fill`` stands in for missing values.
    """
    try:
        import onnx
        from onnx import TensorProto, helper, numpy_helper
    except ImportError as error:
        raise ImportError(
            'exporting to ONNX needs onnx; install it with pip install "fairpca[onnx]".'
        ) from error
    r, d = components.shape
    constants = {"mean": mean, "components": components.T}
    nodes, last = [], "X"
    if fill is not None:
        constants["fill"] = fill
        nodes.append(helper.make_node("IsNaN", [last], ["missing"]))
        nodes.append(helper.make_node("Where", ["missing", "fill", last], ["filled"]))
        last = "filled"
    if scale is not None:
        constants["scale"] = scale
        nodes.append(helper.make_node("Div", [last, "scale"], ["scaled"]))
        last = "scaled"
    nodes.append(helper.make_node("Sub", [last, "mean"], ["centred"]))
    nodes.append(helper.make_node("MatMul", ["centred", "components"], ["scores"]))
    graph = helper.make_graph(
        nodes,
        "fairpca",
        [helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["rows", d])],
        [helper.make_tensor_value_info("scores", TensorProto.DOUBLE, ["rows", r])],
        [
            numpy_helper.from_array(np.ascontiguousarray(values, dtype=np.float64), name)
            for name, values in constants.items()
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
    with replacing(path, reads) as temporary:
        onnx.save_model(model, temporary)
