"""Add what other sites show when somebody links to a page: a title, a description and a picture."""

import posixpath
from html import escape
from pathlib import Path
from typing import Any

from docs.site.exports import describe
from docs.site.sidebar import DOCS
from sampletool.kit.program import DOCUMENTATION

_MOST_CHARACTERS = 200
"""Longer descriptions are cut in previews and in search results."""

STATIC = Path(__file__).parent / "static"
"""The files that the site has in its folder _static."""
PICTURE = "_static/preview.png"
"""The picture of every page. `python -m docs.site.picture` makes it."""
PICTURE_SIZE = (1200, 630)
"""The width and height that most sites show without cutting anything off."""


def add_preview(
    _app: object, page: str, _template: str, context: dict[str, Any], _doctree: object
) -> None:
    """Add the tags of Open Graph to the head of a page that Sphinx builds."""
    if not (DOCS / f"{page}.md").exists():
        # The search and the index are pages without a source.
        return
    title, description = describe(page)
    tags = preview_tags(f"{page}.html", title, description)
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def preview_tags(path: str, title: str, description: str) -> list[str]:
    """Return the tags of Open Graph for the page at this path of the site."""
    shortened_description = escape(_shortened(description))
    width, height = PICTURE_SIZE
    tags = [
        f'<meta name="description" content="{shortened_description}">',
        f'<meta property="og:title" content="{escape(title)}">',
        f'<meta property="og:description" content="{shortened_description}">',
        '<meta property="og:type" content="website">',
        '<meta property="og:site_name" content="sampletool">',
        f'<meta property="og:image" content="{_address_of_picture(path)}">',
        f'<meta property="og:image:width" content="{width}">',
        f'<meta property="og:image:height" content="{height}">',
        '<meta name="twitter:card" content="summary_large_image">',
    ]
    if DOCUMENTATION:
        tags.append(f'<meta property="og:url" content="{DOCUMENTATION}{path}">')
    return tags


def _address_of_picture(path: str) -> str:
    """Return a complete address, or a path from the page while the site is not published.

    Most sites need a complete address.
    """
    if DOCUMENTATION:
        return f"{DOCUMENTATION}{PICTURE}"
    return posixpath.relpath(PICTURE, posixpath.dirname(path) or ".")


def _shortened(text: str) -> str:
    if len(text) <= _MOST_CHARACTERS:
        return text
    kept, _, _ = text[:_MOST_CHARACTERS].rpartition(" ")
    return f"{kept} …"
