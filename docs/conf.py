"""Sphinx's settings; the sources are written by ``tools/doc_pages.py``."""

import re
from typing import Any

import castalia

project = "Castalia"
author = copyright = "The Castalia founders"
version = release = castalia.__version__
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
sphinx_gallery_conf = {
    "examples_dirs": ["examples-source"],
    "gallery_dirs": ["examples"],
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1e9,  # how long a builder took is of no use to readers
    "download_all_examples": False,
    "abort_on_example_error": True,
    "default_thumb_file": "docs/images/report.png",
}
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
autodoc_typehints = "none"
autodoc_preserve_defaults = True
default_role = "code"
suppress_warnings = ["myst.header", "docutils", "misc.highlighting_failure", "toc.not_included"]
exclude_patterns = ["examples-source", "sg_execution_times.rst", "examples/sg_execution_times.rst"]
html_theme = "pydata_sphinx_theme"
html_title = "Castalia"
html_static_path = ["theme"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 6,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {
    page: [] for page in ("index", "reference/models", "reference/gallery", "reference/course")
}

_SHAPES = re.compile(r"^Shapes\n-{3,}\n(.*?)(?=^\S[^\n]*\n-{3,}$|\Z)", re.M | re.S)


def _shapes_as_notes(
    _app: Any, _what: str, _name: str, _thing: Any, _options: Any, lines: list[str]
) -> None:
    """Put the section `Shapes`, which numpydoc does not know, at the start of the notes."""
    text = "\n".join(lines)
    found = _SHAPES.search(text)
    if found is None:
        return
    text = text.replace(found[0], "").rstrip()
    block = "".join(f"| {line}\n" for line in found[1].split("\n") if line.strip()) + "\n"
    heading = "Notes\n-----\n"
    if heading not in text:
        text += f"\n\n{heading}"
    lines[:] = text.replace(heading, heading + block).split("\n")


def setup(app: Any) -> None:
    """Called by Sphinx; 400: before numpydoc."""
    app.connect("autodoc-process-docstring", _shapes_as_notes, priority=400)
