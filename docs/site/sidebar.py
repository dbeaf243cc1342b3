"""Where each page is in the sidebar.

The first level has few entries, in groups. All other pages are below one of them, and the sidebar
shows them when that entry is open. A part that is removed takes its pages along, so a pattern may
name pages that do not exist.
"""

import posixpath
import re
from fnmatch import fnmatchcase
from pathlib import Path

from sampletool.kit.program import PACKAGE

DOCS = Path(__file__).parents[1]

PAGES_ELSEWHERE = {
    "kit/how-to": f"{PACKAGE}/kit/README.md",
    "changelog": "CHANGELOG.md",
}
"""Pages that only have a link to a file outside of docs/. The site has the file in their place."""

_LINK = re.compile(r"\]\(([\w/-]+)\.md\)")
"""A link to another page, from the folder of the page that has it."""

GROUPS = {
    "Start": ["start/quickstart", "start/install", "start/when-to-use"],
    "Learn": ["kit/one-file", "lab/learn/index", "lab/index"],
    "Use": ["guides", "reference/index"],
    "Know more": ["background", "changelog"],
}
"""The entries of the first level, by the captions above them."""

_CHILDREN = {
    "lab/learn/index": [
        "lab/learn/[1-9]-*",
        "lab/learn/state/[1-9]-*",
        "lab/learn/*",
        "lab/choose",
        "lab/words",
        "lab/try",
        "lab/fewer-schedules",
        "lab/explorer",
        "lab/teach",
    ],
    "reference/index": [
        "reference/options",
        "reference/settings",
        "reference/environment",
        "reference/exit-codes",
        "reference/errors",
        "reference/output",
        "reference/*",
    ],
    "background": [
        "kit/architecture",
        "kit/decisions",
        "kit/guarantees",
        "*/guarantees",
        "kit/not-protected",
        "kit/platforms",
        "kit/traces",
        "kit/tests",
        "state/history",
        "state/soak",
        "show/index",
    ],
    "lab/index": ["lab/*"],
    "guides": [
        "fork/fork",
        "kit/how-to",
        "kit/settings",
        "kit/agents",
        "mcp/*",
        "state/shared-state",
        "sample/*",
        "*",
    ],
}
"""Patterns for the pages below an entry. A page belongs to the first pattern that matches it."""


def all_pages() -> list[str]:
    """Return all pages of the site except the front page, without `.md`, sorted."""
    pages = []
    for path in DOCS.rglob("*.md"):
        page = path.relative_to(DOCS).with_suffix("").as_posix()
        if page != "index":
            pages.append(page)
    return sorted(pages)


def groups() -> dict[str, list[str]]:
    """Return the entries of the first level that exist, by their captions."""
    pages = set(all_pages())
    found = {}
    for caption, entries in GROUPS.items():
        existing = [entry for entry in entries if entry in pages]
        if existing:
            found[caption] = existing
    return found


def children() -> dict[str, list[str]]:
    """Return the pages below each entry that has any, in the order of the patterns."""
    entries = [entry for entries in groups().values() for entry in entries]
    remaining = [page for page in all_pages() if page not in entries]
    found: dict[str, list[str]] = {}
    for entry, patterns in _CHILDREN.items():
        if entry in entries:
            matching = _matching(remaining, patterns)
            found[entry] = _in_order_of_links(entry, matching)
            remaining = [page for page in remaining if page not in found[entry]]
    return found


def _in_order_of_links(entry: str, pages: list[str]) -> list[str]:
    """Sort the pages by the links on the page of the entry. Pages without a link come last.

    The list of the races goes from easy to hard, and the sidebar has the same order.
    """
    text = (DOCS / f"{entry}.md").read_text()
    for page, file in PAGES_ELSEWHERE.items():
        text = text.replace(f"](../{file})", f"]({page}.md)")
    linked = [posixpath.join(posixpath.dirname(entry), path) for path in _LINK.findall(text)]
    known = [page for page in linked if page in pages]
    return list(dict.fromkeys([*known, *pages]))


def _matching(pages: list[str], patterns: list[str]) -> list[str]:
    """Return the pages that match a pattern, in the order of the patterns, each of them once."""
    matching: list[str] = []
    for pattern in patterns:
        for page in pages:
            if fnmatchcase(page, pattern) and page not in matching:
                matching.append(page)
    return matching
