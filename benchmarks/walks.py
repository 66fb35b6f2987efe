"""How many functions and files of the package a call walks through.

Run ``python -m benchmarks.walks``. Functions are counted once each, comprehensions and lambdas
apart, in the second of two equal calls (the first one imports and fills caches), on 300 rows of 8
columns.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fairpca

PACKAGE = str(Path(fairpca.__file__).parent) + os.sep


def walk(call: Callable[[], object]) -> tuple[int, int, int]:
    """Distinct functions, distinct files, and changes of file during a call."""
    functions, files, changes, last = set(), set(), 0, ""

    def note(frame, event, _):
        nonlocal changes, last
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        if code.co_name.startswith("<"):
            return
        functions.add((code.co_filename, code.co_qualname))
        files.add(code.co_filename)
        changes += code.co_filename != last
        last = code.co_filename

    call()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(functions), len(files), changes


def calls() -> dict[str, Callable[[], object]]:
    """The calls that are counted."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8)) * np.geomspace(3, 0.5, 8)
    two = np.where(np.arange(300) % 3, "a", "b")
    three = np.array(list("abc"))[np.arange(300) % 3]
    X[two == "b"] = X[two == "b"][:, ::-1]
    found = {
        "FairPCA(3).fit, two groups": lambda: fairpca.FairPCA(3).fit(X, sensitive_features=two),
        "FairPCA(3).fit, three groups": lambda: fairpca.FairPCA(3).fit(X, sensitive_features=three),
        "audit(X, g, FairPCA(3))": lambda: fairpca.audit(fairpca.FairPCA(3), X, two),
    }
    if hasattr(fairpca, "FairPCACV"):
        found["FairPCACV(3).fit"] = lambda: fairpca.FairPCACV(3).fit(X, sensitive_features=two)
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    for name, call in calls().items():
        functions, files, changes = walk(call)
        print(f"{name}: {functions} functions, {files} files, {changes} changes of file")


if __name__ == "__main__":
    main()
