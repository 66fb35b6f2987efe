"""The paper's data, for searches of subsets."""

from __future__ import annotations

import pytest
from helpers.fronts import shares

from fairpca import datasets


@pytest.fixture(scope="module")
def tcred():
    return shares(datasets.load_tcred())
