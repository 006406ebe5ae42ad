"""The site of the docs: `make docs` builds it into site/."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tools")]

project = "shiftproof"
author = "the shiftproof developers"
copyright = author

extensions = ["myst_parser", "sphinx.ext.autodoc", "docs_site"]
myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 4
exclude_patterns = ["pictures"]
highlight_language = "text"
smartquotes = False  # or --options would lose a dash

# docstrings name things in single backticks
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90

html_theme = "furo"
html_title = "shiftproof"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
