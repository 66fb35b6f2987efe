"""What the page and the terminal say in sentences: who gains and who pays, and what to heed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairpca._audit.figures import Errors, RowInfluence
from fairpca._audit.result import Audit
from fairpca._problems.status import Status
from fairpca.report._changes import changed_groups, relative_change, unlike_pca
from fairpca.report._methods import method_texts
from fairpca.report._notices import levelled_down, notices
from fairpca.report._size import lossless, nearly_equal, unit
from fairpca.report._text import display_names, figure, in_a_row, percent

_MOST_NAMED = 3


@dataclass(frozen=True)
class Verdict:
    """The first thing a reader sees.

    Attributes
    ----------
    headline : str
        Who gains and who pays, on new rows.
    before : str
        What PCA does.
    after : str
        What becomes of the difference between the groups.
    tone : {"good", "bad", "open"}
        Good only if somebody gains beyond chance, nothing was levelled down, the groups did not
        change sides beyond chance, and chance cannot explain how they differ under PCA.
    notices : list of str
        What must not be overlooked.
    """

    headline: str
    before: str
    after: str
    tone: str
    notices: list[str]


def verdict(audit: Audit) -> Verdict:
    """What an audit found, in words."""
    if lossless(audit):
        r, d = audit.n_components, len(audit.feature_names)
        headline = f"Nothing was compressed: there are as many components as columns, {r}."
        if r < d:
            n = f"{r} direction{'s' if r > 1 else ''}"
            headline = f"Nothing is lost: the {d} columns vary in no more than {n}."
        return Verdict(
            headline,
            "Every group is reconstructed without loss, whatever the projection.",
            "That is no proof of fairness; choose fewer components to compare the groups.",
            "open",
            [],
        )
    headline, tone = _headline(audit)
    said, method = notices(audit), method_texts(audit)
    if method["evened"] != "errors":  # which are the price here, not the aim
        tone, said = "open", [method["aim"], *said]
    return Verdict(headline, _before(audit), _after(audit), tone, said)


def _headline(audit: Audit) -> tuple[str, str]:
    if audit.changes is None:
        return f"Nothing can be said about new rows: {_why_not(audit)}.", "open"
    if audit.status == Status.NO_GAIN:
        return "Held-out rows show no gain beyond chance: the recommendation is PCA itself.", "open"
    gain = {g: relative_change(audit, g) for g in changed_groups(audit, -1)}
    pay = {g: relative_change(audit, g) for g in changed_groups(audit, 1)}
    names = display_names(audit.groups)
    if not gain and not pay:
        if nearly_equal(audit, *audit.pca.group_errors[audit.compared]):
            return "PCA reconstructs the groups equally well; there is nothing to repair.", "open"
        return "On new rows, fair PCA changes no group’s error beyond chance.", "open"
    better, worse = _named(gain, names, "better"), _named(pay, names, "worse")
    if not gain:
        nobody = "and no group better beyond chance"
        advice = ": rather use PCA" if method_texts(audit)["evened"] == "errors" else ""
        return f"On new rows, fair PCA reconstructs {worse} {nobody}{advice}.", "bad"
    price = f" and {worse}" if pay else "; no group is worse off beyond chance"
    doubts = levelled_down(audit) or _reversed(audit) or _chance_explains(audit)
    tone = "open" if doubts else "good"
    return f"On new rows, fair PCA reconstructs {better}{price}.", tone


def _why_not(audit: Audit) -> str:
    """Why no rows could be left out."""
    sizes = zip(display_names(audit.groups), audit.group_sizes, audit.compared, strict=True)
    single = [f"“{name}”" for name, n, compared in sizes if compared and n == 1]
    if not single:
        return "there are too few rows to leave some out"
    most = _MOST_NAMED if len(single) > _MOST_NAMED + 1 else len(single)
    others = [f"{len(single) - most} more groups"] if single[most:] else []
    have = "has" if len(single) == 1 else "have"
    return f"{in_a_row([*single[:most], *others])} {have} only one row"


def _before(audit: Audit) -> str:
    """What PCA does to the groups: on new rows if there are any."""
    k, under = sum(audit.compared), f"Under PCA with {components(audit)}"
    held_out = audit.cross_validation
    errors = audit.pca if held_out is None else held_out.pca
    where = "" if held_out is None else ", on new rows,"
    of = np.flatnonzero(audit.compared)
    order = of[np.argsort(errors.group_errors[of], kind="stable")]
    best, worst = int(order[0]), int(order[-1])
    names, low, high = display_names(audit.groups), *errors.group_errors[[best, worst]]
    if nearly_equal(audit, low, high):
        return f"{under}{where} {all_groups(audit)} groups are reconstructed equally well."
    ends = ", the worst and the best served" + f" of {k} groups" if k > 2 else ""
    if _chance_explains(audit):
        ends += "; chance can explain that"
    how = f"an error of {figure(high, 3, unit(audit))} against {figure(low, 3, unit(audit))}"
    if low > 0.01 * unit(audit):  # a ratio of what is hardly lost says nothing
        how = f"{percent(high / low - 1)} worse than"
        return f"{under}{where} “{names[worst]}” is reconstructed {how} “{names[best]}”{ends}."
    return f"{under}{where} “{names[worst]}” has {how} of “{names[best]}”{ends}."


def _after(audit: Audit) -> str:
    """What becomes of the difference between the two groups, and whether that is chance."""
    held_out, changes = audit.cross_validation, audit.changes
    if held_out is None or changes is None or audit.bootstrap is None:
        return f"On the rows fitted to, the search ended with “{audit.status}”."
    size, interval = unit(audit), audit.bootstrap

    def measured(disparity: float, ends: tuple[float, float]) -> str:
        low, high = (figure(end, 3, size) for end in ends)
        return f"{figure(disparity, 3, size)} ({low} to {high})"

    before = measured(held_out.pca.disparity, interval.pca)
    if not unlike_pca(audit):
        return (
            f"The disparity on new rows is {before}, with a {interval.level:.0%} interval."
        ).replace("%", " %", 1)
    after = measured(held_out.fair.disparity, interval.fair)
    what = {
        -1: "That is less, beyond chance",
        0: "Chance can explain the change",
        1: "That is more, beyond chance",
    }[changes.disparity.direction]
    if _reversed(audit):
        what = "The direction is reversed, beyond chance"
    elif changes.disparity.direction == -1 and _grew(held_out.pca, held_out.fair):
        what = "In size that is more, not less"
    return (
        f"The disparity on new rows is {before} under PCA and {after} under fair PCA, with "
        f"{interval.level:.0%} intervals. {what}."
    ).replace("%", " %", 1)


def _grew(before: Errors, after: Errors) -> bool:
    """Whether a disparity is larger than before, whichever group it is about."""
    return abs(after.disparity) > abs(before.disparity)


def _chance_explains(audit: Audit) -> bool:
    """Whether chance can explain how the groups differ under PCA on new rows."""
    return audit.bootstrap is not None and audit.bootstrap.pca[0] <= 0 <= audit.bootstrap.pca[1]


def _reversed(audit: Audit) -> bool:
    """Whether under fair PCA the other of two groups is worse off on new rows, beyond chance."""
    held_out, interval = audit.cross_validation, audit.bootstrap
    if held_out is None or interval is None or sum(audit.compared) != 2:
        return False
    apart = not nearly_equal(audit, *held_out.fair.group_errors[audit.compared])
    return interval.fair[1] < 0 and apart


def influence(audit: Audit) -> str:
    """One sentence on how many rows the disparity hangs on; empty without held-out rows."""
    if audit.influence is None:
        return ""
    found, size = audit.influence.pca, unit(audit)
    n, share = found.n_half, 0 if found.n_half is None else found.n_half / found.n_rows
    if n is None:
        start = "No few rows make up half of PCA’s disparity on new rows"
    else:
        start = (
            f"{n:,} row{'s' if n > 1 else ''} ({percent(share)} of the rows compared) make"
            f"{'s' if n == 1 else ''} up half of PCA’s disparity on new rows"
        )

    def left(rows: RowInfluence) -> list[str]:
        values = rows.disparity[0], rows.without(0.001), rows.without(0.01)
        return [figure(value, 3, size) for value in values]

    whole, thousandth, hundredth = left(found)
    return (
        f"{start}. It is {whole}; without the 0.1 % of the rows with the largest shares in it "
        f"{thousandth}, without 1 % {hundredth}. "
        f"Under fair PCA it is {', '.join(left(audit.influence.fair))}."
    )


def all_groups(audit: Audit) -> str:
    """The word for all groups: "both" if there are two."""
    return "both" if sum(audit.compared) == 2 else "all"


def small_groups(names: list[str], compared: list[bool]) -> str:
    """A sentence about groups that were too small to compare; empty if there are none."""
    if not names:
        return ""
    quoted = ", ".join(f"“{name}”" for name in names)
    if all(compared):
        return f"Merged into “rest” for having too few rows: {quoted}."
    return f"Too small to be compared, counted in the overall error only: {quoted}."


def components(audit: Audit) -> str:
    """Their number, in words."""
    r = audit.n_components
    return f"{r} component{'s' if r > 1 else ''}"


def _named(shares: dict[int, float], names: list[str], how: str) -> str:
    """Groups and what changes for them, largest changes first; the table names them all."""
    order = sorted(shares, key=lambda g: -abs(shares[g]))
    most = _MOST_NAMED if len(order) > _MOST_NAMED + 1 else len(order)
    said = [f"“{names[g]}” {percent(abs(shares[g]))} {how}" for g in order[:most]]
    return in_a_row([*said, *([f"{len(order) - most} more groups {how}"] if order[most:] else [])])
