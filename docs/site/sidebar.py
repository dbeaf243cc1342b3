"""Which page stands where in the sidebar. It lists what is there: a part that is taken out takes its pages along."""

from fnmatch import fnmatchcase
from pathlib import Path

DOCS = Path(__file__).parents[1]
_CAPTIONS = ("Learn", "Races", "Guides", "Reference", "Design")
_PATTERNS = {
    "Learn": ["lab/learn/index", "lab/learn/[1-9]-*", "lab/learn/state/[1-9]-*", "lab/learn/*",
              "lab/choose", "lab/words", "lab/try", "lab/explorer"],
    "Reference": ["kit/reference", "*/reference", "kit/settings", "kit/traces",
                  "kit/guarantees", "*/guarantees", "*/soak"],
    "Design": ["kit/architecture", "kit/decisions", "kit/not-protected", "kit/platforms"],
    "Races": ["lab/index", "lab/*"],
    "Guides": ["kit/one-file", "fork/fork", "kit/how-to", "kit/library", "kit/agents", "mcp/*"],
}  # fmt: skip
"""A page belongs to the first pattern that names it."""
_REST = "Guides"
"""Where a page stands that no pattern names."""


def sidebar() -> dict[str, list[str]]:
    """Caption -> pages, in the order of the patterns that name them."""
    left = sorted(path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.glob("*/**/*.md"))
    found: dict[str, list[str]] = {caption: [] for caption in _CAPTIONS}
    for caption, patterns in _PATTERNS.items():
        for pattern in patterns:
            matching = [page for page in left if fnmatchcase(page, pattern)]
            found[caption] += matching
            left = [page for page in left if page not in matching]
    found[_REST] += left
    return {caption: pages for caption, pages in found.items() if pages}
