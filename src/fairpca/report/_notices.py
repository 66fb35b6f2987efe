"""What must not be overlooked about an audit, a sentence each."""

from __future__ import annotations

from typing import Any

import numpy as np

from fairpca._audit.figures import Errors
from fairpca._audit.result import Audit
from fairpca._estimators.advice import FEW_ROWS
from fairpca._input.identifiers import is_identifier
from fairpca._problems.status import Status
from fairpca.report._changes import changed_groups, relative_change, unlike_pca
from fairpca.report._methods import method_name
from fairpca.report._size import nearly_equal, unit
from fairpca.report._text import display_names, figure, in_a_row, percent

_FEW_PAID_FOR = 100, 0.1  # a group of fewer rows for which others pay more is worth a warning
_LITTLE_LEFT = 0.1  # of PCA's disparity: what chance leaves of it has no direction
_OTHER_SCALE = 0.1  # of a group's error: what the way of scaling may change without a word
_ALIKE = 0.02  # of the largest error: groups that differ by less are alike


def notices(audit: Audit) -> list[str]:
    """What must not be overlooked, a sentence each."""
    stays = audit.status == Status.NO_GAIN
    found = [
        _identifiers(audit),
        _no_gain() if stays and unlike_pca(audit) else "",
        *_reversals(audit),
        _levelling(audit),
        _other_scale(audit),
        "" if stays else _readings(audit),
        *_small_groups_that_steer(audit),
        _few_rows(audit),
    ]
    return [notice for notice in found if notice]


def _identifiers(audit: Audit) -> str:
    """Features that only tell rows apart, by their names."""
    names = display_names([name for name in audit.feature_names if is_identifier(name)])
    if not names:
        return ""
    return (
        "Columns that look like row numbers or ids are among the features: "
        f"{in_a_row([f'“{name}”' for name in names[:6]])}. Leave them out if they only tell rows "
        "apart."
    )


def _no_gain() -> str:
    return (
        "On all rows the choice is PCA. The figures on new rows are those of the same choice made "
        "without the rows judged, and that is not always PCA."
    )


def _reversals(audit: Audit) -> list[str]:
    """Where another group than the harmed one is worse off on new rows."""
    held_out, interval = audit.cross_validation, audit.bootstrap
    if held_out is None or interval is None or sum(audit.compared) != 2:
        return []
    names = display_names([audit.privileged_group, audit.harmed_group])
    said = []
    found = [("PCA", held_out.pca, interval.pca), ("fair PCA", held_out.fair, interval.fair)]
    for method, errors, (_, high) in found if unlike_pca(audit) else found[:1]:
        worth_saying = high < 0 or -errors.disparity > _LITTLE_LEFT * abs(held_out.pca.disparity)
        reversed_there = errors.disparity < 0 and not nearly_equal(audit, *errors.group_errors)
        if reversed_there and worth_saying:
            chance = "beyond chance" if high < 0 else "though chance can explain it"
            said.append(
                f"The direction is reversed on new rows under {method}: “{names[0]}” has the "
                f"larger error there, {chance}, not “{names[1]}”, whom PCA harms on the rows "
                "fitted to."
            )
    return said


def _other_scale(audit: Audit) -> str:
    """Where the stop was chosen by errors that differ from those it is judged by.

    Only the standard deviations that columns are divided by make them differ.
    """
    chosen_by, judged_by = audit.path.held_out, audit.cross_validation
    if chosen_by is None or judged_by is None or not audit.standardized:
        return ""
    first, second = chosen_by.group_errors[0], judged_by.pca.group_errors
    apart = (np.abs(first - second) / np.maximum(second, 1e-3 * unit(audit)))[audit.compared]
    if apart.max() <= _OTHER_SCALE:
        return ""
    return (
        "A few extreme values decide how columns are scaled: the stop was chosen with standard "
        "deviations over all rows and is judged with those of the rows fitted to, and PCA’s errors "
        f"on new rows differ between the two by up to {percent(float(apart.max()))}. Look at the "
        "largest values of each column before you rely on the choice."
    )


