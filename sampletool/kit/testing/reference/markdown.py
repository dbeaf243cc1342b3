"""Markdown for generated pages."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

_NOTE = "<!-- Generated from the code by `make pages`; do not edit. -->"


def page(title: str, blocks: Iterable[str]) -> str:
    """Return a page with a title and blocks, such as paragraphs, headings and lists."""
    return "\n\n".join([f"# {title}", _NOTE, *blocks]) + "\n"


def bullets(items: Iterable[str]) -> str:
    """Return a list."""
    return "\n".join(f"* {item}" for item in items)


def code_block(language: str, text: str) -> str:
    """Return a block of code."""
    return f"```{language}\n{text}\n```"


def folded_json(summary: str, value: Any) -> str:
    """Return a block of JSON that a reader can unfold. The summary is HTML."""
    block = code_block("json", json.dumps(value, indent=2))
    return f"<details>\n<summary>{summary}</summary>\n\n{block}\n\n</details>"


def table(*names: str, rows: Iterable[Sequence[str]]) -> str:
    """Return a table. `names` are those of the columns."""
    lines = []
    for cells in (names, ["---"] * len(names), *rows):
        escaped = [cell.replace("|", "\\|") for cell in cells]
        lines.append(f"| {' | '.join(escaped)} |")
    return "\n".join(lines)
