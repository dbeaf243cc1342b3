"""What must not be shown: the values of secret keys, and passwords inside URLs."""

import re
from typing import Any

MASK = "***"

_SECRET_KEY = re.compile(r"token|passw(or)?d|secret|dsn|credential|(api|private|access)[_-]?key", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(?<=://)([^/@\s]*):[^/@\s]+@")
_WORD_PASSWORD = re.compile(r"\b(password|passwd|pwd)=[^\s&;]+", re.IGNORECASE)


def is_secret(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None


def redact(text: str) -> str:
    """The same text without the passwords of URLs and connection strings."""
    return _WORD_PASSWORD.sub(rf"\1={MASK}", _URL_PASSWORD.sub(rf"\1:{MASK}@", text))


def mask(key: str, value: Any) -> Any:
    """The value as it may be shown under this key."""
    if isinstance(value, dict):
        return {name: mask(f"{key}.{name}", member) for name, member in value.items()}
    if is_secret(key):
        return MASK
    if isinstance(value, list):
        return [mask(key, member) for member in value]
    return redact(value) if isinstance(value, str) else value