def levelled_down(audit: Audit) -> bool:
    """Whether stopping earlier would leave every group better off, on the rows fitted to."""
    efficient = audit.path.marks["efficient"].group_errors
    worse = (audit.fair.group_errors - efficient)[audit.compared]
    return bool((worse > 1e-3 * unit(audit)).all())


def _levelling(audit: Audit) -> str:
    if not levelled_down(audit):
        return ""
    if method_name(audit) != "FairPCA":
        return (
            "Every group would be reconstructed better by another projection: that of "
            'FairPCA(constraint="pareto").'
        )
    return (
        "This is levelling down: a projection on the way here is better for every group. "
        'constraint="pareto" stops there.'
    )


def _readings(audit: Audit) -> str:
    """Where absolute and relative errors disagree on who is harmed, or on what is fair."""
    other, held_out = audit.other_reading, audit.cross_validation
    errors = audit.pca if held_out is None else held_out.pca
    kinds = "absolute errors", "shares of variance lost"
    this, that = reversed(kinds) if audit.normalized else kinds
    worst = _worst(audit, errors), _worst(audit, other.pca)
    if None not in worst and worst[0] != worst[1]:
        first, second = display_names(worst)
        return (
            f"The two readings disagree on who is harmed by PCA: by {this} it is “{first}”, by "
            f"{that} “{second}”. What is fair by one may be unfair by the other."
        )
    before, after = (
        float(np.ptp(errors.group_errors[audit.compared])) for errors in (other.pca, other.fair)
    )
    if after > 1.1 * before and after - before > 0.01 * max(other.pca.group_errors):
        shown = [figure(v, 3) if audit.normalized else percent(v) for v in (before, after)]
        return (
            f"By the other reading fair PCA drives the groups apart: measured by {that}, the "
            f"largest difference between groups grows from {shown[0]} to {shown[1]}."
        )
    return ""


def _worst(audit: Audit, errors: Errors) -> Any:
    """The group with the largest error; None if all errors are about the same."""
    among = np.where(audit.compared, errors.group_errors, -np.inf)
    spread = float(np.ptp(errors.group_errors[audit.compared]))
    return audit.groups[int(among.argmax())] if spread > _ALIKE * among.max() else None


def _small_groups_that_steer(audit: Audit) -> list[str]:
    """Groups of few rows for whose sake, or in comparison with which, others are changed."""
    names, said = display_names(audit.groups), []
    most_rows, most_paid = _FEW_PAID_FOR
    paid = max((relative_change(audit, g) for g in changed_groups(audit, 1)), default=0.0)
    for label in (audit.harmed_group, audit.privileged_group):
        g = audit.groups.index(label)
        n = audit.group_sizes[g]
        if n < FEW_ROWS or (n < most_rows and paid > most_paid and label == audit.harmed_group):
            role = "worst" if label == audit.harmed_group else "best"
            steps = (
                "Merge small groups or leave them out (--min-group-size and --small-groups; in "
                "Python min_group_size and small_groups)."
                if sum(audit.compared) > 2
                else "Collect more rows of it before you rely on the result."
            )
            price = f", and others get up to {percent(paid)} worse" if paid > 0 else ""
            said.append(
                f"“{names[g]}” has only {n} row{'s' if n > 1 else ''} and steers the result: it is "
                f"the group that PCA serves {role}{price}. {steps}"
            )
    return said


def _few_rows(audit: Audit) -> str:
    """What the page says about rows that decide the sign."""
    if audit.influence is None or not audit.influence.pca.sign_hangs_on_few:
        return ""
    found, size = audit.influence.pca, unit(audit)
    n = found.n_left_out(0.001)
    before, after = (figure(D, 3, size) for D in (found.disparity[0], found.without(0.001)))
    return (
        f"Very few rows decide who is worse off under PCA: without {n} of {found.n_rows} rows the "
        f"disparity turns from {before} to {after}."
    )
