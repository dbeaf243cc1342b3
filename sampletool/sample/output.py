"""Publish one result file so that nobody is ever silently overwritten.

A result names what it was made of, its *identity*; the same again is `unchanged`, and is not computed. Anything else
that is at the path is OUTPUT_EXISTS, before the work and again when it is published, unless overwriting was asked
for. Of two that write one path at once the second gets LOCK_HELD. The lock is the user's, so callers who do not share
it (another HOME, another user) are told apart by the file system: publishing makes a link, which never replaces.
The work is done under the lock, and a result that was cut or edited by hand is not taken for one of ours.
"""

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from sampletool.kit.contract.file_errors import FileNotFound, OutputExists, PermissionDenied, UnsafePath
from sampletool.kit.safety.atomic_file import FOR_ALL, create, replace, sweep
from sampletool.kit.safety.places import private_directory, session_root, state_directory

_HEAD = b'{"about":'
_LONGEST_HEAD_BYTES = 64 * 1024 * 1024
"""Bad rows of thousands of inputs have room in it."""
_BLOCK_BYTES = 1024 * 1024
_TAIL = '"sha256":"{}"}}\n'
_TAIL_BYTES = len(_TAIL.format("0" * 64))
_LITTER_SECONDS = 3600.0

About = dict[str, Any]


class Published(NamedTuple):
    effect: Literal["created", "updated", "unchanged"]
    about: About
    """The identity, and whatever else the result says about itself; in a forecast, as far as it is known."""


class Result(NamedTuple):
    """What computing gave: a summary, and a list of which each item is written on a line of its own."""

    summary: About
    member: str
    items: Iterable[Any]


def publish(path: Path, identify: Callable[[], About], compute: Callable[[], Result], *, overwrite: bool) -> Published:
    """Under the lock of `lock_path`: look, identify, look again, compute, publish."""
    sweep(path, _LITTER_SECONDS)
    forecasted = forecast(path, identify, overwrite=overwrite)
    if forecasted.effect == "unchanged":
        return forecasted
    result = compute()
    about = forecasted.about | result.summary
    content = _sealed(about, result)
    if overwrite:
        replace(path, content, FOR_ALL)
        return Published(forecasted.effect, about)
    try:
        create(path, content)
    except FileExistsError:
        # A process that does not share our lock was faster; with the same result there is nothing to complain about.
        found = _look(path)
        if found is not None and found.about == about:
            return Published("unchanged", about)
        raise OutputExists(str(path), found=found.what if found else "it comes and goes") from None
    return Published("created", about)


def forecast(path: Path, identify: Callable[[], About], *, overwrite: bool) -> Published:
    """What publishing would do now. Takes no lock and creates nothing."""
    found = _look(path)
    if found is None:
        return Published("created", {"identity": identify()})
    if overwrite and not found.is_file:
        raise UnsafePath(str(path), found.what)
    if found.about is None and not overwrite:
        raise OutputExists(str(path), found=found.what)
    identity = identify()
    if found.about is not None and found.about["identity"] == identity:
        return Published("unchanged", found.about)
    if not overwrite:
        raise OutputExists(str(path), found=found.what)
    return Published("updated", {"identity": identity})


def must_be_writable(path: Path) -> None:
    """Said before the work: that there can be no file at this path, or none of ours."""
    if not path.parent.is_dir():
        raise FileNotFound(str(path.parent))
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise PermissionDenied(str(path.parent), "nothing can be written here")
    if path.exists() and not path.is_file():
        raise UnsafePath(str(path), "it is not a regular file")


def lock_path(path: Path) -> Path:
    """In a session beside the output, to go with it; elsewhere in a directory of the user's own, and never removed.

    There it is named by the directory's inode: however a path is spelt, it is the same lock.
    """
    if path.parent.parent == Path(os.path.realpath(session_root())):
        return path.with_name(f".{path.name}.lock")
    directory = os.stat(path.parent)
    name = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]
    locks = private_directory(private_directory(state_directory()) / "locks")
    return locks / f"output-{directory.st_dev:x}-{directory.st_ino:x}-{name}.lock"


class _Found(NamedTuple):
    what: str
    about: About | None = None
    """What it says about itself, if it is a whole result."""
    is_file: bool = True


def _look(path: Path) -> _Found | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError:
        is_file = stat.S_ISREG(path.lstat().st_mode)
        return _Found("it cannot be read" if is_file else "it is not a regular file", is_file=is_file)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        return _Found("it is not a regular file", is_file=False)
    with os.fdopen(descriptor, "rb") as file:
        if not file.peek(len(_HEAD)).startswith(_HEAD):
            return _Found("it is not a result of this command")
        head = file.readline(_LONGEST_HEAD_BYTES)
        digest = hashlib.sha256(head)
        left = found.st_size - len(head) - _TAIL_BYTES
        while left > 0 and (block := file.read(min(left, _BLOCK_BYTES))):
            digest.update(block)
            left -= len(block)
        is_sealed = file.read() == _TAIL.format(digest.hexdigest()).encode()
    if not is_sealed:
        return _Found("it was cut or changed after it was written")
    try:
        about = json.loads(head[len(_HEAD) : -2])
    except (ValueError, RecursionError):
        about = None
    if not isinstance(about, dict) or "identity" not in about:
        return _Found("it is not a result of this command")
    return _Found("it is the result of other inputs or options", about)


def _sealed(about: About, result: Result) -> Iterator[bytes]:
    """One line about it, one line for each item, and a digest of all that is before it."""
    digest, block = hashlib.sha256(), b""
    for line in _lines(about, result):
        digest.update(line)
        block += line
        if len(block) > _BLOCK_BYTES:
            yield block
            block = b""
    yield block + _TAIL.format(digest.hexdigest()).encode()


def _lines(about: About, result: Result) -> Iterator[bytes]:
    yield b"%b%b,\n%b:[\n" % (_HEAD, _json(about), _json(result.member))
    between = b""
    for item in result.items:
        yield between + _json(item)
        between = b",\n"
    yield b"],\n"


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
