"""One scratch directory: what was set in it, what callers were told, and what is still there."""

import errno
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self

from ..kit.contract.duration import say_duration
from ..kit.program import env_variable
from ..kit.safety.orphans import end_all
from ..kit.safety.processes import pids
from ..kit.safety.signals import Signals
from .command_line import CommandLine
from .errors import FailsAlone
from .failure import Failure, grouped, shown, understand
from .run import Run

_PASSED_ON = (
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

_PLACES = {"HOME": "home", "XDG_RUNTIME_DIR": "run", "TMPDIR": "tmp"}
"""Variables with directories of a store. The other ones of XDG are below HOME by default."""

_CEILINGS = ("GIT_CEILING_DIRECTORIES", env_variable("CEILING_DIRECTORIES"))
"""Variables that keep a tool from looking for a project above the scratch directory."""

_MIN_NAP_SECONDS = 0.0005
_MAX_NAP_SECONDS = 0.02

_WRONG_COMMAND = (errno.ENOENT, errno.ENOEXEC, errno.EACCES)
"""The command is wrong. Any other failure to start it is a failure of this machine."""

Outcome = Literal["claimed", "hung"] | Failure
"""What a run told its caller. "claimed" means exit code 0: the caller believes that it is done."""


@dataclass(frozen=True)
class Candidate:
    """The audited tool: how a key is set, how it is read back, and how long either may take."""

    set_command: CommandLine
    get_command: CommandLine
    deadline_seconds: float


@dataclass(frozen=True)
class Attempt:
    """One run that sets a key of its own to a random value."""

    run: Run
    key: str
    value: str


@dataclass(frozen=True)
class Tally:
    """What became of the runs of one store. Runs that were killed are not counted."""

    claimed: int
    survived: int
    silently_lost: int
    failed_loudly: int
    hung: int
    failures: list[Failure]
    still_readable: bool
    """Whether what was stored before the probe can still be read."""


class Store:
    """A scratch directory for one probe, and all processes that were started in it.

    At the end of the block, every run is killed, and every process that came from one, and the
    directory is removed. A run gets few variables of our caller. Others, such as GIT_CONFIG_GLOBAL,
    may lead to files that an audit must not touch.
    """

    def __init__(self, candidate: Candidate, signals: Signals) -> None:
        self.signals = signals
        self.runs: list[Run] = []
        self._candidate = candidate
        self._outcomes: list[tuple[Attempt, Outcome]] = []
        self._is_unreadable = False

    def __enter__(self) -> Self:
        self.directory = Path(tempfile.mkdtemp(prefix="tool-audit-"))
        try:
            for place in ("work", "output", *_PLACES.values()):
                path = self.directory / place
                path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            self._clear()
            raise
        self._environ = self._make_environ()
        return self

    def __exit__(self, *error: object) -> None:
        self._clear()

    def _make_environ(self) -> dict[str, str]:
        environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        for name, place in _PLACES.items():
            environ[name] = str(self.directory / place)
        for name in _CEILINGS:
            environ[name] = str(self.directory)
        return environ

    def prepare(self) -> Attempt:
        """Set one key while nothing else runs, and read it back. Return this attempt.

        Raise FailsAlone if that does not work. Otherwise, there is something to lose now.
        """
        get_command = self._candidate.get_command
        attempt = self.start()
        self._require_success(self._candidate.set_command, attempt.run)
        reader = self.launch(get_command.fill(attempt.key))
        self._require_success(get_command, reader)
        if not _has_value(reader, attempt):
            problem = "did not show the value that had just been set"
            raise FailsAlone(get_command.show(), problem, self.shown_output(reader))
        return attempt

    def start(self) -> Attempt:
        """Begin to set a new key."""
        # Letters and digits alone, so that no tool can refuse them. The first one is a letter, so
        # that no tool can take them for numbers.
        key = f"k{os.urandom(6).hex()}"
        value = f"v{os.urandom(8).hex()}"
        run = self.launch(self._candidate.set_command.fill(key, value))
        return Attempt(run, key, value)

    def finish(self, *attempts: Attempt) -> list[Outcome]:
        """Wait until the attempts are over, and return what each has told its caller."""
        self._wait_for([attempt.run for attempt in attempts])
        outcomes = []
        for attempt in attempts:
            outcome = self._outcome(attempt.run)
            self._outcomes.append((attempt, outcome))
            outcomes.append(outcome)
        return outcomes

    def tally(self, before: Attempt) -> Tally:
        """Return what can be read back of what was claimed, and of what was there before."""
        still_readable = self._can_be_read(before)
        claimed = 0
        survived = 0
        hung = 0
        failures = []
        for attempt, outcome in self._outcomes:
            if isinstance(outcome, Failure):
                failures.append(outcome)
            elif outcome == "hung":
                hung += 1
            else:
                claimed += 1
                survived += self._can_be_read(attempt)
        return Tally(
            claimed=claimed,
            survived=survived,
            silently_lost=claimed - survived,
            failed_loudly=len(failures),
            hung=hung,
            failures=grouped(failures),
            still_readable=still_readable,
        )

    def _outcome(self, run: Run) -> Outcome:
        """Return what a run has told its caller. End it if it is still running."""
        if run.status is None:
            run.end()
            return "hung"
        if run.status == 0:
            return "claimed"
        other_pids = {other.pid for other in self.runs} - {run.pid}
        return understand(
            run.status,
            run.stdout,
            run.stderr,
            output=self.shown_output(run),
            other_pids=other_pids,
        )

    def _can_be_read(self, attempt: Attempt) -> bool:
        """Return whether the value of an attempt can be read back."""
        # If a reader hung, the next one would hang too, and cost the deadline again.
        if self._is_unreadable:
            return False
        reader = self.launch(self._candidate.get_command.fill(attempt.key))
        if not self._wait_for([reader]):
            reader.end()
            self._is_unreadable = True
        return reader.status == 0 and _has_value(reader, attempt)

    def _require_success(self, command: CommandLine, run: Run) -> None:
        """Wait for a run that nothing else disturbs. Raise FailsAlone if it fails."""
        if not self._wait_for([run]):
            problem = f"did not exit within {say_duration(self._candidate.deadline_seconds)}"
        elif run.status != 0:
            problem = f"failed with exit code {run.status}"
        else:
            return
        raise FailsAlone(command.show(), problem, self.shown_output(run))

    def launch(self, words: list[str]) -> Run:
        """Start a run. Its output is kept where the run does not see it."""
        self.signals.check()
        output = self.directory / "output" / os.urandom(8).hex()
        try:
            run = Run(words, self._environ, self.directory / "work", output)
        except OSError as error:
            if error.errno not in _WRONG_COMMAND:
                raise
            problem = f"cannot be started ({os.strerror(error.errno).lower()})"
            raise FailsAlone(shlex.join(words), problem, "") from None
        self.runs.append(run)
        return run

    def _wait_for(self, runs: list[Run]) -> bool:
        """Wait until all runs are over. Return False if the deadline passes first."""
        began = time.monotonic()
        # Look at all of them each time: this is how runs are seen to overlap.
        while sum(run.is_over() for run in runs) < len(runs):
            self.signals.check()
            elapsed = time.monotonic() - began
            left = self._candidate.deadline_seconds - elapsed
            if left <= 0:
                return False
            # Look often in the beginning, when short runs overlap.
            nap_seconds = max(_MIN_NAP_SECONDS, elapsed / 20)
            self.signals.wait(min(nap_seconds, _MAX_NAP_SECONDS, left))
        return True

    def snapshot(self) -> dict[str, tuple[int, int, int]]:
        """Return the state of every file that a run may have changed."""
        found = {}
        for path in _below(self.directory, leave_out="output"):
            # The file may have been removed in between.
            with suppress(OSError):
                status = os.lstat(path)
                found[path] = (status.st_ino, status.st_mtime_ns, status.st_size)
        return found

    def shown_output(self, run: Run) -> str:
        """Return what a run has printed, without the name of this directory."""
        output = run.stderr.strip() or run.stdout
        return shown(output.replace(str(self.directory), "SCRATCH"))

    def _clear(self) -> None:
        """Kill all processes, and remove all files. This is safe at any time, and twice."""
        for run in self.runs:
            run.end()
        end_all(self._strays, self.signals)
        # A run may have created a directory without write permission.
        for path in _below(self.directory):
            if os.path.isdir(path) and not os.path.islink(path):
                with suppress(OSError):
                    os.chmod(path, 0o700)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _strays(self) -> list[int]:
        """Return the processes that have left the group of their run.

        Their environment contains the random name of the directory.
        """
        name = os.fsencode(self.directory)
        return [pid for pid in pids() if name in _environment_of(pid)]


def _has_value(reader: Run, attempt: Attempt) -> bool:
    """Return whether a reader shows the value of this attempt, and not an older one."""
    return attempt.value in reader.stdout


def _environment_of(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def _below(directory: Path, leave_out: str = "") -> Iterator[str]:
    """Yield everything in a directory. A directory comes before what is in it."""
    for folder, directories, files in os.walk(directory):
        directories[:] = [name for name in directories if name != leave_out]
        for name in (*directories, *files):
            yield os.path.join(folder, name)
