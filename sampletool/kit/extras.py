"""Packages that are optional: what needs one that is missing says how to install it, as this tool was installed."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .contract.errors import ExtraNotInstalled
from .program import PACKAGE


@contextmanager
def needing(extra: str, purpose: str, hint: str = "") -> Iterator[None]:
    """Only the package may be missing; anything else that is not there is a fault of ours."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith(PACKAGE):
            raise
        raise ExtraNotInstalled(suggestion=hint, extra=extra, purpose=purpose, installer=_installer()) from error


def _installer() -> str:
    """What made this environment: uv and pipx leave a receipt in it, and pip is of no use there."""
    receipts = {"uv-receipt.toml": "uv tool install", "pipx_metadata.json": "pipx install --force"}
    return next((words for file, words in receipts.items() if Path(sys.prefix, file).exists()), "pip install")
