"""How many functions and files of the package a call walks through, and how many calls it makes.

Run ``python -m benchmarks.walks``. Each function is counted once, and each of its calls.
Comprehensions and lambdas do not count. What is counted is the second of two equal calls (the
first one imports and fills caches), on 300 rows of 8 columns.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import fairpca

PACKAGE = str(Path(fairpca.__file__).parent) + os.sep


@dataclass
class Walk:
    """What a call walks through."""

    functions: set[tuple[str, str]] = field(default_factory=set)
    files: set[str] = field(default_factory=set)
    n_calls: int = 0
    n_changes: int = 0  # from one file to another
    _last: str = ""

    def note(self, frame: Any, event: str, _: Any) -> None:
        """Count a call of a function of the package; ``sys.setprofile`` wants this form."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        if code.co_name.startswith("<"):
            return
        self.n_calls += 1
        self.functions.add((code.co_filename, code.co_qualname))
        self.files.add(code.co_filename)
        self.n_changes += code.co_filename != self._last
        self._last = code.co_filename


def walk(call: Callable[[], object]) -> Walk:
    """What the second of two equal calls walks through."""
    call()
    walked = Walk()
    sys.setprofile(walked.note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return walked


def calls() -> dict[str, Callable[[], object]]:
    """The calls that are counted."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8)) * np.geomspace(3, 0.5, 8)
    two = np.where(np.arange(300) % 3, "a", "b")
    three = np.array(list("abc"))[np.arange(300) % 3]
    X[two == "b"] = X[two == "b"][:, ::-1]
    return {
        "FairPCA(3).fit, two groups": lambda: fairpca.FairPCA(3).fit(X, sensitive_features=two),
        "FairPCA(3).fit, three groups": lambda: fairpca.FairPCA(3).fit(X, sensitive_features=three),
        "audit(FairPCA(3), X, g)": lambda: fairpca.audit(fairpca.FairPCA(3), X, two),
        "FairPCACV(3).fit": lambda: fairpca.FairPCACV(3).fit(X, sensitive_features=two),
    }


def main() -> None:
    warnings.simplefilter("ignore")
    for name, call in calls().items():
        walked = walk(call)
        print(
            f"{name}: {len(walked.functions)} functions, {len(walked.files)} files, "
            f"{walked.n_calls} calls, {walked.n_changes} changes of file"
        )


if __name__ == "__main__":
    main()
