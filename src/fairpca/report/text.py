"""Numbers and names as people read them: on the page, in the terminal, a notebook and a card."""

from collections.abc import Sequence
from math import isfinite

from fairpca._progress import printable


def display_names(names: Sequence[object], limit: int = 32) -> list[str]:
    """Names short enough for a chart, free of control characters, and still all different.

    Examples
    --------
    >>> display_names(["age", "a" * 40, "a" * 50], limit=8)
    ['age', 'aaaaaaa…', 'aaaaa… 2']
    """
    shown: list[str] = []
    for name in names:
        text = printable(name) or "(no name)"
        short = text
        if len(text) > limit:
            short = text[: limit - 1] + "…"
        copy = 2
        while short in shown:
            mark = f"… {copy}"
            short = text[: limit - len(mark)] + mark
            copy += 1
        shown.append(short)
    return shown


def percent(share: float) -> str:
    """A share in percent, with at most three digits.

    Examples
    --------
    >>> percent(0.331), percent(-0.02), percent(0.00004), percent(12.345), percent(1e9)
    ('33 %', '−2 %', 'less than 0.1 %', '1,200 %', 'over a million %')
    """
    if 0 < abs(share) < 0.0005:
        return "less than 0.1 %"
    return f"{_in_percent(share)} %"


def _in_percent(share: float) -> str:
    value = 100 * share
    if value > 1e6:
        return "over a million"
    text = f"{value:.1f}".removesuffix(".0")
    if abs(value) >= 999.5:
        text = f"{float(f'{value:.2g}'):,.0f}"
    elif abs(value) >= 4.95:
        text = f"{value:.0f}"
    if text == "-0":
        return "0"
    return text.replace("-", "−")


def percent_range(low: float, high: float) -> str:
    """The interval of a difference: "21 % to 44 %", or "34 % better to 116 % worse"."""
    if low < 0 < high:
        return f"{_in_percent(-low)} % better to {_in_percent(high)} % worse"
    return f"{_in_percent(low)} % to {_in_percent(high)} %"


def difference(change: float) -> str:
    """A relative difference of errors in a sentence: "33 % worse"."""
    if change < 0:
        return f"{percent(-change)} better"
    return f"{percent(change)} worse"


def worse(change: float, low: float | None = None, high: float | None = None) -> tuple[str, str]:
    """A relative difference of errors for a table, and its interval in the same words.

    Examples
    --------
    >>> worse(0.33, 0.21, 0.44), worse(-0.25, -0.31, -0.17), worse(0.0), worse(float("nan"))
    (('33 % worse', '21 to 44'), ('25 % better', '17 to 31'), ('no change', ''), ('', ''))
    >>> worse(-0.16, -0.52, 0.54)
    ('16 % better', '52 better to 54 worse')
    """
    if not isfinite(change):
        return "", ""
    if change == 0 and not low and not high:
        return "no change", ""
    text = difference(change)
    if low is None or high is None or not isfinite(high - low):
        return text, ""
    if {_in_percent(low), _in_percent(high)} == {"0"}:
        return text, ""
    ends = percent_range(low, high)
    if high <= 0:
        ends = percent_range(-high, -low)
    return text, ends.replace(" %", "")


def figure(value: float, unit: float = 1.0) -> str:
    """A number with three digits; 0 if it is only a rounding error beside ``unit``.

    Examples
    --------
    >>> figure(2.54561), figure(-0.25), figure(-3e-16), figure(12345.6), figure(3e-16, unit=1e-15)
    ('2.55', '−0.25', '0', '12,300', '3e−16')
    """
    if abs(value) < 1e-12 * unit:
        return "0"
    text = f"{value:.3g}"
    if 999.5 <= abs(value) < 1e12:
        text = f"{float(text):,.0f}"
    return text.replace("-", "−")


def in_a_row(items: Sequence[str], most: int = 12, more: str = "more") -> str:
    """The first ``most`` items and how many more there are; a single extra item is named.

    Examples
    --------
    >>> in_a_row(["a", "b", "c"], 2), in_a_row(["a", "b", "c", "d"], 2), in_a_row(["a"])
    ('a, b and c', 'a, b and 2 more', 'a')
    """
    if len(items) > most + 1:
        items = [", ".join(items[:most]), f"{len(items) - most} {more}"]
    return ", ".join([*items[:-2], " and ".join(items[-2:])])


def counted(n: int, noun: str) -> str:
    """A number with its noun: "1 component", "4,491 rows"."""
    if n != 1:
        noun += "s"
    return f"{n:,} {noun}"


def aligned(text: str) -> str:
    """Lines of cells with tabs between them as a table: names aligned left, numbers right."""
    rows = [line.split("\t") for line in text.splitlines()]
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    table = ""
    for name, *cells in rows:
        right = [cell.rjust(width) for cell, width in zip(cells, others, strict=True)]
        table += "  ".join([name.ljust(first), *right]).rstrip() + "\n"
    return table
