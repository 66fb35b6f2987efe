"""Names and numbers in words, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_MOST_NAMES = 20  # before the others are hidden until the reader asks for them


def printable(text: object) -> str:
    """The text without characters that move the cursor or change the direction of writing."""
    return "".join(c if c.isprintable() else "�" for c in str(text))


def display_names(names: Sequence[Any], limit: int = 32) -> list[str]:
    """Names short enough for a chart, free of control characters, and still all different.

    Examples
    --------
    >>> display_names(["age", "a" * 40, "a" * 50], limit=8)
    ['age', 'aaaaaaa…', 'aaaaa… 2']
    """
    shown: list[str] = []
    for name in names:
        text = printable(name) or "(no name)"
        short = text if len(text) <= limit else text[: limit - 1] + "…"
        copy = 2
        while short in shown:
            mark = f"… {copy}"
            short, copy = text[: limit - len(mark)] + mark, copy + 1
        shown.append(short)
    return shown


def zero_if_rounding(value: float, unit: float) -> float:
    """The value, or zero if it is only a rounding error of numbers as large as ``unit``.

    Examples
    --------
    >>> zero_if_rounding(-3e-16, 1.0), zero_if_rounding(-3e-16, 1e-15), zero_if_rounding(2.0, 1e18)
    (0.0, -3e-16, 0.0)
    """
    return 0.0 if abs(value) < 1e-12 * unit else float(value)


def percent(share: float) -> str:
    """A share as a percentage; a small one is not rounded to zero.

    Examples
    --------
    >>> percent(0.0473), percent(0.00004), percent(3.2), percent(0.0)
    ('4.7 %', 'less than 0.1 %', '320 %', '0 %')
    """
    if share == 0:
        return "0 %"
    if abs(share) < 0.001:
        return "less than 0.1 %"
    return f"{share * 100:.1f} %" if abs(share) < 0.995 else f"{share * 100:.0f} %"


def signed_percent(share: float) -> str:
    """A change in percent, with its sign.

    Examples
    --------
    >>> signed_percent(-0.1234), signed_percent(0.05), signed_percent(0.0)
    ('−12.3 %', '+5.0 %', '0 %')
    """
    shown = f"{share * 100:+.1f}" if abs(share) < 0.995 else f"{share * 100:+.0f}"
    return "0 %" if float(shown) == 0 else f"{shown.replace('-', '−')} %"


def in_a_row(items: Sequence[str]) -> str:
    """Items in a row, with "and" before the last.

    Examples
    --------
    >>> in_a_row(["a", "b", "c"]), in_a_row(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def change(after: float, before: float, unit: float) -> str:
    """A relative change with its sign; empty where the value was zero before.

    Examples
    --------
    >>> change(3.0, 4.0, 1.0), change(4e-16, 1e-16, 1.0)
    ('−25.00 %', '')
    """
    if zero_if_rounding(before, unit) <= 0:
        return ""
    return f"{(after / before - 1) * 100:+.2f} %".replace("-", "−").replace("−0.00", "+0.00")


def figure(value: float, digits: int = 4, unit: float = 1.0) -> str:
    """A number with four digits; 0 if it is only a rounding error beside ``unit``.

    Examples
    --------
    >>> figure(2.54561), figure(-0.25), figure(-3e-16), figure(12345.6), figure(3e-16, unit=1e-15)
    ('2.546', '−0.25', '0', '12,346', '3e-16')
    """
    clean = zero_if_rounding(value, unit)
    text = f"{clean:,.0f}" if 1e4 <= abs(clean) < 1e7 else f"{clean:.{digits}g}"
    return text.replace("-", "−", 1) if clean < 0 else text


def gap(value: float, unit: float) -> str:
    """How much better another projection could be, in words.

    Examples
    --------
    >>> gap(-2.4e-9, 3.0), gap(1e-16, 3.0)
    ('2e-09', 'rounding error')
    """
    return f"{abs(value):.1g}" if zero_if_rounding(value, unit) else "rounding error"


def with_notes(names: Sequence[str], notes: Sequence[str]) -> list[str]:
    """Each name with its note, if there are any.

    Examples
    --------
    >>> with_notes(["age", "sex"], ["(3)", "(1)", "(7)"]), with_notes(["age"], [])
    (['age (3)', 'sex (1)'], ['age'])
    """
    if not notes:
        return list(names)
    return [f"{name} {note}" for name, note in zip(names, notes, strict=False)]


def name_list(names: list[str], notes: Sequence[str] = ()) -> dict[str, str]:
    """The first names, and the others, which the page shows when asked to; with their notes."""
    shown = with_notes(display_names(names[:1000]), notes)
    # One more name is no longer than the word that would stand for it.
    most = _MOST_NAMES if len(names) > _MOST_NAMES + 1 else len(names)
    n_others = len(names) - most
    return {
        "first": ", ".join(shown[:most]),
        "others": ", ".join(shown[most:]),
        "n_others": str(n_others) if n_others > 0 else "",
    }
