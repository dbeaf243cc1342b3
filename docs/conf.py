"""The site that `make docs` writes: the pages of docs/ as they are, with a sidebar, a search and the explorer.

The pages are plain Markdown that reads well without a site. What only the site has is added here: the sidebar, from
the pages that are there, and the explorer in the place of a link to it. Nothing is requested from another machine.
"""

import sys
from pathlib import Path

_DOCS = Path(__file__).parent
sys.path.insert(0, str(_DOCS.parent))

from sampletool import REPOSITORY, __version__  # noqa: E402

project = "sampletool"
author = "The sampletool maintainers"
version = release = __version__
html_title = f"{project} {release}"

extensions = ["myst_parser"]
myst_enable_extensions = ["alert", "html_image"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
suppress_warnings = ["misc.highlighting_failure"]  # an answer with `...` in it is no JSON
exclude_patterns = ["front.md"]
highlight_language = "text"

html_theme = "furo"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"source_repository": REPOSITORY, "source_branch": "main", "source_directory": "docs/"}
"""An address to read the source at; nothing is loaded from it."""


def setup(app: object) -> None:
    from docs.site.pages import add_what_can_be_played, add_what_only_the_site_has

    app.connect("source-read", add_what_only_the_site_has)  # type: ignore[attr-defined]
    app.connect("build-finished", add_what_can_be_played)  # type: ignore[attr-defined]
