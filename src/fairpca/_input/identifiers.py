"""Columns that say which row it is, not what it is like: by their names, or as row numbers."""

from __future__ import annotations

import re

import numpy as np

from fairpca._input.rows import Rows
from fairpca._typing import Array

ENOUGH_ROWS = 20  # with fewer, measurements are often all different
_FIRST_ROWS = 1000  # tell row numbers

_NAME = re.compile(
    r"(.*[\W_])?(id|ids|uuid|guid|rowid|rownames?|row[\W_]?(number|num|no|id|name)s?)"
    r"|(row[\W_])?(index|idx)|Unnamed: \d+|seqn|ssn",
    re.IGNORECASE,
)
_CAMEL = re.compile(r".*[a-z](ID|Id)")
#: What has ids, in names without a separator. A list, because many words end in id: paid, humid.
_JOINED = re.compile(
    r"(.*[\W_])?([cehnopstu]|account|applicant|case|child|client|customer|device|employee|family"
    r"|hh|household|individual|member|mother|obs|order|participant|patient|person|pers|product"
    r"|record|resp|respondent|sample|school|session|staff|student|subj|subject|teacher|transaction"
    r"|user|visit|worker)ids?",
    re.IGNORECASE,
)


def is_identifier(name: str) -> bool:
    """Whether a column of this name numbers or names the rows.

    Examples
    --------
    >>> [is_identifier(name) for name in ("person_id", "rownames", "PersonID", "caseid", "age")]
    [True, True, True, True, False]
    >>> [is_identifier(name) for name in ("bid", "paid", "body_mass_index")]
    [False, False, False]
    """
    return any(pattern.fullmatch(name) for pattern in (_NAME, _CAMEL, _JOINED))


def are_row_numbers(values: Array) -> bool:
    """Whether these count the rows in order, from 0 or from 1; some may be missing (NaN).

    Examples
    --------
    >>> are_row_numbers(np.arange(1.0, 31.0)), are_row_numbers(np.arange(50.0, 80.0))
    (True, False)
    """
    ahead = values - np.arange(len(values))
    known = ahead[~np.isnan(ahead)]
    return len(known) >= ENOUGH_ROWS and known[0] in (0, 1) and bool((known == known[0]).all())


def identifiers_among(rows: Rows) -> list[str]:
    """The named columns that number or name the rows: by their names, or as row numbers."""
    if rows.feature_names is None:
        return []
    first = np.asarray(rows.block(0, min(rows.n_rows, _FIRST_ROWS)), np.float64)
    named = zip(rows.feature_names, first.T, strict=True)
    return [name for name, values in named if is_identifier(name) or are_row_numbers(values)]
