"""Read the files of a kit from where a newer one may come from.

That is the folder of a kit, a checkout of a project that has one, or a wheel or an sdist of such a
project. Archives are not unpacked: only the files of the kit are read, into memory. The author of
an archive can choose the paths in it, so each path is checked before anything is done with it.
"""

import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from .project import tracked_files

MAX_BYTES = 100 * 1024 * 1024
"""The largest size of all files of a kit. The kit has about 1 MB."""

_IDENTIFYING_FILE = "REVISION"
"""The file that shows that a folder is a kit."""


_READ_ERRORS = (
    OSError,
    EOFError,
    ValueError,
    # Encrypted files, and methods of compression that Python does not know.
    RuntimeError,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)
"""What reading a damaged archive raises. It depends on the archive, and on which byte is wrong."""


class NoUsableKit(Exception):
    """The source has no kit, or one that cannot be used. The message is for the user."""


@dataclass(frozen=True)
class _SourceFile:
    """A file of a folder or an archive. Its content is not read until it has been checked."""

    path: str
    size: int
    is_plain: bool
    """False for links, devices and FIFOs, which may lead to something outside of the source."""
    read: Callable[[], bytes]


def read_kit(source: Path) -> dict[str, bytes]:
    """Return the content of each file of the kit in `source`, by its path in the kit.

    Raise NoUsableKit if there is no kit, or if a file of it cannot be read.
    """
    try:
        with _open_source(source) as all_files:
            kit_files = _select_kit_files(source, list(all_files))
            _refuse_unsafe_files(source, kit_files)
            return {path: file.read() for path, file in kit_files.items()}
    except _READ_ERRORS as error:
        raise NoUsableKit(f"{source} cannot be read: {error}.") from error


@contextmanager
def _open_source(source: Path) -> Iterator[Iterator[_SourceFile]]:
    """Open a folder, a wheel or an sdist, and yield its files. Close it at the end of the block."""
    if source.is_dir():
        yield _files_of_folder(source)
    elif not source.is_file():
        # Opening a FIFO, for example, would wait.
        raise NoUsableKit(f"{source} is neither a folder nor a wheel or an sdist.")
    elif zipfile.is_zipfile(source):
        with zipfile.ZipFile(source) as wheel:
            yield _files_of_wheel(wheel)
    else:
        # An sdist is a tar file. If this is something else, tarfile raises an error.
        with tarfile.open(source) as sdist:
            yield _files_of_sdist(sdist)


def _files_of_folder(folder: Path) -> Iterator[_SourceFile]:
    """Yield the files of a folder, except bytecode. In a checkout, yield those that git tracks."""
    if (folder / ".git").exists():
        paths = tracked_files(folder)
    else:
        paths = [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    for path in paths:
        file = folder / path
        is_bytecode = "__pycache__" in file.parts
        is_link = file.is_symlink()
        # What is neither a file nor a link is a folder, or a tracked file that was deleted.
        if is_bytecode or not (file.is_file() or is_link):
            continue
        yield _SourceFile(
            path=path,
            size=file.lstat().st_size,
            is_plain=not is_link,
            read=file.read_bytes,
        )


def _files_of_wheel(wheel: zipfile.ZipFile) -> Iterator[_SourceFile]:
    """Yield the files of a wheel, which is a zip file."""
    for info in wheel.infolist():
        if info.is_dir():
            continue
        # Programs on Unix store the mode of a file in the upper 16 bits. Others leave them at 0.
        unix_mode = info.external_attr >> 16
        file_type = stat.S_IFMT(unix_mode)
        yield _SourceFile(
            path=info.filename,
            size=info.file_size,
            is_plain=file_type in (0, stat.S_IFREG),
            read=partial(wheel.read, info),
        )


def _files_of_sdist(sdist: tarfile.TarFile) -> Iterator[_SourceFile]:
    """Yield the files of an sdist, which is a tar file."""
    for info in sdist.getmembers():
        if info.isdir():
            continue
        yield _SourceFile(
            path=info.name,
            size=info.size,
            is_plain=info.isreg(),
            read=partial(_read_from_tar, sdist, info),
        )


def _read_from_tar(sdist: tarfile.TarFile, info: tarfile.TarInfo) -> bytes:
    """Return the content of a plain file in a tar file."""
    file = sdist.extractfile(info)
    # It is None for members that are not plain files. These were refused before.
    assert file is not None
    return file.read()


def _select_kit_files(source: Path, all_files: list[_SourceFile]) -> dict[str, _SourceFile]:
    """Return the files of the kit by their paths in the kit. Raise NoUsableKit without a kit."""
    kit_prefix = _find_kit_prefix([file.path for file in all_files])
    if kit_prefix is None:
        message = f"{source} has no kit: no file of it is called kit/{_IDENTIFYING_FILE}."
        raise NoUsableKit(message)
    kit_files = {}
    for file in all_files:
        if file.path.startswith(kit_prefix):
            kit_files[file.path.removeprefix(kit_prefix)] = file
    return kit_files


def _find_kit_prefix(paths: list[str]) -> str | None:
    """Return the beginning of the path of each file of the kit, or None if there is no kit.

    It is "acme/kit/" if `acme/kit/REVISION` exists, and "" if the source is itself a kit.
    """
    prefixes = []
    for path in paths:
        if path == _IDENTIFYING_FILE or path.endswith(f"kit/{_IDENTIFYING_FILE}"):
            prefixes.append(path.removesuffix(_IDENTIFYING_FILE))
    if not prefixes:
        return None
    # A project may have copies of a kit deeper in its tree, for example in a template.
    return min(prefixes, key=len)


def _refuse_unsafe_files(source: Path, kit_files: dict[str, _SourceFile]) -> None:
    """Raise NoUsableKit if the files, by their paths in the kit, cannot be those of a kit.

    Writing them could replace files outside of the kit, or fill the disk.
    """
    total_size = 0
    for path, file in kit_files.items():
        total_size += file.size
        if not file.is_plain:
            raise NoUsableKit(f"{source} is refused: {path!r} is not a plain file.")
        if not _stays_in_kit(path):
            raise NoUsableKit(f"{source} is refused: {path!r} is not a path inside the kit.")
        if total_size > MAX_BYTES:
            megabytes = MAX_BYTES // 1024 // 1024
            raise NoUsableKit(f"{source} is refused: its kit has more than {megabytes} MB.")
    for path in kit_files:
        for folder in PurePosixPath(path).parents:
            # An archive can contain both `a` and `a/b`, but no disk can.
            if str(folder) in kit_files:
                message = f"{source} cannot be read: {str(folder)!r} is a file and also a folder."
                raise NoUsableKit(message)


def _stays_in_kit(path: str) -> bool:
    """Return whether a path leads to a file below the folder of the kit, on every system."""
    parts = PurePosixPath(path).parts
    is_relative = not path.startswith("/") and ".." not in parts
    # A backslash separates directories on Windows, and a control character hides a path.
    return is_relative and path.isprintable() and "\\" not in path
