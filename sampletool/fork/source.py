"""The files that a new project is created from.

In a checkout, they are the files that git tracks, as they are now. An installed wheel has the code
of the package, and an archive with the rest.
"""

import tarfile
from pathlib import Path

from ..kit.program import PACKAGE
from .errors import Bz2Missing
from .git import git

CHECKOUT = Path(__file__).parents[2]
"""The directory that contains the package: the checkout, or `site-packages`."""

_ARCHIVE = Path(__file__).with_name("carried.tar.bz2")
"""What a wheel has besides the code of the package. hatch_build.py writes it with `carried.py`.

One archive is much smaller than the same files in the wheel would be.
"""

IS_WHEEL = _ARCHIVE.exists()
"""Whether this package was installed from a wheel, and is not in a checkout."""


def source_files() -> dict[str, bytes]:
    """Return the content of each file by its path in a checkout, also if this is a wheel.

    Raise GitFailed if this is neither, and Bz2Missing if Python cannot read the archive.
    """
    if not IS_WHEEL:
        return _tracked_files()
    return _package_files() | _archived_files()


def _archived_files() -> dict[str, bytes]:
    """Return the files in the archive of the wheel. Raise Bz2Missing if Python cannot read it."""
    files = {}
    try:
        with tarfile.open(_ARCHIVE, "r:bz2") as archive:
            for member in archive:
                file = archive.extractfile(member)
                if file is not None:
                    files[member.name] = file.read()
    except tarfile.CompressionError:
        # A Python that was compiled without the headers of bzip2 lacks the module.
        raise Bz2Missing(path=str(_ARCHIVE)) from None
    return files


def _tracked_files() -> dict[str, bytes]:
    """Return the files of the checkout that git tracks. Raise GitFailed if it is no repository."""
    files = {}
    for name in git(CHECKOUT, "ls-files", "-z").split("\0"):
        path = CHECKOUT / name
        # A file that was deleted stays in the list until its deletion is committed.
        if path.is_file() and not path.is_symlink():
            files[name] = path.read_bytes()
    return files


def _package_files() -> dict[str, bytes]:
    """Return the files of the installed package, except bytecode."""
    files = {}
    for path in (CHECKOUT / PACKAGE).rglob("*"):
        if path.is_file() and path != _ARCHIVE and "__pycache__" not in path.parts:
            files[path.relative_to(CHECKOUT).as_posix()] = path.read_bytes()
    return files
