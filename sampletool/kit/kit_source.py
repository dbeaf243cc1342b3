"""Read the files of a kit from where a newer one may come from.

That is the folder of a kit, a checkout of a project that has one, or a wheel or an sdist of such a
project. Archives are not unpacked: only the files of the kit are read, into memory. Whoever wrote
an archive chose the paths in it, so each path is checked before anything is done with it.
"""

import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from .project import tracked_files

MAX_BYTES = 100 * 1024 * 1024
"""The largest size of all files of a kit. The kit has about 1 MB."""

_MARK = "REVISION"
"""The file that shows that a folder is a kit."""


class NoUsableKit(Exception):
    """The source has no kit, or one that cannot be used. The message is for the user."""


@dataclass(frozen=True)
class _Member:
    """A file of an archive or a checkout."""

    path: str
    size: int
    is_plain_file: bool
    """False for links, devices and FIFOs."""
    read: Callable[[], bytes]


def read_kit(source: Path) -> dict[str, bytes]:
    """Return the content of each file of the kit in `source`, by its path in the kit.

    Raise NoUsableKit if there is no kit, or if a file of it cannot be read.
    """
    try:
        with _open_source(source) as members:
            return _read_members(source, _members_of_kit(source, list(members)))
    except (OSError, EOFError, ValueError, tarfile.TarError, zipfile.BadZipFile) as error:
        # A damaged archive raises different errors, depending on which byte is wrong. zlib.error is
        # not listed because zipfile and tarfile replace it.
        raise NoUsableKit(f"{source} cannot be read: {error}.") from error


@contextmanager
def _open_source(source: Path) -> Iterator[Iterator[_Member]]:
    """Open a folder or an archive, and yield its files."""
    if source.is_dir():
        yield _members_of_folder(source)
    elif not source.is_file():
        # Opening a FIFO, for example, would wait.
        raise NoUsableKit(f"{source} is neither a folder nor a wheel or an sdist.")
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as wheel:
            yield _members_of_wheel(wheel)
    else:
        with tarfile.open(source) as sdist:
            yield _members_of_sdist(sdist)


def _members_of_folder(folder: Path) -> Iterator[_Member]:
    if (folder / ".git").exists():
        # Only what git tracks belongs to the project. A file may have been deleted since.
        names = tracked_files(folder)
    else:
        names = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    for name in names:
        path = folder / name
        if "__pycache__" in path.parts:
            continue
        is_link = path.is_symlink()
        # Otherwise it is a folder, or git tracks it but it was deleted.
        if is_link or path.is_file():
            yield _Member(name, path.lstat().st_size, not is_link, path.read_bytes)


def _members_of_wheel(wheel: zipfile.ZipFile) -> Iterator[_Member]:
    for info in wheel.infolist():
        if info.is_dir():
            continue
        # The upper half of this number is the mode that Unix programs store; 0 if there is none.
        file_type = stat.S_IFMT(info.external_attr >> 16)
        is_plain_file = file_type in (0, stat.S_IFREG)
        yield _Member(info.filename, info.file_size, is_plain_file, partial(wheel.read, info))


def _members_of_sdist(sdist: tarfile.TarFile) -> Iterator[_Member]:
    for info in sdist.getmembers():
        if not info.isdir():
            yield _Member(info.name, info.size, info.isreg(), partial(_read_from_tar, sdist, info))


def _read_from_tar(sdist: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    file = sdist.extractfile(info)
    # It is None for members that are not plain files. These were refused before.
    assert file is not None
    return file.read()


def _members_of_kit(source: Path, members: list[_Member]) -> dict[str, _Member]:
    """Return the files of the kit by their paths in the kit."""
    top = _find_kit([member.path for member in members])
    if top is None:
        raise NoUsableKit(f"{source} has no kit: no file of it is called kit/{_MARK}.")
    found = {}
    for member in members:
        if member.path.startswith(top):
            found[member.path.removeprefix(top)] = member
    return found


def _find_kit(paths: list[str]) -> str | None:
    """Return what the paths of all files of the kit begin with, or None if there is no kit."""
    tops = []
    for path in paths:
        if path == _MARK or path.endswith(f"kit/{_MARK}"):
            tops.append(path.removesuffix(_MARK))
    if not tops:
        return None
    # A project may have copies of a kit deeper in its tree, for example in a template.
    return min(tops, key=len)


def _read_members(source: Path, members: dict[str, _Member]) -> dict[str, bytes]:
    """Read the files of the kit. Raise NoUsableKit if one of them should not be in a kit."""
    total_size = 0
    for path, member in members.items():
        total_size += member.size
        if not member.is_plain_file:
            raise NoUsableKit(f"{source} is refused: {path!r} is not a plain file.")
        if not _is_plain_path(path):
            raise NoUsableKit(f"{source} is refused: {path!r} is not a path inside the kit.")
        if total_size > MAX_BYTES:
            megabytes = MAX_BYTES // 1024 // 1024
            raise NoUsableKit(f"{source} is refused: its kit has more than {megabytes} MB.")
    _refuse_files_in_files(source, members)
    return {path: member.read() for path, member in members.items()}


def _is_plain_path(path: str) -> bool:
    """Return whether a path leads to a file below the folder of the kit, on every system."""
    parts = PurePosixPath(path).parts
    is_relative = not path.startswith("/") and ".." not in parts
    # A backslash separates directories on Windows, and a control character hides a path.
    return is_relative and path.isprintable() and "\\" not in path


def _refuse_files_in_files(source: Path, members: dict[str, _Member]) -> None:
    """Raise NoUsableKit if a file is also the folder of another file."""
    for path in members:
        for parent in PurePosixPath(path).parents:
            if str(parent) in members:
                message = f"{source} cannot be read: {str(parent)!r} is a file and also a folder."
                raise NoUsableKit(message)
