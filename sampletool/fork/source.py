"""The files that a new project is made from.

In a checkout, they are the files that git tracks, as they are now. An installed wheel has the
package itself, and an archive with the rest.
"""

import tarfile
from pathlib import Path

from ..kit.program import PACKAGE
from .git import git

CHECKOUT = Path(__file__).parents[2]
"""The directory that contains the package: the checkout, or `site-packages`."""

_ARCHIVE = Path(__file__).with_name("carried.tar.gz")
"""What a wheel has besides the package. hatch_build.py writes it with `carried.py`.

One archive is much smaller than the same files in the wheel would be.
"""

IS_WHEEL = _ARCHIVE.exists()
"""Whether this package was installed from a wheel, and is not in a checkout."""


def source_files() -> dict[str, bytes]:
    """Return the content of each file by its path in a checkout, also if this is a wheel."""
    if not IS_WHEEL:
        return _tracked_files()
    files = _package_files()
    with tarfile.open(_ARCHIVE) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is not None:
                files[member.name] = file.read()
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
