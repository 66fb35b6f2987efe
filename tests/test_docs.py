"""Pages name files and functions that exist, and their code prints what they show."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "fairpca"
PAGES = ["architecture", "contributing", "recipes", "releasing"]
IS_PATH = re.compile(r"[\w.*/-]+(/|\.(py|rst|md|txt|toml|cff|yml|csv))")


CODE = {
    ".md": re.compile(r"^```(python|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE),
    ".rst": re.compile(r"^\.\. code-block:: (python|text)\n\n((?:   .*\n|\n)+)", re.MULTILINE),
}


def literals(page: str) -> set[str]:
    text = (ROOT / "docs" / f"{page}.rst").read_text(encoding="utf-8")
    return {" ".join(found.split()) for found in re.findall(r"``([^`]+)``", text)}


@pytest.mark.parametrize("page", PAGES)
def test_files_exist(page):
    paths = [name for name in literals(page) if IS_PATH.fullmatch(name)]
    missing = [p for p in paths if not any(ROOT.glob(p)) and not any(PACKAGE.glob(p))]
    assert paths
    assert missing == []


@pytest.mark.parametrize("page", ["architecture", "recipes"])
def test_names_are_in_the_code(page):
    words = set()
    for file in PACKAGE.rglob("*.py"):
        words |= set(re.findall(r"\w+", file.read_text(encoding="utf-8")))
    others = [name for name in literals(page) if not IS_PATH.fullmatch(name)]
    dotted = [name for name in others if re.fullmatch(r"\w+(\.\w+)*", name)]
    names = {part for name in dotted for part in name.split(".")}
    assert {"solve", "Solution"} <= names
    assert names - words == set()


@pytest.mark.parametrize("page", ["README.md", "docs/getting_started.rst"])
def test_code_prints_what_the_page_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = ROOT / page
    known, printed, compared = {}, "", 0
    for kind, block in CODE[path.suffix].findall(path.read_text(encoding="utf-8")):
        text = textwrap.dedent(block).strip()
        if kind == "text":
            assert printed.strip() == text
            compared += 1
        else:
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(text, known)
            printed = stream.getvalue()
    assert compared


def test_links_of_the_readme_are_addresses_on_pypi():
    """The build turns paths into addresses: PyPI has no files of ours."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    hatch_build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hatch_build)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    links, made = (re.findall(r"\]\(([^)]*)\)", t) for t in (readme, hatch_build.absolute(readme)))
    paths = [link for link in links if not link.startswith("https://")]
    assert "docs/_static/report.png" in paths
    assert all((ROOT / path).exists() for path in paths)
    assert len(made) == len(links)
    assert all(link.startswith("https://") for link in made)
    assert f"{hatch_build.PICTURES}docs/_static/report.png" in made
