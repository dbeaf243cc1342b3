"""Code that runs in a forked process: set it up like a fresh interpreter, then run the program.

Each step of the setup replaces something that the process inherited from the fork server. The
descriptors come first: all later steps may fail, and need the setup pipe to report the error.

The docstring of fork_server.py explains the protocol. What its two sides share is defined here.
"""

import atexit
import fcntl
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NoReturn

DESCRIPTOR_CARRIER = b"+"
"""The byte that begins each request. Descriptors cannot be sent alone, only with data."""

# Names of descriptors that come with a request. All others are named by their number in the child.
EXIT_SOCKET = "exit_socket"
"""The server's end of the exit sockets."""
GATE = "gate"
"""The reading end of a pipe. The program begins when no process has the writing end open."""
TRACER = "tracer"
"""The socket to the tracer."""
_SETUP_PIPE = "setup_pipe"
"""The writing end of the setup pipe. It comes from the server, not with the request."""

_OUTPUT_LOST_EXIT_CODE = 120
"""The exit code of an interpreter that cannot flush stdout or stderr at its end."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A client's request to the fork server to start a process."""

    program: list[str]
    """The arguments of `python`."""
    env: dict[str, str]
    cwd: str
    descriptor_names: list[str]
    """A name for each descriptor that comes with the request, in the same order.

    The name is the number that the descriptor gets in the child, or EXIT_SOCKET, GATE or TRACER.
    """
    new_group: bool
    new_session: bool
    watch: str | None
    """The directory in which the tracer wants to see every event, or None without a tracer."""


def become(
    request: Request,
    descriptors_by_name: Mapping[str, int],
    setup_writer: int,
) -> NoReturn:
    """Set up this process, close the setup pipe, run the program, and exit.

    If the setup fails, write the error to the setup pipe and exit. The client raises the error.
    """
    try:
        inherited = {**descriptors_by_name, _SETUP_PIPE: setup_writer}
        named_descriptors = _arrange_descriptors(inherited)
        # The setup pipe has another number now. An error must be written to the new number.
        setup_writer = named_descriptors.pop(_SETUP_PIPE)
        _set_process_group(request)
        os.chdir(request.cwd)
        os.environ.clear()
        os.environ.update(request.env)
        # Without this call, the C library would keep the time zone of the server.
        time.tzset()
        _reopen_standard_streams()
    except OSError as error:
        reply = {"errno": error.errno, "message": f"{error.strerror}: {request.cwd}"}
        os.write(setup_writer, json.dumps(reply).encode())
        os._exit(1)
    # The server reads the end of the pipe, and knows that the setup has succeeded.
    os.close(setup_writer)

    if GATE in named_descriptors:
        _wait_for_gate(named_descriptors[GATE])
    _run_program(request, tracer_socket=named_descriptors.get(TRACER))


def _arrange_descriptors(descriptors_by_name: Mapping[str, int]) -> dict[str, int]:
    """Move the descriptors to their numbers in the child, and close all others.

    Return the new numbers of the descriptors whose name is not a number, such as GATE.
    """
    target_numbers = []
    for name in descriptors_by_name:
        if name.isdecimal():
            target_numbers.append(int(name))

    # First copy all descriptors to numbers above the targets. Otherwise moving one descriptor
    # could overwrite another descriptor that has not been moved yet.
    first_free = max(target_numbers) + 1
    copies_by_name = {}
    for name, descriptor in descriptors_by_name.items():
        copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, first_free)
        copies_by_name[name] = copy
    _close_all_except(copies_by_name.values())

    for number in target_numbers:
        copy = copies_by_name.pop(str(number))
        # dup2() makes the new descriptor inheritable, as the program expects.
        os.dup2(copy, number)
        os.close(copy)
    return copies_by_name


def _close_all_except(kept: Iterable[int]) -> None:
    """Close all other descriptors: the server's, and the sockets of other processes."""
    start = 0
    for descriptor in sorted(kept):
        os.closerange(start, descriptor)
        start = descriptor + 1
    os.closerange(start, os.sysconf("SC_OPEN_MAX"))


def _set_process_group(request: Request) -> None:
    """Start a new session or process group if the request asks for one."""
    if request.new_session:
        os.setsid()
    elif request.new_group:
        os.setpgid(0, 0)


