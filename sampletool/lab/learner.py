"""The side of a file that is tried: runs one of its functions in the current directory, in a process of its own.

`python -m sampletool.lab.learner FILE prepare|worker|invariant [NAME]`. The last line on stderr says what went wrong;
the status is BROKEN where the invariant does not hold, 1 where the file itself is wrong. Looking at a file and reading
it are events here too, so that a check before a change can be told from the change.
"""

import builtins
import fcntl
import inspect
import io
import json
import os
import resource
import runpy
import sqlite3
import sys
import time
import traceback
from collections.abc import Iterator
from functools import partial
from importlib import import_module
from typing import Any, Literal, NoReturn

from sampletool.kit.stepping import tracee

BROKEN = 3
WAIT = "wait for the database"
_BUSY_SECONDS = 0.05
_CPU_SECONDS = 2
_LOOKS = {"stat": "look at", "lstat": "look at", "access": "look at", "scandir": "list", "read": "read"}
_ONE, _TWO = slice(1), slice(2)
_CHANGES = {"os.chmod": _ONE, "os.mkdir": _ONE, "os.remove": _ONE, "os.rmdir": _ONE, "os.truncate": _ONE,
            "os.link": _TWO, "os.rename": _TWO, "os.symlink": slice(1, 2)}  # fmt: skip
"""Which of the arguments are the paths that it changes."""


def main() -> None:
    file, part, *names = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_SECONDS, _CPU_SECONDS))
    sys.dont_write_bytecode, sys.stdout = True, sys.stderr
    sys.path.insert(0, os.path.dirname(file))
    watch = _Watch(f"{os.path.dirname(os.getcwd())}/")
    sys.addaudithook(watch.keep_inside)
    for name, verb in _LOOKS.items():
        setattr(os, name, partial(watch.look, getattr(os, name), verb))
    builtins.open = io.open = import_module("_pyio").open
    sqlite3.connect = partial(_connect, sqlite3.connect)
    tracee.describe = partial(_where, file)
    try:
        functions = runpy.run_path(file, run_name="tried")
        for name in ("worker", "invariant"):
            if not callable(functions.get(name)):
                _end(f"it has no function {name}({'name' if name == 'worker' else ''})")
        _judge(part, functions[part](*names) if part in functions else None)
    except AssertionError as error:
        _end(str(error) or f"{_line(file, error)}the assertion does not hold", BROKEN if part == "invariant" else 1)
    except SystemExit:
        raise
    except BaseException as error:
        _end(f"{_line(file, error)}{''.join(traceback.format_exception_only(error)).splitlines()[-1]}")


class _Watch:
    def __init__(self, root: str) -> None:
        self._root = root
        self._is_busy = False

    def look(self, original: Any, verb: str, path: Any = ".", *args: Any, **named: Any) -> Any:
        """Tell of it, where it is about the directory."""
        if not self._is_busy and (verb == "read" or not isinstance(path, int)):
            place = os.readlink(f"/proc/self/fd/{path}") if isinstance(path, int) else os.path.abspath(path)
            if os.fsdecode(place).startswith(self._root):
                sys.audit("stepping.verb", f"{verb} {os.path.basename(os.fsdecode(place))}")
        return original(path, *args, **named)

    def keep_inside(self, event: str, args: tuple[Any, ...]) -> None:
        """The audit hook: what would change anything elsewhere ends the process, before it does."""
        if event == "fcntl.lockf" and not args[1] & (fcntl.LOCK_NB | fcntl.LOCK_UN):
            _stop("it waits for a lock with lockf, which cannot be stepped: use fcntl.flock")
        self._is_busy = True
        for path in _changed(event, args):
            if not f"{path}/".startswith((self._root, "/dev/")) and os.path.basename(path) != ":memory:":
                _stop(f"it changes {path}, outside of its own directory")
        self._is_busy = False


class _Cursor(sqlite3.Cursor):
    def execute(self, *args: Any) -> Any:
        return _waiting(super().execute, *args)

    def executemany(self, *args: Any) -> Any:
        return _waiting(super().executemany, *args)


class _Connection(sqlite3.Connection):
    def cursor(self, factory: Any = _Cursor) -> Any:
        return super().cursor(factory)

    def execute(self, *args: Any) -> Any:
        return self.cursor().execute(*args)

    def executemany(self, *args: Any) -> Any:
        return self.cursor().executemany(*args)

    def commit(self) -> None:
        _waiting(super().commit)

    def __exit__(self, kind: Any, *_error: Any) -> Literal[False]:
        self.rollback() if kind else self.commit()
        return False


def _connect(original: Any, database: Any, timeout: float = 5.0, *args: Any, **named: Any) -> Any:
    return original(database, min(timeout, _BUSY_SECONDS), *args, **{"factory": _Connection} | named)


def _waiting(do: Any, *args: Any) -> Any:
    """SQLite waits where waiting can help, and fails at once where it cannot. Here it waits as long as it has to."""
    while True:
        began = time.monotonic()
        try:
            return do(*args)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() - began < _BUSY_SECONDS:
                raise
        sys.audit("stepping.verb", WAIT)


def _changed(event: str, args: tuple[Any, ...]) -> Iterator[str]:
    """What it would change, with all links followed but one that is changed itself."""
    if event == "sqlite3.connect" or (event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR)):
        if not isinstance(args[0], int):
            yield os.path.realpath(os.fsdecode(args[0]))
    elif event in _CHANGES:
        for path in args[_CHANGES[event]]:
            directory, name = os.path.split(os.path.abspath(os.fsdecode(path)))
            yield os.path.join(os.path.realpath(directory), name)


def _judge(part: str, found: Any) -> None:
    if inspect.iscoroutine(found):
        found.close()
        _end(f"{part}() is a coroutine, and only processes are stepped: call asyncio.run in it")
    if part == "invariant" and found is not None and found is not True:
        if not isinstance(found, str | bool):
            _end(f"invariant() returned {found!r}; it has to return None, or a sentence that says what is broken")
        _end(str(found or "invariant() returned False"), BROKEN)


def _stop(reason: str) -> NoReturn:
    """At once, whatever the file catches."""
    _say(reason)
    os._exit(1)


def _say(reason: str) -> None:
    """For people, and as the worker's answer."""
    os.write(2, f"\n{reason}\n".encode())
    os.write(1, json.dumps(reason).encode())


def _where(file: str) -> dict[str, Any]:
    """What each event tells besides."""
    lines = [frame.lineno for frame in traceback.extract_stack() if frame.filename == file]
    return {"at": f"{os.path.basename(file)}:{lines[-1]}" if lines else None}


def _line(file: str, error: BaseException) -> str:
    """Where in the file it happened."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    number = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    return f"line {number}: " if number else ""


def _end(reason: str, status: int = 1) -> NoReturn:
    _say(" ".join(reason.split()))
    sys.exit(status)


if __name__ == "__main__":
    main()
