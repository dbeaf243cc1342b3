"""Record which functions of the package each test runs, in every process that the test starts.

`coverage_by_test.py` copies this file into the environment of a copy of the project. A `.pth` file there calls
`start` in each process before anything else runs. A function is written down at the moment when it is first called,
so a process that is killed with SIGKILL still leaves what it ran. A forked process begins anew.

A process knows its test by HOME: every test has a home of its own (tests/kit/plugin.py). Only the process of pytest
runs many tests, and there `trial_plugin.py` says which one begins.

This file imports nothing of the project: the project is what it watches. It uses `sys.settrace`, not `sys.monitoring`,
which needs Python 3.12.
"""

import os
import sys
import threading
from contextlib import suppress
from types import CodeType, FrameType

OWNER = "owner"
RAN = "ran"


class Recorder:
    """Writes lines of `ran`, owner (a test or a home), file and function into a log that all processes append to."""

    def __init__(self, package: str, log: str) -> None:
        self._package = package
        self._log = log
        self._test = ""
        # By the identity of the code: to compare code objects would compare all of their constants. The code is kept,
        # or another one could get its identity.
        self._seen: dict[int, CodeType] = {}

    def begin(self, test: str) -> None:
        """Record every function again, for this test."""
        self._test = test
        self._seen.clear()

    def see(self, frame: FrameType, _event: str, _argument: object) -> None:
        """Record the function. Python calls this at the beginning of each function, and for nothing else."""
        code = frame.f_code
        if id(code) in self._seen:
            return
        self._seen[id(code)] = code
        if code.co_filename.startswith(self._package):
            name = code.co_qualname.partition(".<locals>")[0]
            file = code.co_filename.removeprefix(self._package)
            self.write(RAN, self._test or os.environ.get("HOME", ""), file, name)

    def write(self, *fields: str) -> None:
        """Append a line. Nothing is kept open: a test may count the descriptors of its processes, or close them all."""
        line = "\t".join(fields).encode("utf-8", "backslashreplace") + b"\n"
        with suppress(OSError):  # a test may have taken its process the right to open a file
            descriptor = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)


recorder: Recorder | None = None
"""That of this process, if it has one."""


def start(package: str, log: str) -> None:
    """Record from now on, in this process, its threads and the processes that it forks."""
    global recorder
    recorder = Recorder(package, log)
    os.register_at_fork(after_in_child=recorder._seen.clear)
    threading.settrace(recorder.see)
    sys.settrace(recorder.see)
