"""Numbers as people write them: ``$1,234.50``, ``12,5 %``, ``1 234``, ``1'234``.

A thousands separator stands before every three digits, and a currency or percent sign on either
side. A percentage stays as it is written: 5 % is 5.
"""

from __future__ import annotations

from typing import Any

from fairpca._tables.arrow import pa, pc

_SIGNS = "$€£¥₹%"
_GAP = "[ \t\u00a0\u202f]*"
_MOSTLY = 0.75  # of the values
_THOUSANDS_BY_POINT = r"^\s*[-+]?[1-9]\d{0,2}\.\d{3}\s*$"
_BELOW_A_THOUSAND = r"^\s*[-+]?(?:0|[1-9]\d{0,2})\s*$"


def numeral(decimal: str) -> str:
    """The pattern of a number with this decimal point."""
    point, comma = (r"\.", ",") if decimal == "." else (",", r"\.")
    thousands = "|".join(
        rf"[1-9]\d{{0,2}}(?:{m}\d{{3}})+" for m in (comma, "['’]", "[ \u00a0\u202f]")
    )
    number = rf"(?:(?:{thousands}|\d+)(?:{point}\d*)?|{point}\d+)(?:[eE][-+]?\d+)?"
    sign = rf"[{_SIGNS}]?{_GAP}"
    return rf"^{_GAP}(?:{sign}[-+]?|[-+]{sign}){number}{_GAP}{sign}$"


def are_numerals(column: pa.Array, decimal: str, share: float = 1.0) -> bool:
    """Whether so many of the texts are numbers, and all of them in one unit."""
    matches = pc.match_substring_regex(column, numeral(decimal))
    if (pc.mean(matches).as_py() or 0.0) < share:
        return False
    signs = pc.replace_substring_regex(column.filter(matches), f"[^{_SIGNS}]", "").unique()
    units = set(signs.drop_null().to_pylist())
    return len(units) == 1 or (len(units) == 2 and "" in units and "%" not in units)


def numbers_of(column: pa.Array, decimal: str) -> pa.Array:
    """The numbers that the texts stand for; all texts must be numbers."""
    plain = pc.replace_substring_regex(column, rf"[^\d{decimal}eE+-]", "")
    return pc.replace_substring(plain, decimal, ".").cast(pa.float64())


def first_other(column: pa.Array, decimal: str) -> int | None:
    """Where the first text stands that is not a number."""
    i = pc.index(pc.match_substring_regex(column, numeral(decimal)), False).as_py()
    return None if i < 0 else int(i)


def told_decimal(columns: list[Any]) -> str | None:
    """The decimal point of columns of text: a comma if one of them is mostly numbers with commas.

    None if these could as well be thousands: 1,234.
    """
    found = [c for c in columns if are_numerals(c, ",", _MOSTLY) and _has_comma(c)]
    if found and all(are_numerals(c, ".", _MOSTLY) for c in found):
        return None
    return "," if found else "."


def doubtful_thousands(columns: list[Any]) -> str | None:
    """The first value with a point that may as well stand for thousands: 1.243 beside 641.

    None if a point elsewhere is one of a fraction: 0.123, 12.5. A column in which every value has
    three decimals is taken for measurements: as thousands it would only be another unit.
    """
    doubtful = None
    for column in columns:
        known = column.drop_null()
        has_point = pc.match_substring(known, ".")
        pointed, others = known.filter(has_point), known.filter(pc.invert(has_point))
        if not _all_match(pointed, _THOUSANDS_BY_POINT):
            return None
        if len(pointed) and len(others) and _all_match(others, _BELOW_A_THOUSAND):
            doubtful = doubtful or pointed[0].as_py()
    return doubtful


def _all_match(column: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(column, pattern), min_count=0).as_py())


def _has_comma(column: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring(column, ",")).as_py())
