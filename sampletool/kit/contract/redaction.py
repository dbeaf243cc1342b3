"""What must not be shown: the values of secret keys, and passwords inside URLs."""

import re

MASK = "***"

# Compiled when they are first needed, and kept, by `re`: most calls need one of them or none.
_CONFIDENTIAL = (
    r"token|passw(or)?d|passphrase|\bpass\b|\bpwd\b|secret|dsn|cred(ential)?s?\b|\bauth\b|(api|private|access)[_-]?key"
)
_CONFIDENTIAL_PARTS = ("token", "pass", "pwd", "secret", "dsn", "cred", "auth", "key")
"""What matches contains one of these: for any other name the pattern need not be compiled."""
_IN_URL = r"((?:[a-z][a-z0-9+.-]*:?//)?[^\s:/@]*):(?!//)[^\s]+@"
"""Up to the last `@`: a password may contain slashes and more of them, and the scheme may be misspelt."""
_IN_WORDS = r"\b(password|passwd|pwd)(\s*=\s*)('[^']*'|\"[^\"]*\"|[^\s&;]+)"
_BEARER = r"\b(bearer|basic)\s+[^\s]+"


def is_secret(key: str) -> bool:
    may_be = any(part in key.lower() for part in _CONFIDENTIAL_PARTS)
    return may_be and re.search(_CONFIDENTIAL, key, re.IGNORECASE) is not None


def redact(text: str) -> str:
    """The same text without the passwords of URLs and connection strings."""
    if "@" in text:
        text = re.sub(_IN_URL, rf"\1:{MASK}@", text, flags=re.IGNORECASE)
    if "=" in text:
        text = re.sub(_IN_WORDS, rf"\1\2{MASK}", text, flags=re.IGNORECASE)
    if any(word in text.lower() for word in ("bearer", "basic")):
        text = re.sub(_BEARER, rf"\1 {MASK}", text, flags=re.IGNORECASE)
    return text
