"""What importing the package loads, and where optional libraries may be named."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fairpca

PACKAGE = Path(fairpca.__file__).parent
CORE = {"numpy", "scipy", "sklearn", "threadpoolctl", "narwhals"}


def imported_by(file: Path) -> set[str]:
    """Top-level names of the libraries a file imports, at the top or inside functions."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module.split(".")[0])
    return names


def loaded_by(statement: str) -> set[str]:
    code = f"import sys; {statement}; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[0] for name in run.stdout.split()}


def test_importing_loads_no_optional_library():
    """Of its own accord: scikit-learn loads pandas where it finds it."""
    core = "import sklearn.decomposition, scipy.sparse, scipy.optimize, narwhals.stable.v1"
    ours = loaded_by("import fairpca, fairpca.metrics, fairpca.datasets") - loaded_by(core)
    assert "fairpca" in ours
    assert ours - set(sys.stdlib_module_names) <= {"fairpca", "threadpoolctl"} | CORE


# Files with one job between them; those of the command line are a package.
TOGETHER = {
    "plotting.py": "figures",
    "reproduction/drawing.py": "figures",
}


def test_each_optional_library_is_imported_in_one_place():
    where: dict[str, set[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        for name in imported_by(file) - set(sys.stdlib_module_names) - CORE - {"fairpca"}:
            place = file.relative_to(PACKAGE).as_posix()
            place = "cli" if place.startswith("cli/") else TOGETHER.get(place, place)
            where.setdefault(name, set()).add(place)
    assert where, "no optional library is used at all"
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


LAYERS = [
    {"exceptions", "_threads", "_gram", "_intersections", "_validation", "sources"},
    {"_accumulation"},
    {"_pending"},
    {"_moments", "_roots", "_problems", "_group_problems"},
    {"_spectral", "_barrier"},
    {"_bases"},
    {"_eigensolver", "_crossings", "_recovery", "_central_path", "_implicit", "_streaming"},
    {"_solvers", "_minmax", "_dual", "_small_groups"},
    {"_many_groups", "_ranks"},
    {"_projection"},
    {"_base"},
]


def test_data_flow_one_way():
    """A layer imports from the layers before it only; methods may hand over to later ones."""
    rank = {name: i for i, layer in enumerate(LAYERS) for name in layer}
    for name, i in rank.items():
        files = [PACKAGE / f"{name}.py"] if (PACKAGE / f"{name}.py").exists() else []
        for file in files:
            for node in ast.parse(file.read_text()).body:
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairpca."):
                    other = node.module.split(".")[1]
                    assert rank.get(other, 99) <= i, f"{name} imports {other}"


@pytest.mark.parametrize("name", fairpca.__all__)
def test_public_names_have_docstrings(name):
    public = getattr(fairpca, name)
    assert name.startswith("__") or public.__doc__
