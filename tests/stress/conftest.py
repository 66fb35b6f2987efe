"""The problems to run, their seed, and what is printed about them at the end."""

from __future__ import annotations

import os
import zlib
from collections import defaultdict

import numpy as np
import pytest
from helpers.inside import leading_bases

SEED = int(os.environ.get("FAIRPCA_STRESS_SEED", "0"))
PROBLEMS = int(os.environ.get("FAIRPCA_STRESS_PROBLEMS", "4"))


def pytest_generate_tests(metafunc):
    if "rng" in metafunc.fixturenames:
        metafunc.parametrize("rng", range(PROBLEMS), indirect=True)


@pytest.fixture
def rng(request):
    """Random numbers of this problem alone, made of the seed and the name of the test."""
    return np.random.default_rng([SEED, zlib.crc32(request.node.name.encode())])


@pytest.fixture(autouse=True)
def bases(request, monkeypatch):
    """Every other problem, however small, is solved as those with many features are."""
    problem = getattr(request.node, "callspec", None)
    if problem is not None and problem.params.get("rng", 0) % 2:
        leading_bases(monkeypatch)


@pytest.fixture
def within(record_property):
    """Assert that a discrepancy is within what is allowed, and note it for the summary."""

    def check(what, discrepancy, allowed):
        record_property("discrepancy", (what, float(discrepancy), float(allowed)))
        assert discrepancy <= allowed, f"{what}: {discrepancy:.3g} is more than {allowed:.3g}"

    return check


def pytest_terminal_summary(terminalreporter):
    reports = [
        report
        for outcome in ("passed", "failed", "xfailed")
        for report in terminalreporter.getreports(outcome)
        if report.when == "call" and "stress" in report.keywords
    ]
    if not reports:
        return
    found = defaultdict(list)
    for report in reports:
        for name, value in report.user_properties:
            if name == "discrepancy":
                found[value[0]].append(value[1:])
    terminalreporter.section("stress")
    terminalreporter.write_line(
        f"{len(reports)} problems; the same again: "
        f"FAIRPCA_STRESS_SEED={SEED} FAIRPCA_STRESS_PROBLEMS={PROBLEMS} make stress"
    )
    width = max(map(len, found), default=0)
    for what, values in sorted(found.items()):
        worst, allowed = max(values)
        terminalreporter.write_line(
            f"{what:{width}}  worst of {len(values):6}: {worst:9.2e}, allowed {allowed:.0e}"
        )
