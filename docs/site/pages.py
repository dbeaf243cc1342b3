"""What only the site has: the sidebar, the explorer in the place of a link, and the page of the kit."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from docs.site.sidebar import sidebar
from sampletool.kit.program import PACKAGE

_PLAY = re.compile(r'^\[[^\]]+\]\((?P<above>[./\w-]*)explorer\.md "(?P<name>[\w-]+)"\)(?: <!--.*-->)?$', re.MULTILINE)
"""`[Play it](explorer.md "scenario")` on a line of its own."""
_FRAME = """```{{raw}} html
<iframe class="explorer" src="{src}" title="The explorer: you choose which worker goes next" loading="lazy"></iframe>
<p class="explorer-link"><a href="{src}">Open it in a page of its own</a></p>
```"""
EXPLORER = "play.html"
DOCS = Path(__file__).parents[1]
KIT_README = DOCS.parent / PACKAGE / "kit" / "README.md"
"""A page that is next to the code that it describes. Sphinx reads only files below docs/."""
KIT_PAGE = "kit/how-to"
"""The page of the site that has its content. In the repository, this file has only a link to it."""
_LINK_TO_KIT_README = re.compile(rf"\]\((\.\./)+{PACKAGE}/kit/README\.md(?P<anchor>#[\w-]+)?\)")
"""A link to that file. Sphinx finds no page there, so the site needs a link to its own page."""


def add_what_only_the_site_has(_app: object, page: str, source: list[str]) -> None:
    """Replace the text of a page, which is the only item of `source`, before Sphinx reads it."""
    text = source[0]
    if page == KIT_PAGE:
        text = KIT_README.read_text()
    text = _LINK_TO_KIT_README.sub(rf"](/{KIT_PAGE}.md\g<anchor>)", text)
    text = _PLAY.sub(_explorer, text)
    if page == "index":
        text = f"{text}\n{_toctrees()}"
    source[0] = text


def _explorer(link: re.Match[str]) -> str:
    """Return the explorer as a part of the page, in the place of a link to it."""
    return _FRAME.format(src=f"{link['above']}{EXPLORER}#{link['name']}")


def add_what_can_be_played(app: Any, error: Exception | None) -> None:
    """What the `play.py` of a part's pages adds to the site that was built."""
    for file in [] if error else sorted(DOCS.glob("*/play.py")):
        import_module(f"docs.{file.parent.name}.play").add_to_site(Path(app.outdir))


def _toctrees() -> str:
    return "\n".join(
        f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```"
        for caption, pages in sidebar().items()
    )
