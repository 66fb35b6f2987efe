"""What importing the package loads, and where libraries may be named; import-linter does layers."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fairpca

PACKAGE = Path(fairpca.__file__).parent
CORE = {"numpy", "scipy", "sklearn", "threadpoolctl", "narwhals"}


def modules_of(file: Path) -> set[str]:
    """Names of the modules that a file imports, at the top or inside functions."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module)
    return names


def test_no_optional_library_is_loaded_unless_it_is_needed():
    """scikit-learn loads pandas where it finds it; what we load is what comes after that."""
    code = (
        "import sys, sklearn.decomposition, scipy.sparse, scipy.optimize, narwhals.stable.v1\n"
        "import numpy as np\n"
        "before = set(sys.modules)\n"
        "import fairpca, fairpca.metrics, fairpca.datasets, fairpca.plotting, fairpca.report\n"
        "public = [getattr(fairpca, name) for name in fairpca.__all__]\n"
        "X, groups = np.eye(4)[[0, 1, 2, 3, 1]], list('aabbb')\n"
        "fairpca.FairPCA(2, alpha=1).fit(X, sensitive_features=groups)\n"
        "print(*set(sys.modules) - before)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in run.stdout.split()}
    assert "fairpca" in loaded
    assert loaded - set(sys.stdlib_module_names) <= CORE | {"fairpca"}


FOLDERS = ("cli",)


def test_each_optional_library_is_imported_in_one_place():
    where: dict[str, set[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        libraries = {module.split(".")[0] for module in modules_of(file)}
        for name in libraries - set(sys.stdlib_module_names) - CORE - {"fairpca"}:
            place = file.relative_to(PACKAGE).as_posix()
            folder = next((name for name in FOLDERS if place.startswith(f"{name}/")), place)
            where.setdefault(name, set()).add(folder)
    assert where.pop("pyarrow") <= {"_input/arrow.py", "cli"}  # streams; files
    assert {name: files for name, files in where.items() if len(files) > 1} == {}


def test_private_names_of_scikit_learn_are_in_one_place():
    """Its private modules, and private names that its public modules hold."""

    def names_of(file: Path) -> set[str]:
        names = modules_of(file)
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                names |= {f"{node.module}.{alias.name}" for alias in node.names}
        return {name for name in names if name.startswith("sklearn.") and "._" in name}

    assert {file.name for file in PACKAGE.rglob("*.py") if names_of(file)} == {"_sklearn.py"}


def private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def room_of(file: Path) -> str:
    """The folder of the package that a file is in, or the file."""
    return file.relative_to(PACKAGE).parts[0]


def names_set_in(tree: ast.AST) -> set[str]:
    """Functions, classes, variables, and attributes of an object's own that a file defines."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute):
            own = ast.unparse(node.value) == "self" and isinstance(node.ctx, ast.Store)
            found |= {node.attr} if own else set()
    return found


def test_private_names_stay_in_their_folder():
    """An object's own methods may call what they inherit; _sklearn.py names scikit-learn's."""
    trees = {file: ast.parse(file.read_text("utf-8")) for file in PACKAGE.rglob("*.py")}
    known: dict[str, set[str]] = {}
    for file, tree in trees.items():
        for name in filter(private, names_set_in(tree)):
            known.setdefault(name, set()).add(room_of(file))
    abroad = set()
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and private(node.attr):
                own = getattr(node.value, "id", "") in ("self", "cls")
                homes = known.get(node.attr, {room_of(file)})
                if not own and homes.isdisjoint({room_of(file), "_sklearn.py"}):
                    abroad.add(f"{room_of(file)}: {ast.unparse(node)}")
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairpca."):
                home = node.module.split(".")[1]
                if home not in (room_of(file), room_of(file).removesuffix(".py")):
                    names = {alias.name for alias in node.names if private(alias.name)}
                    abroad |= {f"{room_of(file)}: {node.module}.{name}" for name in names}
    assert abroad == set()


def test_no_name_is_defined_twice():
    """A class or function that other files may use has its name to itself."""
    where: dict[str, list[str]] = {}
    for file in PACKAGE.rglob("*.py"):
        for node in ast.parse(file.read_text("utf-8")).body:
            shared = isinstance(node, ast.ClassDef | ast.FunctionDef)
            if shared and not node.name.startswith("_"):
                where.setdefault(node.name, []).append(file.relative_to(PACKAGE).as_posix())
    assert {name: files for name, files in where.items() if len(set(files)) > 1} == {}


@pytest.mark.parametrize("name", fairpca.__all__)
def test_public_names_have_docstrings(name):
    public = getattr(fairpca, name)
    assert name.startswith("__") or public.__doc__


def test_only_public_names_are_shown():
    assert set(dir(fairpca)) == set(fairpca.__all__)
