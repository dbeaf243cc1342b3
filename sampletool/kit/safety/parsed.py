"""What a large TOML file says, kept as JSON in the workspace's private directory: read again in a tenth of the time.

Never believed for another text, because the digest of the text is kept with it. What JSON has no form for (a date) is
not kept. Where nothing can be read or written, the file is parsed, as ever.
"""

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..contract.errors import ToolError
from ..program import WORKSPACE_DIRECTORY
from .atomic_file import read_regular, replace
from .places import check_private

_WORTH_IT_CHARS = 16 * 1024
_LIMIT_BYTES = 64 * 1024 * 1024


def recall(path: Path, text: str) -> dict[str, Any] | None:
    """What this text of this file says, if it is known."""
    if len(text) >= _WORTH_IT_CHARS:
        with suppress(OSError, ValueError, TypeError, RecursionError, ToolError):
            digest, document = json.loads(read_regular(_place(path), _LIMIT_BYTES, follow=False))
            if digest == _digest(text) and isinstance(document, dict):
                return document
    return None


def remember(path: Path, text: str, document: dict[str, Any]) -> None:
    """Under the lock that builders hold; who reads meanwhile sees the old or the new one."""
    if len(text) >= _WORTH_IT_CHARS and recall(path, text) is None:
        with suppress(OSError, TypeError, ToolError):
            replace(_place(path), json.dumps([_digest(text), document]).encode())


def _place(path: Path) -> Path:
    return check_private(path.parent / WORKSPACE_DIRECTORY) / f"{path.name}.json"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
