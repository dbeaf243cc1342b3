"""The first module that runs: it makes the process safe to work in, then hands over to the app.

It prepares the process before it imports the rest of the tool, which takes about 40 ms:

* SIGINT ends the process. The handler that Python installs would print a traceback.
* SIGCHLD is not ignored, because the tool has to learn the exit codes of its children.
* The signals that end a command are not blocked.
* The standard descriptors 0, 1 and 2 are open. A parent that closes stdout (`>&-`) wants no
  response. That is not an error, and the exit code still says how the command ended.

On Windows, or with an old Python, it prints an error instead. So it uses no syntax that Python 3.4
lacks, such as f-strings.
"""

# `import signal` would also import `enum`. An interrupt during this time would still print a
# traceback. `_signal` is part of the interpreter, so importing it reads no file.
import _signal  # type: ignore[import-not-found]
import gc
import os
import sys

from . import name_package

_OLDEST_PYTHON = (3, 11)
_PRECONDITION = 4
"""The exit code ExitStatus.PRECONDITION, which an old Python cannot import."""

_SCHEMA_VERSION = "2.1.0"
"""The version SCHEMA_VERSION of response.py, which an old Python cannot import either."""


def main(package: str) -> int:
    """Run the command in `sys.argv`, and end the process. `package` is the package of the program.

    If the tool cannot run here, print an error and return the exit code.
    """
    if sys.platform == "win32":
        return _refuse(
            package,
            "PLATFORM_NOT_SUPPORTED",
            "The tool needs Linux or macOS. This is Windows.",
            "Run the tool in WSL, the Windows Subsystem for Linux.",
            {"found": "Windows", "required": "Linux or macOS"},
        )
    name_package(package)
    _reset_signals()
    # A command ends before a garbage collection pays off: this saves 6% of `config get` (3.1 ms).
    gc.disable()
    _open_closed_descriptors()
    if sys.version_info < _OLDEST_PYTHON:
        found = ".".join(str(number) for number in sys.version_info[:3])
        oldest = ".".join(str(number) for number in _OLDEST_PYTHON)
        return _refuse(
            package,
            "PYTHON_TOO_OLD",
            "The tool needs Python " + oldest + " or newer. This is Python " + found + ".",
            "Install the tool with a newer Python.",
            {"found": found, "required": ">=" + oldest},
        )
    # Everything before this line has to run before the rest of the tool is imported.
    from .app import main as run_command

    exit_code = run_command()
    _end_process(exit_code)
    return exit_code


def _reset_signals() -> None:
    """Undo what Python and the parent process have arranged for signals."""
    # If the parent ignores SIGINT, as nohup and `&` do, it stays ignored.
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    # If the parent ignores SIGCHLD, the kernel discards the exit codes of this process's children.
    _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
    # A process inherits the signal mask of its parent. With SIGTERM blocked, neither `kill` nor
    # `--timeout` would end a command in time. The children inherit the mask too, so they would run
    # until they are killed with SIGKILL, 5 s later.
    to_unblock = (
        _signal.SIGHUP,
        _signal.SIGINT,
        _signal.SIGQUIT,
        _signal.SIGTERM,
        _signal.SIGCHLD,
    )
    _signal.pthread_sigmask(_signal.SIG_UNBLOCK, to_unblock)


def _open_closed_descriptors() -> None:
    """Open the null device in place of each standard descriptor that is closed.

    Otherwise the next file that is opened would become stdin, stdout or stderr.
    """
    for standard_descriptor in (0, 1, 2):
        try:
            os.fstat(standard_descriptor)
        except OSError:
            # open() returns the lowest free number, which is this one.
            opened = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(opened, True)


def _refuse(package: str, code: str, message: str, suggestion: str, context: object) -> int:
    """Print an error in the format of a response, and return the exit code."""
    # At the top, an interrupt while they are imported (1 ms) would print a traceback.
    import json
    import time

    request_number = int.from_bytes(os.urandom(8), "big")

    response = {
        "ok": False,
        "error": {
            "code": code,
            "message": message,
            "suggestion": suggestion,
            "retryable": False,
            "exit_code": _PRECONDITION,
            "context": context,
        },
        "data": None,
        "warnings": [],
        "meta": {
            # The command line was not read.
            "command": "",
            "request_id": "{:016x}".format(request_number),
            "schema_version": _SCHEMA_VERSION,
            "tool_version": __import__(package).__version__,
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            # Nothing was done.
            "duration_ms": 0,
            "exit_code": _PRECONDITION,
        },
    }
    line = json.dumps(response, separators=(",", ":")) + "\n"
    # Not sys.stdout: it is None if stdout was closed.
    os.write(1, line.encode())
    return _PRECONDITION


def _end_process(exit_code: int) -> None:
    """End the process at once.

    Without this, a thread that is left behind would keep the process running. It also saves 12% of
    `config get` (6.2 ms), which the interpreter needs to free the memory.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, OSError, ValueError):
            # AttributeError: it is None, because its descriptor was closed when Python started.
            # ValueError: it was closed since. OSError: nothing can be written to it.
            pass
    os._exit(exit_code)
