"""The side of a file that is tried: runs one of its functions in the current directory, in a process of its own.

`python -m sampletool.lab.learner FILE prepare|worker|invariant [NAME]`. The last line on stderr says what went wrong;
the status is BROKEN where the invariant does not hold, 1 where the file itself is wrong. Looking at a file and reading
it are events here too, so that a check before a change is another event than the change.
"""

import builtins
import fcntl
import io
import json
import os
import runpy
import sys
import traceback
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from ..kit.stepping import tracee

BROKEN = 3
_LOOKS = {"stat": "look at", "lstat": "look at", "access": "look at", "scandir": "list", "read": "read"}
_CHANGES = ("os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate")


def main() -> None:
    file, part, *names = sys.argv[1:]
    sys.dont_write_bytecode, sys.stdout = True, sys.stderr
    sys.path.insert(0, os.path.dirname(file))
    root = f"{os.path.dirname(os.getcwd())}/"
    sys.addaudithook(partial(_refuse, root))
    for name, verb in _LOOKS.items():
        setattr(os, name, partial(_look, root, getattr(os, name), verb))
    builtins.open = io.open = import_module("_pyio").open
    tracee.describe = lambda: {"at": f"{os.path.basename(file)}:{_line(file, traceback.extract_stack())}"}
    try:
        functions = runpy.run_path(file, run_name="tried")
        for name in ("worker", "invariant"):
            if not callable(functions.get(name)):
                _end(f"it has no function {name}()")
        said = functions[part](*names) if part in functions else None
        if part == "invariant" and said is not None and said is not True:
            _end(str(said or "invariant() returned False"), BROKEN)
    except Exception as error:
        is_judged = part == "invariant" and isinstance(error, AssertionError)
        number = getattr(error, "lineno", None) or _line(file, traceback.extract_tb(error.__traceback__))
        said = "".join(traceback.format_exception_only(error)).splitlines()[-1]
        if isinstance(error, AssertionError):
            said = str(error) or f"line {number}: the assertion does not hold"
        elif number:
            said = f"line {number}: {said}"
        _end(said, BROKEN if is_judged else 1)


def _look(root: str, original: Any, verb: str, path: Any = ".", *args: Any, **named: Any) -> Any:
    """Tell of it, where it is about the directory."""
    if verb == "read" or not isinstance(path, int):
        place = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.path.abspath(path)
        if os.fsdecode(place).startswith(root):
            sys.audit("stepping.verb", f"{verb} {os.path.basename(os.fsdecode(place))}")
    return original(path, *args, **named)


def _refuse(root: str, event: str, args: tuple[Any, ...]) -> None:
    """The audit hook: what cannot be stepped, and what would change anything elsewhere, ends the process before it."""
    if event == "fcntl.lockf" and not args[1] & (fcntl.LOCK_NB | fcntl.LOCK_UN):
        _end("it waits for a lock with lockf, which cannot be stepped: use fcntl.flock")
    if event == "sqlite3.connect":
        _end("it uses SQLite, whose waiting cannot be stepped: keep what is shared in files")
    opens = event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR)
    for path in args[:1] if opens else args[:2] if event in _CHANGES else ():
        place = root if isinstance(path, int) else os.path.abspath(os.fsdecode(path))
        if not place.startswith((root, "/dev/")):
            _end(f"it changes {place}, outside of its own directory")


def _line(file: str, frames: Iterable[traceback.FrameSummary]) -> int | None:
    """Where in the file it is, or was."""
    lines = [frame.lineno for frame in frames if frame.filename == file]
    return lines[-1] if lines else None


def _end(reason: str, status: int = 1) -> NoReturn:
    """At once, whatever the file catches. What is wrong is for people, and the worker's answer."""
    reason = " ".join(reason.split())
    os.write(2, f"\n{reason}\n".encode())
    os.write(1, json.dumps(reason).encode())
    os._exit(status)


if __name__ == "__main__":
    main()
