"""Build the explorer of all scenarios, from the recordings that are next to the pages."""

import json
from pathlib import Path

from docs.lab.generate import path_of
from sampletool.lab.explorer.page import html
from sampletool.lab.levels import names_in_order

_HERE = Path(__file__).parent
RECORDED = [_HERE / f"{path_of(name)}.json" for name in names_in_order()]
"""The recordings in the order of the menu. The explorer opens with the first one."""


def page() -> str:
    return html([json.loads(file.read_text()) for file in RECORDED])


def add_to_site(site: Path) -> None:
    (site / "lab").mkdir(parents=True, exist_ok=True)
    (site / "lab" / "play.html").write_text(page())
