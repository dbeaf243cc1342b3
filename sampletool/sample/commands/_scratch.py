"""Directories below `.tool/tmp/` in which a call's commands run, so that what they make can be renamed into place."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sampletool.kit.context import Context
from sampletool.kit.safety.places import PRIVATE, make_workspace_directory, private_directory
from sampletool.sample.staging import remove


@contextmanager
def scratch(context: Context) -> Iterator[Path]:
    """This call's own."""
    session = private_directory(make_workspace_directory(context.workspace) / "tmp") / context.session_id
    directory = session / context.request_id
    while not directory.exists():
        with suppress(FileNotFoundError):  # another call of this session has just left, and taken it away
            private_directory(session)
            directory.mkdir(mode=PRIVATE)
    try:
        yield directory
    finally:
        remove(directory)
        with suppress(OSError):
            session.rmdir()


def sweep(context: Context) -> None:
    """Remove what killed calls left of theirs. Only under the exclusive build lock: nobody else has any then."""
    for session in (context.workspace / ".tool" / "tmp").iterdir():
        if session.is_symlink() or not session.is_dir():
            continue
        for directory in session.iterdir():
            if directory.name != context.request_id:
                remove(directory)
        with suppress(OSError):
            session.rmdir()
