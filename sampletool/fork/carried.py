"""Write the archive that a wheel carries for `tool fork`: `python -m sampletool.fork.carried FILE`.

A wheel contains the package, so the archive has the rest: the tests of the parts, and four files.
The build of the wheel runs this, also where there is no git, such as in an unpacked sdist.
"""

import gzip
import sys
import tarfile
from io import BytesIO
from pathlib import Path

from ..kit.program import PACKAGE
from .project import COPIED_FILES, is_about_this_project, offered_parts
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
    for part in offered_parts():
        for file in (CHECKOUT / "tests" / part).rglob("*"):
            path = file.relative_to(CHECKOUT).as_posix()
            is_bytecode = "__pycache__" in file.parts
            if file.is_file() and not is_bytecode and not is_about_this_project(path):
                paths.add(path)
    return sorted(paths)


def archive_of(paths: list[str]) -> bytes:
    """Return a compressed archive of files of the checkout. It depends only on their contents."""
    archive = BytesIO()
    # mtime=0: the same files give the same bytes, so a build can be repeated.
    with (
        gzip.GzipFile(fileobj=archive, mode="wb", compresslevel=9, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as tar,
    ):
        for path in paths:
            content = (CHECKOUT / path).read_bytes()
            member = tarfile.TarInfo(path)
            member.size = len(content)
            tar.addfile(member, BytesIO(content))
    return archive.getvalue()


if __name__ == "__main__":
    main(sys.argv[1:])
