"""The forked process: becomes what a fresh interpreter would be, then runs the program.

Each step undoes something that the process has from the fork server. The order matters: descriptors first, because
everything else may fail and has to be told.
"""

import atexit
import fcntl
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn

TRACER = "tracer"
"""The name of the descriptor that is the socket to the tracer."""

_GATE = "gate"


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a client asks the fork server for."""

    program: list[str]
    """The words behind `python`."""
    env: dict[str, str]
    cwd: str
    descriptors: list[str]
    """What the descriptors are that come with the request: a number in the child, or a name of ours."""
    new_group: bool
    new_session: bool
    watch: str | None
    """The directory whose events the tracer wants to see."""


def become(request: Request, descriptors: dict[str, int], told: int) -> NoReturn:
    """Set up this process, close `told`, run the program, and exit.

    A failure to set up is written to `told`, for the client to raise.
    """
    try:
        kept = _arrange_descriptors(descriptors, told)
        told = kept.pop("told")
        _leave_group(request)
        os.chdir(request.cwd)
        os.environ.clear()
        os.environ.update(request.env)
        time.tzset()  # TZ may differ
        _reopen_standard_streams()
    except OSError as error:
        os.write(told, json.dumps({"errno": error.errno, "message": f"{error.strerror}: {request.cwd}"}).encode())
        os._exit(1)
    os.close(told)
    if _GATE in kept:
        gate = kept.pop(_GATE)
        os.read(gate, 1)
        os.close(gate)
    spec = None
    if request.watch is not None:
        spec = {"socket": kept[TRACER], "watch": request.watch}
    _run(request.program, spec)


def _arrange_descriptors(descriptors: dict[str, int], told: int) -> dict[str, int]:
    """Give each descriptor the number that it is asked for, close all others, and return those that have a name."""
    numbers = [int(name) for name in descriptors if name.isdecimal()]
    free = max(numbers) + 1
    # First out of the way: the number that one gets may be where another one is.
    copies = {}
    for name, descriptor in {**descriptors, "told": told}.items():
        copies[name] = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, free)
    named = {name: copy for name, copy in copies.items() if not name.isdecimal()}
    _close_all_but(copies.values())
    for number in numbers:
        os.dup2(copies[str(number)], number)
        os.close(copies[str(number)])
    return named


def _close_all_but(kept: Iterable[int]) -> None:
    """Close every other descriptor, of the server and of other clients' processes."""
    start = 0
    for descriptor in sorted(kept):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def _leave_group(request: Request) -> None:
    if request.new_session:
        os.setsid()
    elif request.new_group:
        os.setpgid(0, 0)


def _reopen_standard_streams() -> None:
    """Open anew what has looked at the server's descriptors: whether it is a terminal, and where it can seek."""
    for name, mode, descriptor in [("stdin", "r", 0), ("stdout", "w", 1), ("stderr", "w", 2)]:
        old = getattr(sys, name)
        is_lines = name == "stderr" or os.isatty(descriptor)
        new: Any = open(  # noqa: SIM115 - as long as the process
            descriptor,
            mode,
            buffering=1 if is_lines else -1,
            encoding=old.encoding,
            errors=old.errors,
            closefd=False,
        )
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def _run(program: list[str], spec: dict[str, Any] | None) -> NoReturn:
    """Run the program, and exit as the interpreter would."""
    from . import tracee

    sys.argv[:] = program
    exit_code = 1
    try:
        tracee.run(spec)
        exit_code = 0
    except SystemExit as end:
        exit_code = _exit_code(end.code)
    except KeyboardInterrupt as error:
        _print_traceback(error)
        exit_code = -signal.SIGINT
    except BaseException as error:
        _print_traceback(error)
    finally:
        _exit(exit_code)


def _exit_code(code: object) -> int:
    """Return what `sys.exit(code)` exits with. A text goes to stderr."""
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    sys.stderr.write(f"{code}\n")
    return 1


def _print_traceback(error: BaseException) -> None:
    """Print the traceback without our own frames, which come first."""
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None and __package__.replace(".", os.sep) in traceback.tb_frame.f_code.co_filename:
        traceback = traceback.tb_next
    # It prints the traceback that the error has, not the one that it is given.
    sys.excepthook(type(error), error.with_traceback(traceback), traceback)


def _exit(exit_code: int) -> NoReturn:
    """Exit without tearing the interpreter down, which would take longer than most programs."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # waits for the threads, as multiprocessing does
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()
    except OSError:
        exit_code = 120  # as the interpreter says that its last words were lost
    except BaseException as error:
        # It must not get out of here: this process would go on as a second server.
        _print_traceback(error)
        exit_code = 1
    if exit_code < 0:
        signal.signal(-exit_code, signal.SIG_DFL)
        os.kill(os.getpid(), -exit_code)
    os._exit(exit_code)
