"""A scratch directory for the runs of one probe, and the processes that were started in it."""

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
"""The variables of our caller that a run gets: what it needs to find and to run programs."""

_DIRECTORY_VARIABLES = {"HOME": "home", "XDG_RUNTIME_DIR": "run", "TMPDIR": "tmp"}
"""Variables, and the directories of the sandbox that they name.

The other variables of XDG are not set. By default, their directories are below HOME.
"""

_CEILING_VARIABLES = ("GIT_CEILING_DIRECTORIES", env_variable("CEILING_DIRECTORIES"))
"""Variables that keep a tool from looking for a project above the sandbox."""

_MIN_NAP_SECONDS = 0.0005
_MAX_NAP_SECONDS = 0.02

_WRONG_COMMAND = (errno.ENOENT, errno.ENOEXEC, errno.EACCES)
"""The command is wrong. Any other failure to start it is a failure of this machine."""

FileStates = dict[str, tuple[int, int, int]]
"""The inode, the time of the last change, and the size of each file, by its path."""


class Sandbox:
    """A scratch directory, and all processes that were started in it.

    At the end of the block, every run is killed, and every process that came from one, and the
    directory is removed. A run gets few variables of our caller. Others, such as GIT_CONFIG_GLOBAL,
    may lead to files that an audit must not touch.
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
        """Start a run. Raise FailsAlone if its command is wrong."""
        self.signals.check()
        # In a directory of its own: the output of a run is not a change of the tool's files.
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
        """Wait until all runs have exited. Return False if that takes too long."""
        started_at = time.monotonic()
        while not _poll_all(runs):
            self.signals.check()
            elapsed_seconds = time.monotonic() - started_at
            seconds_left = max_seconds - elapsed_seconds
            if seconds_left <= 0:
                return False
            # Poll often in the beginning, when short runs overlap.
            nap_seconds = max(_MIN_NAP_SECONDS, elapsed_seconds / 20)
            self.signals.wait(min(nap_seconds, _MAX_NAP_SECONDS, seconds_left))
        return True

    def file_states(self) -> FileStates:
        """Return the state of every file that a run may have changed."""
        states = {}
        for path in _walk(self.directory, leave_out="output"):
            # The file may have been removed since its directory was read.
            with suppress(OSError):
                status = os.lstat(path)
                states[path] = (status.st_ino, status.st_mtime_ns, status.st_size)
        return states

    def output_of(self, run: Run) -> str:
        """Return what a run has printed, as it can be shown: short and without our own paths."""
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
        """Kill all processes, and remove all files. This is safe at any time, and twice."""
        for run in self.runs:
            run.kill()
        end_all(self._find_processes, self.signals)
        # A run may have created a directory without the permission to remove its files.
        for path in _walk(self.directory):
            if os.path.isdir(path) and not os.path.islink(path):
                with suppress(OSError):
                    os.chmod(path, 0o700)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _find_processes(self) -> list[int]:
        """Return all processes whose environment contains the path of this directory.

        They came from a run, even if they have left its process group. The path is random, so no
        other process has it by chance.
        """
        path = os.fsencode(self.directory)
        return [pid for pid in pids() if path in _environment_of(pid)]


def _poll_all(runs: Sequence[Run]) -> bool:
    """Poll every run, and return whether all have exited.

    Do not stop at the first one that is still running. Only runs that were polled at about the same
    moment are known to overlap.
    """
    running = 0
    for run in runs:
        if not run.poll():
            running += 1
    return running == 0


def _environment_of(pid: int) -> bytes:
    """Return the environment of a process. It is empty if the process has exited meanwhile."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def _walk(directory: Path, leave_out: str = "") -> Iterator[str]:
    """Yield the paths of everything in a directory, without directories of the name `leave_out`.

    A directory is yielded before it is entered. So the caller can make it readable first.
    """
    for folder, directories, files in os.walk(directory):
        directories[:] = [name for name in directories if name != leave_out]
        for name in (*directories, *files):
            yield os.path.join(folder, name)
