"""The site: `make docs` builds it into build/docs, without a network and with warnings as errors."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

from kons import __version__  # noqa: E402

project = "kons"
author = "The kons developers"
copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "docstrings",
    "linked_names",
    "mathml",
]
exclude_patterns = ["examples", "pictures", "_extensions"]
nitpicky = False
# Literal blocks of docstrings are formulas, not Python; examples there begin with >>>.
highlight_language = "none"
default_role = "code"

# Markdown that GitHub shows as well: $...$ and ```math, plain links between pages.
myst_enable_extensions = ["dollarmath"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_type_aliases = {"Matrix": "Matrix", "Vector": "Vector"}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
autosummary_generate = False
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"

html_theme = "pydata_sphinx_theme"
html_title = "kons"
html_static_path = ["_static"]
html_css_files = ["kons.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"text": "kons"},
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navigation_depth": 2,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "use_edit_page_button": False,
    "show_version_warning_banner": False,
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}


def setup(app):  # type: ignore[no-untyped-def]
    """The changelog is the file that the repository has, whose links are from there."""

    def read(_app, docname, source):  # type: ignore[no-untyped-def]
        if docname == "changelog":
            source[0] = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")

    app.connect("source-read", read)
