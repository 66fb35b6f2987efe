"""The gate proves that no gap exceeds a limit, or fails."""

import numpy as np
import pytest
from helpers.audits import made_audit, made_group
from sklearn.decomposition import PCA

from fairpca import FairPCA, audit, audit_model
from fairpca._audit.gate import Answer, Why, gate


def rows(*gaps, n=500):
    """Groups with these gaps: value, low, high."""
    return [made_group("abcd"[g], n, gap, (0.0, 0.0, 0.0)) for g, gap in enumerate(gaps)]


SHOWN = rows((0.03, -0.02, 0.08), (-0.03, -0.07, 0.02))
OPEN = rows((0.05, -0.1, 0.2), (-0.05, -0.2, 0.1))
GAP = rows((0.3, 0.2, 0.4), (-0.2, -0.3, -0.1))
TINY = made_group("tiny", 20, (9.0, 1.0, 20.0), (0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("groups", "fail_on", "answer"),
    [
        (SHOWN, "unproven", Answer.PASSES),
        (OPEN, "unproven", Answer.UNPROVEN),
        (GAP, "unproven", Answer.EXCEEDED),
        ([*SHOWN, TINY], "unproven", Answer.UNPROVEN),
        ([*SHOWN, TINY], "gap", Answer.PASSES),
        (OPEN, "gap", Answer.PASSES),
        (OPEN, "estimate", Answer.PASSES),
        (GAP, "gap", Answer.EXCEEDED),
    ],
)
def test_answers(groups, fail_on, answer):
    assert gate(made_audit(groups), 0.1, fail_on).answer is answer


def test_small_groups_are_set_aside_on_purpose_only():
    found = made_audit([*SHOWN, TINY])
    assert gate(found, 0.1).too_small == ["tiny"]
    assert gate(found, 0.1, ignored_below=30).answer is Answer.PASSES
    assert gate(found, 0.1, ignored_below=20).why is Why.TOO_SMALL


def test_what_cannot_be_judged_never_passes():
    few = [
        made_group("a", 20, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
        made_group("b", 9, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    ]
    found = gate(made_audit(few), 0.1)
    assert (found.answer, found.why) == (Answer.CANNOT_JUDGE, Why.VERDICT)
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(4000, 4)), np.repeat(["a", "b"], 2000)
    own = audit_model(PCA(2).fit(X), X, groups)
    assert gate(own, 0.9).why is Why.OWN_ROWS


def test_a_proof_needs_an_error_of_a_share_of_the_limit():
    found = gate(made_audit(OPEN), 0.1)
    # The upper end lies 1.68 standard errors away, and a proof wants log(1.1) / 2.9.
    error = np.log(1.2 / 1.05) / 1.68
    assert found.units_needed == pytest.approx(500 * (error * 2.9 / np.log(1.1)) ** 2, abs=1)
    assert found.smaller == "a"
    above = rows((0.15, -0.1, 0.4), (-0.1, -0.3, 0.1))
    assert gate(made_audit(above), 0.1).units_needed is None  # no proof where the estimate exceeds


def noise(n, seed):
    rng = np.random.default_rng(seed)
    sizes = (n * 4 // 5, n // 5)
    return rng.normal(size=(n, 5)) * [3, 2, 1, 1, 1], np.repeat(["many", "few"], sizes)


def test_rows_prove_and_each_end_is_for_one_group_alone():
    found = audit(FairPCA(2), *noise(20_000, 0), n_points=2, ranks=[2], cv=5)
    assert gate(found, 0.1).answer is Answer.PASSES
    for row in found.groups:
        joint, alone = row.baseline.gap, row.bounds
        assert joint.low < alone.low < alone.value == joint.value < alone.high < joint.high
    little = audit(FairPCA(2), *noise(300, 0), n_points=2, ranks=[2], cv=5)
    assert gate(little, 0.1).answer is Answer.UNPROVEN


def test_harm_in_few_rows_never_passes():
    """A third more error for 30 of 330 rows: nothing is proven either way, so nothing passes."""
    answers = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(330, 5)) * [3, 2, 1, 1, 1]
        X[300:, 2:] *= np.sqrt(1.32)
        found = audit(FairPCA(2), X, np.repeat(["many", "few"], [300, 30]), n_points=2, ranks=[2])
        answers.append(gate(found, 0.1))
    assert Answer.PASSES not in {found.answer for found in answers}
    unproven = [found for found in answers if found.answer is Answer.UNPROVEN]
    assert unproven
    assert all(gate.units_needed is None or gate.units_needed > 30 for gate in unproven)


def test_a_proof_is_counted_in_units():
    X, groups = noise(600, 4)
    one = audit(FairPCA(2), X, groups, n_points=2, ranks=[2])
    people = np.arange(600)
    two = audit(
        FairPCA(2),
        np.repeat(X, 2, axis=0),
        np.repeat(groups, 2),
        units=np.repeat(people, 2),
        n_points=2,
        ranks=[2],
    )
    assert gate(one, 0.1).answer is gate(two, 0.1).answer is Answer.UNPROVEN
    assert gate(two, 0.1).units_needed == pytest.approx(gate(one, 0.1).units_needed, rel=0.5)
