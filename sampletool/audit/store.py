"""What was set in one scratch directory, what its callers were answered, and what of it is still there."""

import errno
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, Self

from ..kit.contract.duration import say_duration
from ..kit.program import env_variable
from ..kit.safety.orphans import end_all
from ..kit.safety.processes import pids
from ..kit.safety.signals import Signals
from .command_line import CommandLine
from .errors import FailsAlone
from .failure import Failure, grouped, shown, understand
from .run import Run

_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "JAVA_HOME")
_PLACES = {"HOME": "home", "XDG_RUNTIME_DIR": "run", "TMPDIR": "tmp"}
"""XDG's other directories are below HOME where no variable names them."""
_CEILINGS = ("GIT_CEILING_DIRECTORIES", env_variable("CEILING_DIRECTORIES"))
"""Variables that keep a tool from searching the directories above the scratch directory for a project."""
_LONGEST_NAP_SECONDS = 0.02
_NOT_STARTED = (errno.ENOENT, errno.ENOEXEC, errno.EACCES)
"""The command is wrong; any other failure to start it is this machine's."""

Outcome = Literal["claimed", "hung"] | Failure


class Candidate(NamedTuple):
    """The audited tool: how something is set, how it is read back, and how long either may take."""

    set_command: CommandLine
    get_command: CommandLine
    deadline_seconds: float


class Attempt(NamedTuple):
    """One run that sets a key of its own to a value that nobody can guess."""

    run: Run
    key: str
    value: str


class Tally(NamedTuple):
    """What became of the runs of one store, killed ones not counted."""

    claimed: int
    """Ended with status 0: the caller takes it as done."""
    survived: int
    silently_lost: int
    failed_loudly: int
    hung: int
    failures: list[Failure]
    still_readable: bool
    """What was stored before the probe can still be read."""


