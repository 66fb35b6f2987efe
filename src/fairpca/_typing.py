"""Types that many signatures use, and option values that several layers share."""

from collections.abc import Hashable
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.intp]  # for each row, the number of its label among the sorted labels
Label: TypeAlias = Hashable  # names a group or a class: text, a number, a date, ...
Labels: TypeAlias = NDArray[Any]

#: The point that second moments are taken about: the mean of all rows, each group's own mean, or
#: the mean of the group means, in which each group counts once.
Center = Literal["overall", "group", "balanced"]
