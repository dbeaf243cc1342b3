"""The site that `make docs` builds: the pages of docs/, with a sidebar, a search and the explorer.

The pages are plain Markdown that reads well without a site. What only the site has is added in
docs/site. A page requests nothing from another machine.
"""

import sys
from pathlib import Path
from typing import Any

_DOCS = Path(__file__).parent
sys.path.insert(0, str(_DOCS.parent))

from sampletool import DOCUMENTATION, REPOSITORY, __version__  # noqa: E402

project = "sampletool"
author = "The sampletool maintainers"
copyright = f"{author}. MIT License"  # noqa: A001 - the name that Sphinx looks for
version = release = __version__
html_title = f"{project} {release}"

extensions = ["myst_parser"]
myst_enable_extensions = ["alert", "html_image"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
# A response that is shown with `...` in it is not valid JSON.
suppress_warnings = ["misc.highlighting_failure"]
highlight_language = "text"
# Only quotes. Otherwise, the two hyphens of an option would become a dash in a sentence.
smartquotes_action = "q"

html_theme = "furo"
html_static_path = ["site/static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_search_scorer = str(_DOCS / "site" / "static" / "scorer.js")
html_favicon = "site/static/favicon.svg"
_SANS_SERIF = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", Ubuntu, Arial, sans-serif'
_MONOSPACE = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace'
"""The explorer uses the same typefaces, see sampletool/lab/explorer/explorer.css."""
html_baseurl = DOCUMENTATION
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_logo": "favicon.svg",
    "dark_logo": "favicon.svg",
    "light_css_variables": {
        "font-stack": _SANS_SERIF,
        "font-stack--headings": _SANS_SERIF,
        "font-stack--monospace": _MONOSPACE,
        "color-brand-primary": "#1d4ed8",
        "color-brand-content": "#1d4ed8",
        "color-code-background": "#f6f7f9",
        "color-sidebar-link-text--top-level": "var(--color-foreground-primary)",
    },
    "dark_css_variables": {
        "color-brand-primary": "#8ab4ff",
        "color-brand-content": "#8ab4ff",
        "color-code-background": "#1a1d21",
    },
    # Furo shows a link to the source of each page. Nothing is loaded from there.
    "source_repository": REPOSITORY,
    "source_branch": "main",
    "source_directory": "docs/",
}


def setup(app: Any) -> None:
    """Connect the modules in docs/site to the build."""
    from docs.site.exports import export
    from docs.site.pages import prepare_page
    from docs.site.previews import add_preview
    from docs.site.reference_objects import OBJECT_KINDS, ReferenceObject

    for kind, priority in OBJECT_KINDS.items():
        role = f"{kind.replace(' ', '-')}-reference"
        app.add_object_type(kind, role)
        app.registry.domain_object_types["std"][kind].attrs["searchprio"] = priority
    app.add_directive("reference-object", ReferenceObject)
    app.connect("source-read", prepare_page)
    app.connect("html-page-context", add_preview)
    app.connect("build-finished", export)
