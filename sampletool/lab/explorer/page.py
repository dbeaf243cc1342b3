"""Generate the HTML of the explorer: one file, or pages of a site that share their files.

The page does not simulate anything. It shows recordings of every schedule, so it cannot differ
from the real program.

* `one_file` returns a page that contains its style, its script and all recordings. It works from
  disk, without a network. `tool lab explore` writes it.
* `site_page` returns a page that loads its style, its script and the recordings of one race from
  other files of the site. The site has such a page for each race, and for many schedules.

The script consists of several files, so that a reader can read them one by one. The page joins them
into one script.
"""

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any

from ...kit.program import PROGRAM
from ..scenario import FAULTS

_HERE = Path(__file__).parent
_SCRIPT_FILES = (
    "runs.js",
    "progress.js",
    "elements.js",
    "sentences.js",
    "map.js",
    "panels.js",
    "explorer.js",
)
"""The files of the script in their order. While the page loads, a file uses only files above it."""

STYLE_NAME = "explorer.css"
SCRIPT_NAME = "explorer.js"
DATA_VARIABLE = "explorerData"
"""The global variable that holds the data of a page of the site."""


@dataclass(frozen=True, kw_only=True)
class SitePage:
    """The content of one page of the site."""

    title: str
    metadata: str
    """HTML for the head of the page, such as the description."""
    text: str
    """HTML for readers without scripts, and for search engines."""
    root: str
    """The relative path to the folder with the style, the script and the data, such as `../../`."""
    data_file: str
    """The path of the data file, relative to that folder."""
    start: str
    """The run that the page shows first, such as `torn-write/naive/A1.A2`."""


def one_file(scenarios: Sequence[Mapping[str, Any]]) -> str:
    """Return a page that contains its style, its script and its data."""
    style = style_text()
    script = script_text()
    data = json.dumps(explorer_data(scenarios, menu_of(scenarios)), separators=(",", ":"))
    policy = "; ".join(
        [
            "default-src 'none'",
            "img-src data:",
            f"style-src '{_hash_source(style)}'",
            f"script-src '{_hash_source(script)}'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    # Escape these characters, so that no text in the data can end the script element.
    escaped_data = re.sub("[<>&]", lambda match: f"\\u{ord(match[0]):04x}", data)
    return _fill_template(
        title="The lab's explorer",
        metadata=f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<link rel="icon" href="data:,">',
        style=f"<style>{style}</style>",
        text="",
        root="",
        start="",
        data=f'<script type="application/json" id="data">{escaped_data}</script>',
        script=f"<script>{script}</script>",
    )


def site_page(page: SitePage) -> str:
    """Return a page that loads its style, its script and its data from other files of the site."""
    return _fill_template(
        title=escape(page.title),
        metadata=page.metadata,
        style=f'<link rel="stylesheet" href="{page.root}{STYLE_NAME}">',
        text=page.text,
        root=page.root,
        start=escape(page.start),
        data=f'<script src="{page.root}{page.data_file}"></script>',
        script=f'<script src="{page.root}{SCRIPT_NAME}"></script>',
    )


def explorer_data(
    scenarios: Sequence[Mapping[str, Any]], menu: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the data of a page. The menu may have races without recordings on this page."""
    return {"program": PROGRAM, "strikes": FAULTS, "menu": menu, "scenarios": scenarios}


def menu_of(scenarios: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return an entry of the menu for each scenario."""
    entries = []
    for scenario in scenarios:
        entry = {name: scenario[name] for name in ("name", "title", "level")}
        entry["variants"] = list(scenario["ways"])
        entries.append(entry)
    return entries


def style_text() -> str:
    """Return the style sheet."""
    return (_HERE / STYLE_NAME).read_text()


def script_text() -> str:
    """Return the whole script."""
    return "\n".join((_HERE / name).read_text() for name in _SCRIPT_FILES)


def _fill_template(**parts: str) -> str:
    """Return page.html with each {name} replaced by the part with this name."""
    template = (_HERE / "page.html").read_text()
    return re.sub(r"\{(\w+)\}", lambda match: parts[match[1]], template)


def _hash_source(text: str) -> str:
    """Return the source expression that allows this script or style in a security policy."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
