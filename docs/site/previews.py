"""Add what other sites show when somebody links to a page: a title, a description and a picture."""

from html import escape
from typing import Any

from docs.site.exports import describe
from docs.site.sidebar import DOCS
from sampletool.kit.program import DOCUMENTATION

_MOST_CHARACTERS = 200
"""Longer descriptions are cut in previews and in search results."""
_PICTURE = "_static/preview.png"


def add_preview(
    _app: object, page: str, _template: str, context: dict[str, Any], _doctree: object
) -> None:
    """Add the tags of Open Graph to the head of a page."""
    if not (DOCS / f"{page}.md").exists():
        # The search and the index are pages without a source.
        return
    title, description = describe(page)
    tags = [
        f'<meta name="description" content="{_shortened(description)}">',
        f'<meta property="og:title" content="{escape(title)}">',
        f'<meta property="og:description" content="{_shortened(description)}">',
        '<meta property="og:type" content="website">',
    ]
    if DOCUMENTATION:
        # Both must be complete addresses.
        tags.append(f'<meta property="og:url" content="{DOCUMENTATION}{page}.html">')
        tags.append(f'<meta property="og:image" content="{DOCUMENTATION}{_PICTURE}">')
    context["metatags"] = context.get("metatags", "") + "\n".join(tags)


def _shortened(text: str) -> str:
    if len(text) <= _MOST_CHARACTERS:
        return escape(text)
    kept, _, _ = text[:_MOST_CHARACTERS].rpartition(" ")
    return escape(f"{kept} …")
