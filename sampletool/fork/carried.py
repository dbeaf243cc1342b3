"""Write the archive that a wheel carries for `tool fork`: `python -m sampletool.fork.carried FILE`.

A wheel contains the code of the package. The archive has the rest: the template, the tests of the
parts, and four files. Of the methods of compression that tarfile knows, bzip2 makes it smallest:
with gzip, it is a third larger.

The build of the wheel runs this, also where there is no git, such as in an unpacked sdist.
"""

import sys
import tarfile
from io import BytesIO
from pathlib import Path

from ..kit.program import PACKAGE
from .project import COPIED_FILES, TEMPLATE, is_about_this_project, offered_parts
from .source import CHECKOUT

_LICENSE = "LICENSE"


def main(arguments: list[str]) -> None:
    """Write the archive to the file that the argument names."""
    (file,) = arguments
    Path(file).write_bytes(archive_of(carried_paths()))


def carried_paths() -> list[str]:
    """Return the paths of the files that the archive carries, sorted.

    These are the files that a new project can get, but that the wheel does not contain otherwise.
    """
    paths = {_LICENSE}
    for path in COPIED_FILES:
        # A file of the package is in the wheel anyway.
        if not path.startswith(f"{PACKAGE}/"):
            paths.add(path)
    # hatchling leaves the template out of the wheel. Installers would compile its modules, which
    # only a new project can import.
    paths.update(_files_below(TEMPLATE))
    for part in offered_parts():
        for path in _files_below(f"tests/{part}"):
            if not is_about_this_project(path):
                paths.add(path)
    return sorted(paths)


def _files_below(folder: str) -> list[str]:
    """Return the paths of the files in a folder of the checkout, except bytecode."""
    paths = []
    for file in (CHECKOUT / folder).rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            paths.append(file.relative_to(CHECKOUT).as_posix())
    return paths


def archive_of(paths: list[str]) -> bytes:
    """Return a compressed archive of files of the checkout. It depends only on their contents."""
    archive = BytesIO()
    with tarfile.open(fileobj=archive, mode="w:bz2") as tar:
        for path in paths:
            content = (CHECKOUT / path).read_bytes()
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, BytesIO(content))
    return archive.getvalue()


if __name__ == "__main__":
    main(sys.argv[1:])
