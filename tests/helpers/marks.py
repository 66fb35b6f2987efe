"""Where and when tests run."""

from __future__ import annotations

import os
from functools import partial

import pytest

needs_data = pytest.mark.skipif(
    not os.environ.get("FAIRPCA_DATA"),
    reason="FAIRPCA_DATA names no folder with the paper's data files",
)
posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes as POSIX has them")
#: One of the cases of a test that otherwise is quick.
slow_case = partial(pytest.param, marks=pytest.mark.slow)
