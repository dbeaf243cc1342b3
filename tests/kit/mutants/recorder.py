"""Record which functions of the package each test runs, in every process that the test starts.

`recorded_code.py` compiles the package in a copy of the project so that each function first calls
`ran` with its name. A `.pth` file in the environment of that copy calls `start` in each process
before anything else runs. A function is recorded when it is first called. So a process that is
killed with SIGKILL has still recorded what it ran. A forked process begins again.

A process knows its test by HOME, because every test has its own home (kit/testing/plugin.py). Only
the process of pytest runs many tests. There, `trial_plugin.py` tells the recorder which one begins.

`sys.settrace` would need no compiling. It was tried: the suite took 1.7 times the processor time,
because it also sees every function of the libraries.
"""

import builtins
import fcntl
import os
from contextlib import suppress

OWNER = "owner"
"""The kind of a line that names the test of a directory."""
RAN = "ran"
"""The kind of a line that names a function and its owner."""
NAME = "__ran__"
"""The name of the builtin function that the compiled functions call."""
_LEAST_DESCRIPTOR = 200
"""The lowest number of the log's descriptor.

It is so high that tests which close or count descriptors do not meet it.
"""


class Recorder:
    """The writer of a log that all processes append to.

    Each line names a function and its owner, which is a test or a home directory.
    """

    def __init__(self, log: str) -> None:
        self._path = log
        # Open it before anything else runs: the lab takes a file that is opened later for one of
        # the files of the program that it steps.
        self._log = self._open(os.O_CREAT)
        # The lab replaces os.write in the processes that it steps.
        self._write = os.write
        self._test = ""
        self._owner = ""
        self._seen: set[str] = set()

    def begin(self, test: str) -> None:
        """Record every function again, for this test."""
        self._test = test
        self._seen.clear()

    def begin_in_forked_process(self) -> None:
        """Record every function again. A forked process may belong to another test."""
        self._seen.clear()

    def ran(self, function: str) -> None:
        """Record the function, unless it is recorded already."""
        if function in self._seen:
            return
        owner = self._test or os.environ.get("HOME", "")
        if owner != self._owner:
            self._owner = owner
            # A process of the fork server runs some functions before it gets the home of its test.
            # They belong to that test as well.
            for earlier in self._seen:
                self.write(RAN, owner, earlier)
        self._seen.add(function)
        self.write(RAN, owner, function)

    def write(self, *fields: str) -> None:
        """Append a line. Do nothing if the log cannot be written any more."""
        line = "\t".join(fields).encode("utf-8", "backslashreplace") + b"\n"
        try:
            self._write(self._log, line)
        except OSError:
            # The process has closed all its descriptors. Every process of the fork server does so.
            with suppress(OSError):
                self._log = self._open()
                self._write(self._log, line)

    def _open(self, more_flags: int = 0) -> int:
        """Return a new descriptor of the log."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | more_flags
        low_descriptor = os.open(self._path, flags, 0o666)
        try:
            return fcntl.fcntl(low_descriptor, fcntl.F_DUPFD_CLOEXEC, _LEAST_DESCRIPTOR)
        finally:
            os.close(low_descriptor)


recorder: Recorder | None = None
"""The recorder of this process, if it has one."""


def start(log: str) -> None:
    """Record from now on, in this process, its threads and the processes that it forks."""
    global recorder
    recorder = Recorder(log)
    # The compiled functions find `ran` as a builtin, so no module of the package needs an import.
    setattr(builtins, NAME, recorder.ran)
    os.register_at_fork(after_in_child=recorder.begin_in_forked_process)