class Store:
    """A directory of its own for one probe, a private HOME in it, and every process that was started there.

    Leaving the block kills every run, and every process that came from one, and removes the directory. Of the
    caller's environment only what is needed to find and run programs gets in, because anything else (GIT_CONFIG_GLOBAL,
    TOOL_CONFIG_DIR, ...) may lead to files that are not ours to touch.
    """

    def __init__(self, candidate: Candidate, signals: Signals) -> None:
        self.signals = signals
        self.runs: list[Run] = []
        self._candidate = candidate
        self._outcomes: list[tuple[Attempt, Outcome]] = []
        self._unreadable = False

    def __enter__(self) -> Self:
        self.directory = Path(tempfile.mkdtemp(prefix="tool-audit-"))
        try:
            for place in ("work", "output", *_PLACES.values()):
                (self.directory / place).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            self._clear()
            raise
        self._environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._environ |= {name: str(self.directory / place) for name, place in _PLACES.items()}
        self._environ |= dict.fromkeys(_CEILINGS, str(self.directory))
        return self

    def __exit__(self, *error: object) -> None:
        self._clear()

    def prepare(self) -> Attempt:
        """Set one key while nothing else runs, and read it back: the command works, and there is something to lose."""
        set_command, get_command = self._candidate.set_command, self._candidate.get_command
        attempt = self.start()
        self._must_work(set_command, attempt.run)
        reader = self.launch(get_command.fill(attempt.key))
        self._must_work(get_command, reader)
        if attempt.value not in reader.stdout:
            raise FailsAlone(get_command.show(), "did not show the value that had just been set", self.shown(reader))
        return attempt

    def start(self) -> Attempt:
        """Begin to set a new key. Letters, digits, no sign that a tool could mind; a letter first, so not a number."""
        key, value = f"k{os.urandom(6).hex()}", f"v{os.urandom(8).hex()}"
        return Attempt(self.launch(self._candidate.set_command.fill(key, value)), key, value)

    def finish(self, *attempts: Attempt) -> list[Outcome]:
        """Wait until they are over and note what each answered; who is late is ended and has hung."""
        self._all_end([attempt.run for attempt in attempts])
        outcomes: list[Outcome] = [self._outcome(attempt.run) for attempt in attempts]
        self._outcomes += zip(attempts, outcomes, strict=True)
        return outcomes

    def tally(self, before: Attempt) -> Tally:
        """Read back what was claimed, and what was there before."""
        still_readable = self._shows(before)
        attempts = [attempt for attempt, outcome in self._outcomes if outcome == "claimed"]
        failures = [outcome for _, outcome in self._outcomes if isinstance(outcome, Failure)]
        claimed, survived, failed = len(attempts), sum(map(self._shows, attempts)), len(failures)
        hung = len(self._outcomes) - claimed - failed
        return Tally(claimed, survived, claimed - survived, failed, hung, grouped(failures), still_readable)

    def _outcome(self, run: Run) -> Outcome:
        if run.status is None:
            run.end()
            return "hung"
        if run.status == 0:
            return "claimed"
        others = {other.pid for other in self.runs} - {run.pid}
        return understand(run.status, run.stdout, run.stderr, self.shown(run), others)

    def _shows(self, attempt: Attempt) -> bool:
        """Whether the value can be read back. After a reader that did not end no other is tried."""
        if self._unreadable:
            return False
        reader = self.launch(self._candidate.get_command.fill(attempt.key))
        if not self._all_end([reader]):
            reader.end()
            self._unreadable = True
        return reader.status == 0 and attempt.value in reader.stdout

    def _must_work(self, command: CommandLine, run: Run) -> None:
        if not self._all_end([run]):
            what = f"did not end within {say_duration(self._candidate.deadline_seconds)}"
        elif run.status != 0:
            what = f"failed with status {run.status}"
        else:
            return
        raise FailsAlone(command.show(), what, self.shown(run))

    def launch(self, words: list[str]) -> Run:
        """Begin a run; what it prints is kept beside its directories, where it does not see it."""
        self.signals.check()
        try:
            run = Run(words, self._environ, self.directory / "work", self.directory / "output" / os.urandom(8).hex())
        except OSError as error:
            if error.errno not in _NOT_STARTED:
                raise
            raise FailsAlone(shlex.join(words), f"cannot be started ({os.strerror(error.errno).lower()})", "") from None
        self.runs.append(run)
        return run

    def _all_end(self, runs: list[Run]) -> bool:
        """False when the deadline passes first. Looked at often in the beginning, when short runs meet."""
        began = time.monotonic()
        while sum(run.is_over() for run in runs) < len(runs):
            self.signals.check()
            elapsed = time.monotonic() - began
            left = self._candidate.deadline_seconds - elapsed
            if left <= 0:
                return False
            self.signals.wait(min(max(0.0005, elapsed / 20), _LONGEST_NAP_SECONDS, left))
        return True

    def snapshot(self) -> dict[str, tuple[int, int, int]]:
        """Every file that the runs can have left, with what shows that it was changed."""
        found = {}
        for path in _below(self.directory, leave_out="output"):
            with suppress(OSError):
                state = os.lstat(path)
                found[path] = state.st_ino, state.st_mtime_ns, state.st_size
        return found

    def shown(self, run: Run) -> str:
        """What it printed, without the name of this directory."""
        return shown((run.stderr.strip() or run.stdout).replace(str(self.directory), "SCRATCH"))

    def _clear(self) -> None:
        """Nothing stays: no process, no file. Safe twice, and in the middle of anything else."""
        for run in self.runs:
            run.end()
        end_all(self._strays, self.signals)
        for path in _below(self.directory):
            if os.path.isdir(path) and not os.path.islink(path):
                with suppress(OSError):
                    os.chmod(path, 0o700)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _strays(self) -> list[int]:
        """What left the group of its run, known by its environment: it names a directory that nobody could guess."""
        return [pid for pid in pids() if os.fsencode(self.directory) in _environ(pid)]


def _environ(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def _below(directory: Path, leave_out: str = "") -> Iterator[str]:
    """Everything in it, a directory before what is in that."""
    for folder, directories, files in os.walk(directory):
        directories[:] = [name for name in directories if name != leave_out]
        yield from (os.path.join(folder, name) for name in directories + files)
