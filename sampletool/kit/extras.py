"""Optional packages, called extras. If one is missing, the error says how to install it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .contract.errors import ExtraNotInstalled
from .program import PACKAGE

_INSTALLERS = {
    "uv-receipt.toml": "uv tool install",
    "pipx_metadata.json": "pipx install --force",
}
"""The command of each installer, by the file that it leaves in its environments."""

_OTHER_INSTALLER = "pip install"


@contextmanager
def needing(extra: str, purpose: str, hint: str = "") -> Iterator[None]:
    """Import a package of an extra in the block.

    If the package is missing, raise ExtraNotInstalled. `purpose` is what needs the extra, and
    `hint` replaces the usual hint, which is how to install it. If one of our own modules is
    missing, that is a bug, and ModuleNotFoundError is raised as usual.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.startswith(PACKAGE):
            raise
        raise ExtraNotInstalled(
            suggestion=hint,
            extra=extra,
            purpose=purpose,
            installer=_installer(),
        ) from error


def _installer() -> str:
    """Return the command that installs an extra into the environment of the tool."""
    # In an environment of uv or pipx, `pip install` would install into another environment.
    for receipt, installer in _INSTALLERS.items():
        if Path(sys.prefix, receipt).exists():
            return installer
    return _OTHER_INSTALLER
