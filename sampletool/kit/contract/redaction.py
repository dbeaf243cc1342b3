"""What must not be shown: the values of secret keys, and passwords inside URLs."""

import re
from typing import Any

MASK = "***"

_SECRET_KEY = re.compile(
    r"token|passw(or)?d|passphrase|\bpass\b|\bpwd\b|secret|dsn|cred(ential)?s?\b|\bauth\b|(api|private|access)[_-]?key",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(r"((?:[a-z][a-z0-9+.-]*:?//)?[^\s:/@]*):(?!//)[^\s]+@", re.IGNORECASE)
"""Up to the last `@`: a password may contain slashes and more of them, and the scheme may be misspelt."""
_WORD_PASSWORD = re.compile(r"\b(password|passwd|pwd)(\s*=\s*)('[^']*'|\"[^\"]*\"|[^\s&;]+)", re.IGNORECASE)
_BEARER = re.compile(r"\b(bearer|basic)\s+[^\s]+", re.IGNORECASE)


def is_secret(key: str) -> bool:
    return _SECRET_KEY.search(key) is not None


def redact(text: str) -> str:
    """The same text without the passwords of URLs and connection strings."""
    text = _URL_PASSWORD.sub(rf"\1:{MASK}@", text)
    return _BEARER.sub(rf"\1 {MASK}", _WORD_PASSWORD.sub(rf"\1\2{MASK}", text))


def mask(key: str, value: Any) -> Any:
    """The value as it may be shown under this key."""
    if isinstance(value, dict):
        return {name: mask(f"{key}.{name}", member) for name, member in value.items()}
    if is_secret(key):
        return MASK
    if isinstance(value, list):
        return [mask(key, member) for member in value]
    return redact(value) if isinstance(value, str) else value
