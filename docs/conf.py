"""Sphinx settings; `make docs` builds the site with warnings as errors."""

import os
import re
import sys
from pathlib import Path
from tempfile import mkdtemp

import fairpca

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]  # gallery_order, reproduction
if not os.environ.get("FAIRPCA_DATA"):  # the examples need TCRED, and no network
    from reproduction.bundled import unpack_tcred

    os.environ["FAIRPCA_DATA"] = mkdtemp()
    unpack_tcred(Path(os.environ["FAIRPCA_DATA"]))
project = "fairpca"
author = "The fairpca developers"
copyright = author
version = release = fairpca.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # MathJax is part of the site
    "myst_parser",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]  # ```math is what code hosts render
myst_heading_anchors = 3
autosummary_generate = True
autosummary_filename_map = {"fairpca.audit": "fairpca.audit-function"}  # beside fairpca.Audit
numpydoc_show_class_members = False
autodoc_typehints = "none"  # the docstrings name the types

html_theme = "pydata_sphinx_theme"
html_static_path = ["_static"]
html_css_files = ["fairpca.css"]
html_title = "fairpca"
html_favicon = "_static/logo.svg"
html_theme_options = {
    "logo": {
        "text": f"fairpca {version}",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,  # first steps to reference: what people look for
    "navbar_persistent": ["search-button"],
}
html_show_sourcelink = False
toc_object_entries_show_parents = "hide"  # "fit()" beside a page, not "FairPCACV.fit()"
html_sidebars = {"**": []}  # so that code of 100 columns fits
smartquotes = False  # options and code in tables stay as they are

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery_order.by_difficulty",
    "thumbnail_size": (560, 392),  # shown at half of that
    "write_computation_times": False,
    "download_all_examples": False,
    "show_signature": False,
    "abort_on_example_error": True,
}


def escape_fitted_names(app, what, name, obj, options, lines):
    """Keep ``(n_components_, n_features_in_)`` in a type from being read as links; not in code."""
    code = re.compile(r"(^\s*>>>.*|``.*?``)|(?<=\w)_(?=[,)])")
    lines[:] = [code.sub(lambda found: found[1] or r"\_", line) for line in lines]


LINKS = {
    r"\]\(\.\./examples/(\w+)\.py\)": r"](auto_examples/\1.rst)",
    r"\]\(\.\./examples\)": "](auto_examples/index.rst)",
    r"(?<!`)`(fairpca(?:\.\w+)+)`": r"{py:obj}`\1`",
    r"<!-- toctree\n(.*?)-->": r"```{toctree}\n:hidden:\n:maxdepth: 1\n\1```",
}


def link_pages(app, name, source):
    """Pages are written to be read on a code host; on the site, their links stay on the site."""
    if name in app.env.found_docs and not name.startswith(("auto_examples", "reference")):
        for pattern, link in LINKS.items():
            source[0] = re.sub(pattern, link, source[0], flags=re.DOTALL)


def setup(app):
    """Run before numpydoc, which reads the same lines."""
    app.connect("autodoc-process-docstring", escape_fitted_names, priority=1)
    app.connect("source-read", link_pages)
