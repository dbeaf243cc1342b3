"""The explorer of every scenario, from the recordings that lie beside the pages."""

import json
from pathlib import Path

from sampletool.lab.explorer.page import html

_HERE = Path(__file__).parent
RECORDED = sorted(_HERE.rglob("*.json"))


def page() -> str:
    return html([json.loads(file.read_text()) for file in RECORDED])


def add_to_site(site: Path) -> None:
    (site / "lab").mkdir(parents=True, exist_ok=True)
    (site / "lab" / "play.html").write_text(page())
