"""The HTML of the explorer: as one file, or as pages of a site that share their files.

The page does not simulate anything. It shows recordings of every schedule, so it cannot differ
from the real program.

* `one_file` has its style, its script and all recordings inside. It opens from disk and requests
  nothing. `tool lab explore` writes it.
* `site_page` loads its style, its script and the recordings of one race from files next to it. The
  site has many such pages: one for each race, and one for many schedules.

The script consists of several files, so that a reader can take them one by one. Together they are
one script.
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
from ..scenario import STRIKES

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
"""The parts of the script. A part uses only parts above it while the page loads."""

STYLE_NAME = "explorer.css"
SCRIPT_NAME = "explorer.js"
DATA_VARIABLE = "explorerData"
"""The global variable of a page of the site that has its data."""


@dataclass(frozen=True, kw_only=True)
class SitePage:
    """What differs between the explorer's pages of a site."""

    title: str
    metadata: str
    """HTML for the head of the page, such as the description."""
    text: str
    """HTML for readers without scripts, and for search engines."""
    root: str
    """The way to the folder that has the style, the script and the data, such as `../../`."""
    data_file: str
    """The path of the data from that folder."""
    start: str
    """The address that the page opens with, such as `torn-write/naive/A1.A2`."""


def one_file(scenarios: Sequence[Mapping[str, Any]]) -> str:
    """Return a page that has everything inside. Nothing in the data can end its element."""
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
    """Return all data of a page. The menu may have more races than the page has recordings of."""
    return {"program": PROGRAM, "strikes": STRIKES, "menu": menu, "scenarios": scenarios}


def menu_of(scenarios: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of the menu."""
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
    template = (_HERE / "page.html").read_text()
    return re.sub(r"\{(\w+)\}", lambda match: parts[match[1]], template)


def _hash_source(text: str) -> str:
    """Return how a Content-Security-Policy names the one script or style that may be used."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"
