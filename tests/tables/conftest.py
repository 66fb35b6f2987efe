"""Rows that files of every kind must give back."""

import pytest
from helpers.data import unequal_groups


@pytest.fixture
def data():
    return unequal_groups()
