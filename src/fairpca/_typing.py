"""The types that stand in many signatures, and the words of options that several layers share."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.intp]  # of groups: which of the sorted labels each row has
Labels: TypeAlias = NDArray[Any]

#: The mean that second moments are taken about.
Center = Literal["overall", "group"]
