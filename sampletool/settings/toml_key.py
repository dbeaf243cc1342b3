"""Keys and values of TOML, read and written as people type them."""

import json
import re
import tomllib
from typing import Any

from sampletool.contract.printable import quoted

Path = tuple[str, ...]
"""The parts of a dotted key."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def show_value(value: Any) -> str:
    """A value in TOML's own notation, tables inline."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{show_key((key,))} = {show_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(show_value, value)) + "]"
    if isinstance(value, (str, bool)):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def show_key(path: Path) -> str:
    return ".".join(part if _BARE_KEY.fullmatch(part) else show_value(part) for part in path)


def parse_key(text: str) -> Path:
    """A dotted key as in TOML, with quotes where a part needs them; ValueError with a sentence."""
    if text and all(_BARE_KEY.fullmatch(part) for part in text.split(".")):
        return tuple(text.split("."))
    try:
        if not text or not text.isprintable() or "=" in text:
            raise ValueError
        found: Any = tomllib.loads(f"{text} = 0")
    except ValueError:
        raise ValueError(
            f"{quoted(text)} is not a key: dotted names such as build.jobs, with quotes around odd ones"
        ) from None
    path: list[str] = []
    while isinstance(found, dict) and len(found) == 1:
        ((part, found),) = found.items()
        path.append(part)
    if found != 0:
        raise ValueError(f"{quoted(text)} is not one key")
    return tuple(path)


def has(document: Any, path: Path) -> bool:
    """Whether there is a value at this path; the way to it has to be tables."""
    for part in path:
        if not isinstance(document, dict) or part not in document:
            return False
        document = document[part]
    return True


def get(document: Any, path: Path) -> Any:
    for part in path:
        document = document[part]
    return document
