"""Change the text of a page before Sphinx reads it: add what only the site has.

The pages are plain Markdown that reads well on its own. The site adds the sidebar, the explorer in
the place of a link to it, and the pages that are outside of docs/.
"""

import re
from pathlib import Path

from docs.site.reference_objects import with_objects
from docs.site.sidebar import DOCS, PAGES_ELSEWHERE, children, groups
from sampletool import REPOSITORY

_PLAY = re.compile(
    r'^\[[^\]]+\]\((?P<folder>[./\w-]*)explorer\.md "(?P<name>[\w-]+)"\)(?: <!--.*-->)?$',
    re.MULTILINE,
)
"""`[Play it](explorer.md "scenario")` on a line of its own."""
_HOW_TO_GET_EXPLORER = re.compile(
    (
        r"To choose the order of the steps yourself, run `tool lab explore [\w-]+`, which creates "
        r"a page called the explorer\. Then open this page in a browser\."
    ).replace(" ", r"\s")
)
"""What a page says above the link. On the site, the explorer is already there."""
_FRAME = """```{{raw}} html
<iframe class="explorer" src="{src}" loading="lazy" scrolling="no"
 title="The explorer: you choose which worker goes next"></iframe>
<p class="explorer-link"><a href="{src}">Open it in a page of its own</a></p>
```"""

_ROOT_LINK = re.compile(r"\]\((?:\.\./)*(?P<file>[A-Z_]+\.md)")
"""A link to a file in the root directory, such as SUPPORT.md. Most of them are not on the site."""


def prepare_page(_app: object, page: str, source: list[str]) -> None:
    """Replace the text of a page, which is the only item of `source`."""
    text = source_file(page).read_text()
    if page in PAGES_ELSEWHERE:
        text = _ROOT_LINK.sub(rf"]({REPOSITORY}/blob/main/\g<file>", text)
    text = _with_links_to_pages(text)
    text = _HOW_TO_GET_EXPLORER.sub("Choose the order of the steps yourself:", text)
    text = _PLAY.sub(_explorer, text)
    text = with_objects(page, text)
    source[0] = text + _toctrees(page)


def source_file(page: str) -> Path:
    """Return the file that has the text of a page. Most pages have it themselves."""
    elsewhere = PAGES_ELSEWHERE.get(page)
    if elsewhere is not None:
        return DOCS.parent / elsewhere
    return DOCS / f"{page}.md"


def _with_links_to_pages(text: str) -> str:
    """Replace links to files outside of docs/ by links to the pages that show these files."""
    for page, file in PAGES_ELSEWHERE.items():
        link = rf"\]\((\.\./)+{re.escape(file)}(?P<anchor>#[\w-]+)?\)"
        text = re.sub(link, rf"](/{page}.md\g<anchor>)", text)
    return text


def _explorer(link: re.Match[str]) -> str:
    """Return the explorer as a part of the page, in the place of a link to it."""
    return _FRAME.format(src=f"{link['folder']}play/{link['name']}.html")


def _toctrees(page: str) -> str:
    """Return the lists of pages that Sphinx builds the sidebar from."""
    if page == "index":
        lists = [_toctree(pages, caption) for caption, pages in groups().items()]
        return "\n\n" + "\n\n".join(lists)
    pages = children().get(page, [])
    if not pages:
        return ""
    return "\n\n" + _toctree(pages, caption=None)


def _toctree(pages: list[str], caption: str | None) -> str:
    options = [":hidden:"]
    if caption is not None:
        options.append(f":caption: {caption}")
    # A path that begins with a slash is relative to docs/.
    entries = [f"/{page}" for page in pages]
    return "\n".join(["```{toctree}", *options, "", *entries, "```"])
