"""What can be read: the manifest, the races of the lab as they happen, and the outputs of sessions."""

import json
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from ..kit.contract.expected import EXPECTED
from ..kit.contract.text import printable
from ..kit.places import session_root
from ..kit.program import PROGRAM
from ..kit.safety.session import list_sessions
from ..kit.session_id import check_session_id

Ask = Callable[[list[str], bool], Coroutine[Any, Any, bytes]]
"""Makes a call; whether it only reads."""
_SCHEME = f"{PROGRAM}://"
_LONGEST_BYTES = 1024 * 1024
_FILES = 200
"""So many outputs are listed, at the most: of the sessions that were used last."""


async def listed(ask: Ask) -> list[tuple[str, str, str]]:
    """URI, name, and what it is."""
    found = [
        (f"{_SCHEME}manifest", "manifest", "Every command, in a line each."),
        (f"{_SCHEME}manifest/schema", "schema", "What all commands share: options, errors, the form of a response."),
    ]
    if lab := json.loads(await ask(["lab", "list"], True))["data"]:
        found += [(f"{_SCHEME}lab/{one['name']}", one["name"], one["title"]) for one in lab["scenarios"]]
    return found + [
        (f"{_SCHEME}session/{quote(file, errors='surrogateescape')}", printable(file), "An output of a session.")
        for file in _outputs()[:_FILES]
    ]


async def read(ask: Ask, uri: str) -> str | None:
    """Its text, if there is such a resource."""
    kind, _, name = unquote(uri.removeprefix(_SCHEME), errors="surrogateescape").partition("/")
    if kind == "manifest" and name in ("", "schema"):
        return (await ask(["manifest", *(["--schema"] if name else [])], True)).decode()
    if kind == "lab" and any(uri == known for known, _, _ in await listed(ask)):
        return (await ask(["lab", "run", "--format=text", "--timeout=60s", "--", name], False)).decode() or None
    return _output(*name.partition("/")[::2]) if kind == "session" else None


def _outputs() -> list[str]:
    """Below the directory of all sessions, without what is ours."""
    paths = [path for session in list_sessions(session_root()) for path in sorted(Path(session.path).rglob("[!.]*"))]
    return [path.relative_to(session_root()).as_posix() for path in paths if path.is_file()]


def _output(session: str, file: str) -> str | None:
    """Of a regular file that really lies inside the session's directory."""
    with suppress(*EXPECTED, ValueError):
        directory = (session_root() / check_session_id(session, "the URI")).resolve()
        path = (directory / file).resolve()
        if path.is_relative_to(directory) and path.is_file() and path.stat().st_size <= _LONGEST_BYTES:
            return path.read_text(errors="backslashreplace")
    return None
