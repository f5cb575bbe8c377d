"""The settings of Sphinx for the site; `make site` reads them.

Nothing is loaded from elsewhere: formulas are written as MathML, which browsers draw themselves.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx

sys.path.insert(0, str(Path(__file__).parent))

import reference

import tensorkit
from course.shared.settings import settings

project = "tensorkit"
author = "the authors of tensorkit"
version = release = tensorkit.__version__
copyright = author
html_title = "tensorkit"
language = "en"
highlight_language = "text"  # a block that names no language holds commands

extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["README.md"]  # included in index.md

nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # no output is a widget, and none loads a script
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_inherit_docstrings = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False
html_math_renderer = "mathml"
html_theme_options: dict[str, Any] = {"top_of_page_buttons": []}
if settings().repository:
    html_theme_options = {
        "source_repository": f"https://github.com/{settings().repository}/",
        "source_branch": "main",
        "source_directory": "",
        "top_of_page_buttons": ["view"],  # a chapter is built: nobody edits what is shown
    }


def _docstring(
    app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    lines[:] = reference.shorter(name, reference.as_rst(lines))


def _formula(writer: Any, node: nodes.Element) -> None:
    is_block = isinstance(node, nodes.math_block)
    writer.body.append(convert(node.astext(), display="block" if is_block else "inline"))
    raise nodes.SkipNode


def _page(app: Sphinx, name: str, template: str, context: dict[str, Any], tree: Any) -> None:
    # Sphinx makes headings of the groups in the sidebar and leaves out which level they have
    navigation = context["furo_navigation_tree"]
    context["furo_navigation_tree"] = navigation.replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )
    if name == "index" or name.startswith("api/"):  # no such file in the repository
        context.pop("page_source_suffix", None)


def setup(app: Sphinx) -> None:
    """What the extensions do not have: our docstrings, and formulas as MathML."""
    app.connect("html-page-context", _page, priority=900)  # after the theme's own
    app.connect("autodoc-process-docstring", _docstring)
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
