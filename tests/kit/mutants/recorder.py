"""Record which functions of the package each test runs, in every process that the test starts.

`recorded_code.py` compiles the package in a copy of the project so that each function first calls `ran` with its name.
A `.pth` file in the environment of that copy calls `start` in each process before anything else runs. A function is
written down at the moment when it is first called, so a process that is killed with SIGKILL still leaves what it ran.
A forked process begins again.

A process knows its test by HOME: every test has a home of its own (kit/testing/plugin.py). Only the process of pytest
runs many tests, and there `trial_plugin.py` says which one begins.

`sys.settrace` needs no compiling, and was tried: it made the suite take 1.7 times the processor time, as it also sees
every function of the libraries.
"""

import builtins
import fcntl
import os
from contextlib import suppress

OWNER = "owner"
RAN = "ran"
_LEAST_DESCRIPTOR = 200
NAME = "__ran__"
"""The name of the builtin function that the compiled functions call."""


class Recorder:
    """Writes lines of `ran`, owner (a test or a home) and function into a log that all processes append to."""

    def __init__(self, log: str) -> None:
        # Opened once, before anything else runs: the lab takes a file that is opened later for one of its program's.
        # A high number, so that tests which close or count descriptors do not meet it.
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
        self._log = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _LEAST_DESCRIPTOR)
        os.close(descriptor)
        # The lab replaces os.write in the processes that it steps.
        self._write = os.write
        self._test = ""
        self._seen: set[str] = set()

    def begin(self, test: str) -> None:
        """Record every function again, for this test."""
        self._test = test
        self._seen.clear()

    def ran(self, function: str) -> None:
        """Record the function, unless it is recorded already."""
        if function not in self._seen:
            self._seen.add(function)
            self.write(RAN, self._test or os.environ.get("HOME", ""), function)

    def write(self, *fields: str) -> None:
        """Append a line."""
        line = "\t".join(fields).encode("utf-8", "backslashreplace") + b"\n"
        with suppress(OSError):  # the program may have closed all descriptors
            self._write(self._log, line)


recorder: Recorder | None = None
"""The recorder of this process, if it has one."""


def start(log: str) -> None:
    """Record from now on, in this process, its threads and the processes that it forks."""
    global recorder
    recorder = Recorder(log)
    # The compiled functions find `ran` as a builtin, so no module of the package needs an import.
    setattr(builtins, NAME, recorder.ran)
    # A forked process may belong to another test than its parent. Without this, it would not record
    # the functions that the parent recorded before.
    os.register_at_fork(after_in_child=recorder._seen.clear)
