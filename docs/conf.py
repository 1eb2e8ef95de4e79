"""How Sphinx builds the site from these pages, offline (`make docs`)."""

from __future__ import annotations

import themis

project = "Themis"
author = "the authors of Themis"
version = release = themis.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_click",
]
html_theme = "furo"
html_title = f"Themis {release}"
html_show_sphinx = False
html_copy_source = False

myst_heading_anchors = 3
napoleon_google_docstring = False
napoleon_use_rtype = False
autodoc_typehints = "none"  # the docstrings say it, with units
autodoc_member_order = "bysource"
