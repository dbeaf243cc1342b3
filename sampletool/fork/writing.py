"""Writes a project to disk: all of it with its first commit, or nothing.

It is written beside its directory and renamed; the kernel lets that replace nothing but an empty directory. After
kill -9 the directory beside it is left; a later call for the same place removes it.
"""

import os
import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from ..kit.context import Context
from ..kit.contract.file_errors import FileNotFound, OutputExists
from .errors import GitFailed
from .git import git


def must_be_free(directory: Path) -> None:
    if not directory.parent.is_dir():
        raise FileNotFound(str(directory.parent), suggestion="Create it, or give another directory with --to.")
    if directory.exists() and not (directory.is_dir() and not any(directory.iterdir())):
        found = "it is not empty" if directory.is_dir() else "it is not a directory"
        raise OutputExists(str(directory), found=found, suggestion="Choose a new or an empty directory.")


def write(context: Context, files: Mapping[str, bytes], directory: Path, author: str) -> None:
    """Beside `directory`, with the first commit; then one rename, which only a new or an empty directory allows."""
    scratch = directory.with_name(f".{directory.name}.{context.request_id}.fork")
    sweep(directory)
    try:
        for name, content in files.items():
            context.signals.check()
            path = scratch / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if content.startswith(b"#!"):
                path.chmod(path.stat().st_mode | 0o111)
        commit(scratch, author)
        context.signals.check()
        os.rename(scratch, directory)
    except OSError as error:
        must_be_free(directory)  # another call was first
        error.filename = str(directory)
        raise
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def sweep(directory: Path) -> None:
    """Remove what calls for the same directory left that were killed an hour ago; a living one takes seconds."""
    litter = re.compile(rf"\.{re.escape(directory.name)}\.[0-9a-f]{{16}}\.fork")
    for left in directory.parent.iterdir():
        if litter.fullmatch(left.name) and time.time() - left.lstat().st_mtime > 3600:
            shutil.rmtree(left, ignore_errors=True)


def commit(directory: Path, author: str) -> None:
    """In the caller's name, or where git knows none, in that of the author."""
    git(directory, "init", "--quiet", "--template=", "--initial-branch=main")
    git(directory, "add", "--all", "--force")
    who: dict[str, str] = {}
    for role in ("GIT_AUTHOR", "GIT_COMMITTER"):
        try:
            git(directory, "var", f"{role}_IDENT")
        except GitFailed:
            who |= {f"{role}_NAME": author, f"{role}_EMAIL": "nobody@example.org"}
    git(directory, "commit", "--quiet", "--message=Begin", **who)
