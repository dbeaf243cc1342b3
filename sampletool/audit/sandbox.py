"""The scratch directory of a probe, which leaves no files and no processes behind."""

import errno
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from ..kit.program import env_variable
from ..kit.safety.orphans import end_all
from ..kit.safety.processes import pids
from ..kit.safety.signals import Signals
from .errors import FailsAlone
from .failure import excerpt
from .run import Run

_INHERITED_VARIABLES = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "LD_LIBRARY_PATH",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "JAVA_HOME",
)
"""The environment variables that a run inherits, because programs may not work without them."""

_DIRECTORY_VARIABLES = {"HOME": "home", "XDG_RUNTIME_DIR": "run", "TMPDIR": "tmp"}
"""Environment variables, and the directory of the sandbox that each of them names.

The other XDG variables, such as XDG_CONFIG_HOME, are not needed: without them, programs use
directories below HOME.
"""

_CEILING_VARIABLES = ("GIT_CEILING_DIRECTORIES", env_variable("CEILING_DIRECTORIES"))
"""Variables that keep a tool from searching the directories above the sandbox for a project."""

_MIN_NAP_SECONDS = 0.0005
_MAX_NAP_SECONDS = 0.02

_WRONG_COMMAND = (errno.ENOENT, errno.ENOEXEC, errno.EACCES)
"""The error numbers that mean that the command is wrong.

Any other failure to start a process, such as a lack of memory, is a problem of this machine.
"""

FileStates = dict[str, tuple[int, int, int]]
"""The inode, the time of the last change, and the size of each file, by its path."""


class Sandbox:
    """A scratch directory, and the runs that are started in it. Use it in a `with` statement.

    At the end of the block, all runs are killed, and all processes that they have started, even
    those in the background. Then the directory is removed.

    A run inherits only a few environment variables. Others, such as GIT_CONFIG_GLOBAL, can name
    files of the user, which an audit must not change.
    """

    def __init__(self, signals: Signals) -> None:
        self.signals = signals
        self.runs: list[Run] = []

    def __enter__(self) -> Self:
        self.directory = Path(tempfile.mkdtemp(prefix="tool-audit-"))
        try:
            for name in ("work", "output", *_DIRECTORY_VARIABLES.values()):
                (self.directory / name).mkdir(mode=0o700)
        except OSError:
            self._clear()
            raise
        self._environ = self._create_environ()
        return self

    def __exit__(self, *error: object) -> None:
        self._clear()

    def launch(self, words: list[str]) -> Run:
        """Start the command `words` in the sandbox, and return the run.

        Raise FailsAlone if there is no such program, or if it cannot be executed.
        """
        self.signals.check()
        # The output has a directory of its own, so that it is not taken for a file of the tool.
        output_path = self.directory / "output" / os.urandom(8).hex()
        try:
            run = Run(words, self._environ, self.directory / "work", output_path)
        except OSError as error:
            if error.errno not in _WRONG_COMMAND:
                raise
            problem = f"cannot be started ({os.strerror(error.errno).lower()})"
            raise FailsAlone(shlex.join(words), problem, "") from None
        self.runs.append(run)
        return run

    def wait_for(self, runs: Sequence[Run], max_seconds: float) -> bool:
        """Wait until all runs have exited. Return False if some still run after `max_seconds`."""
        started_at = time.monotonic()
        while not _poll_all(runs):
            self.signals.check()
            elapsed_seconds = time.monotonic() - started_at
            seconds_left = max_seconds - elapsed_seconds
            if seconds_left <= 0:
                return False
            # Poll often in the beginning: short runs overlap only then. Later, nap for a twentieth
            # of the time that has passed, so that polling does not slow down the runs.
            nap_seconds = max(_MIN_NAP_SECONDS, elapsed_seconds / 20)
            self.signals.wait(min(nap_seconds, _MAX_NAP_SECONDS, seconds_left))
        return True

    def file_states(self) -> FileStates:
        """Return the state of every file and directory that a run may have changed."""
        states = {}
        for path in _walk(self.directory, leave_out="output"):
            # Another process may have removed the file since its directory was read.
            with suppress(OSError):
                status = os.lstat(path)
                states[path] = (status.st_ino, status.st_mtime_ns, status.st_size)
        return states

    def output_of(self, run: Run) -> str:
        """Return what a run has printed, short enough to show, and without the random path."""
        output = run.stderr.strip() or run.stdout
        return excerpt(output.replace(str(self.directory), "SCRATCH"))

    def _create_environ(self) -> dict[str, str]:
        environ = {}
        for name in _INHERITED_VARIABLES:
            if name in os.environ:
                environ[name] = os.environ[name]
        for name, directory in _DIRECTORY_VARIABLES.items():
            environ[name] = str(self.directory / directory)
        for name in _CEILING_VARIABLES:
            environ[name] = str(self.directory)
        return environ

    def _clear(self) -> None:
        """Kill all processes, and remove all files. This is safe even if setting up has failed."""
        for run in self.runs:
            run.kill()
        end_all(self._find_processes, self.signals)
        # A directory without write permission could not be emptied.
        for path in _walk(self.directory):
            if os.path.isdir(path) and not os.path.islink(path):
                with suppress(OSError):
                    os.chmod(path, 0o700)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _find_processes(self) -> list[int]:
        """Return the pids of all processes that the runs have started.

        They may have left the process group of their run. But they inherit an environment that
        contains the path of the sandbox. No other process has this path, because it is random.
        """
        path = os.fsencode(self.directory)
        return [pid for pid in pids() if path in _environment_of(pid)]


def _poll_all(runs: Sequence[Run]) -> bool:
    """Poll every run, and return whether all have exited.

    Poll the others even if one is still running: two runs are only known to overlap if both were
    seen running at about the same time.
    """
    running = 0
    for run in runs:
        if not run.poll():
            running += 1
    return running == 0


def _environment_of(pid: int) -> bytes:
    """Return the environment of a process. It is empty if we cannot read it."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def _walk(directory: Path, leave_out: str = "") -> Iterator[str]:
    """Yield the paths of all files and directories below a directory.

    Skip directories with the name `leave_out`. Each directory is yielded before it is read, so that
    the caller can make it readable first.
    """
    for parent, directory_names, file_names in os.walk(directory):
        # os.walk() does not enter the directories that are missing in this list.
        directory_names[:] = [name for name in directory_names if name != leave_out]
        for name in (*directory_names, *file_names):
            yield os.path.join(parent, name)