def _reopen_standard_streams() -> None:
    """Replace sys.stdin, sys.stdout and sys.stderr with streams on the new descriptors.

    The inherited objects have the buffering of the server's descriptors. For example, a program
    at a terminal would not write each line as soon as it is complete.
    """
    _reopen_standard_stream("stdin", "r", 0)
    _reopen_standard_stream("stdout", "w", 1)
    _reopen_standard_stream("stderr", "w", 2)


def _reopen_standard_stream(name: str, mode: str, descriptor: int) -> None:
    """Replace one standard stream, for example sys.stdout, with a new one on this descriptor."""
    inherited = getattr(sys, name)
    # These are the rules of the interpreter: stderr and terminals are line-buffered.
    is_line_buffered = name == "stderr" or os.isatty(descriptor)
    buffering = -1
    if is_line_buffered:
        buffering = 1
    stream: Any = open(  # noqa: SIM115 - it stays open as long as the process runs
        descriptor,
        mode,
        buffering=buffering,
        encoding=inherited.encoding,
        errors=inherited.errors,
        # As in the interpreter, the descriptor stays open if the stream is closed.
        closefd=False,
    )
    setattr(sys, name, stream)
    # Python keeps the original stream under a second name, such as sys.__stdout__.
    setattr(sys, f"__{name}__", stream)


def _wait_for_gate(gate: int) -> None:
    """Wait until no process has the writing end of the gate open, then close the reading end."""
    os.read(gate, 1)
    os.close(gate)


def _run_program(request: Request, tracer_socket: int | None) -> NoReturn:
    """Run the program, and exit with the exit code that the interpreter would have.

    `tracer_socket` is the descriptor of the socket to the tracer, or None without a tracer.
    """
    # Not at the top, because the client imports this file too. The server has imported these
    # modules already. In the client, they would cost 3 ms, mostly for sqlite3.
    from . import python_program, tracee

    sys.argv[:] = request.program
    exit_code = 1
    try:
        if tracer_socket is not None:
            assert request.watch is not None
            tracee.start(tracer_socket, request.watch)
            # Keep the server's entry of `sys.path`. With an entry of its own, the first import
            # would list that directory, which would be an event.
        else:
            python_program.set_script_directory()
        python_program.run_program()
        exit_code = 0
    except SystemExit as error:
        exit_code = _exit_code_of(error.code)
    except KeyboardInterrupt as error:
        _print_traceback(error)
        # A negative exit code means that the signal ends the process.
        exit_code = -signal.SIGINT
    except BaseException as error:
        _print_traceback(error)
    finally:
        # In `finally`, because even an error of a handler above must not return to the server's
        # code: this process would then continue as a second server.
        _exit(exit_code)


def _exit_code_of(code: object) -> int:
    """Return the exit code of `sys.exit(code)`. Print `code` to stderr if it is a message."""
    if code is None:
        return 0
    if isinstance(code, int):
        # Only the lowest 8 bits of an exit code reach the parent process.
        return code & 0xFF
    sys.stderr.write(f"{code}\n")
    return 1


def _print_traceback(error: BaseException) -> None:
    """Print the traceback of an error of the program.

    Leave out the outermost frames, which are those of this package.
    """
    package = __name__.rpartition(".")[0]
    package_directory = package.replace(".", os.sep)
    traceback: TracebackType | None = error.__traceback__
    while traceback is not None:
        file_name = traceback.tb_frame.f_code.co_filename
        if package_directory not in file_name:
            break
        traceback = traceback.tb_next
    # The hook prints the traceback of `error`, and ignores its third argument. So change both.
    sys.excepthook(type(error), error.with_traceback(traceback), traceback)


def _exit(exit_code: int) -> NoReturn:
    """Clean up, and exit. If the exit code is negative, let this signal end the process."""
    try:
        _clean_up()
    except OSError:
        exit_code = _OUTPUT_LOST_EXIT_CODE
    except BaseException as error:
        # The error must not leave this function: the process would continue as a second server.
        _print_traceback(error)
        exit_code = 1
    ends_by_signal = exit_code < 0
    if ends_by_signal:
        signal_number = -exit_code
        signal.signal(signal_number, signal.SIG_DFL)
        os.kill(os.getpid(), signal_number)
    os._exit(exit_code)


def _clean_up() -> None:
    """Wait for threads, run `atexit` functions and flush the outputs.

    Do not tear the interpreter down, which would take longer than most programs. Raise OSError if
    an output cannot be flushed.
    """
    # This waits for the threads that are no daemons. multiprocessing calls it too.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
