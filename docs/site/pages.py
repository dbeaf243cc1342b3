"""What only the site has: the sidebar, and the explorer in the place of the link to it."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from docs.site.sidebar import sidebar

_PLAY = re.compile(r'^\[[^\]]+\]\((?P<above>[./\w-]*)explorer\.md "(?P<name>[\w-]+)"\)(?: <!--.*-->)?$', re.MULTILINE)
"""`[Play it](explorer.md "scenario")` on a line of its own."""
_FRAME = """```{{raw}} html
<iframe class="explorer" src="{src}" title="The explorer: you choose which worker goes next" loading="lazy"></iframe>
<p class="explorer-link"><a href="{src}">Open it in a page of its own</a></p>
```"""
EXPLORER = "play.html"
DOCS = Path(__file__).parents[1]


def add_what_only_the_site_has(_app: object, page: str, source: list[str]) -> None:
    text = _PLAY.sub(lambda found: _FRAME.format(src=f"{found['above']}{EXPLORER}#{found['name']}"), source[0])
    source[0] = f"{text}\n{_toctrees()}" if page == "index" else text


def add_what_can_be_played(app: Any, error: Exception | None) -> None:
    """What the `play.py` of a part's pages adds to the site that was built."""
    for file in [] if error else sorted(DOCS.glob("*/play.py")):
        import_module(f"docs.{file.parent.name}.play").add_to_site(Path(app.outdir))


def _toctrees() -> str:
    return "\n".join(
        f"```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```"
        for caption, pages in sidebar().items()
    )
