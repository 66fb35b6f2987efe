"""Names of columns that say which row it is, not what it is like."""

from __future__ import annotations

import re

_NAME = re.compile(
    r"(.*[\W_])?(id|ids|index|idx|uuid|guid|rowid|rownames?|row[\W_]?(number|num|no|id|name)s?)"
    r"|Unnamed: \d+|seqn",
    re.IGNORECASE,
)
_CAMEL = re.compile(r".*[a-z](ID|Id)")


def is_identifier(name: str) -> bool:
    """Whether a column of this name numbers or names the rows.

    Examples
    --------
    >>> [is_identifier(name) for name in ("person_id", "rownames", "PersonID", "bid", "age")]
    [True, True, True, False, False]
    """
    return bool(_NAME.fullmatch(name) or _CAMEL.fullmatch(name))
