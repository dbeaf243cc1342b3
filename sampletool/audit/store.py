"""A world of its own for one probe: empty directories, private HOME and XDG, and the record of what was done in it.

A store is used as `with`: leaving it kills every run, and every process that came from one, and removes the
directories. Of the caller's environment only what is needed to find and run programs gets in, because anything else
(GIT_CONFIG_GLOBAL, TOOL_CONFIG_DIR, ...) may lead to files that are not ours to touch.
"""

import errno
import os
import secrets
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sampletool.audit.command_line import CommandLine
from sampletool.audit.errors import FailsAlone
from sampletool.audit.failure import Failure, grouped, shown, understand
from sampletool.audit.run import Run
from sampletool.audit.strays import end_strays
from sampletool.contract.duration import say_duration
from sampletool.safety.signals import Signals

_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "JAVA_HOME")
_PLACES = {
    "HOME": "home",
    "XDG_CONFIG_HOME": "home/.config",
    "XDG_STATE_HOME": "home/.local/state",
    "XDG_DATA_HOME": "home/.local/share",
    "XDG_CACHE_HOME": "home/.cache",
    "XDG_RUNTIME_DIR": "run",
    "TMPDIR": "tmp",
}
Outcome = Literal["claimed", "hung"] | Failure

_LONGEST_NAP_SECONDS = 0.02


@dataclass(frozen=True)
class Candidate:
    """The audited tool: how something is set, how it is read back, and how long either may take."""

    set_command: CommandLine
    get_command: CommandLine
    deadline_seconds: float

    def located(self, base: Path) -> "Candidate":
        """The same with both programs found; CommandNotFound for the first that is not."""
        set_command, get_command = self.set_command.located("--set", base), self.get_command.located("--get", base)
        return Candidate(set_command, get_command, self.deadline_seconds)


@dataclass(frozen=True)
class Attempt:
    """One run that sets a key of its own to a value that nobody can guess."""

    run: Run
    key: str
    value: str


@dataclass(frozen=True)
class Tally:
    """What became of the runs of one store, killed ones not counted."""

    claimed: int
    """Ended with status 0: the caller was told that it is done."""
    survived: int
    silently_lost: int
    failed_loudly: int
    hung: int
    failures: list[Failure]
    still_readable: bool
    """What was stored before the probe can still be read."""


class Store:
    def __init__(self, candidate: Candidate, signals: Signals) -> None:
        self._candidate = candidate
        self._signals = signals
        self._runs: list[Run] = []
        self._claimed: list[Attempt] = []
        self._failures: list[Failure] = []
        self._hung = 0
        self._unreadable = False

    def __enter__(self) -> "Store":
        self.directory = Path(tempfile.mkdtemp(prefix="tool-audit-"))
        self._signals.kill_first = self._clear  # a second signal ends us without coming back here
        try:
            for place in ("work", "output", *_PLACES.values()):
                (self.directory / place).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            self._clear()
            raise
        self._environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._environ |= {name: str(self.directory / place) for name, place in _PLACES.items()}
        return self

    def __exit__(self, *error: object) -> None:
        self._clear()
        self._signals.kill_first = lambda: None

    def prepare(self) -> Attempt:
        """Set one key while nothing else runs, and read it back: the command works, and there is something to lose."""
        attempt = self.start()
        if not self._all_end([attempt.run]):
            attempt.run.end()
            raise self._fails_alone(self._candidate.set_command, attempt.run, None)
        if attempt.run.status != 0:
            raise self._fails_alone(
                self._candidate.set_command, attempt.run, f"failed with status {attempt.run.status}"
            )
        if not self._shows(attempt):
            reader = self._runs[-1]
            what = "did not show the value that had just been set" if reader.status == 0 else "failed"
            raise self._fails_alone(self._candidate.get_command, reader, None if self._unreadable else what)
        return attempt

    def start(self) -> Attempt:
        """Begin to set a new key. Letters, digits, no sign that a tool could mind; a letter first, so not a number."""
        key, value = f"k{secrets.token_hex(6)}", f"v{secrets.token_hex(8)}"
        return Attempt(self._start(self._candidate.set_command.fill(key, value), key), key, value)

    def finish(self, *attempts: Attempt) -> list[Outcome]:
        """Wait until they are over and note what each told its caller; who is late is ended and has hung."""
        self._all_end([attempt.run for attempt in attempts])
        return [self._note(attempt) for attempt in attempts]

    def rest(self, seconds: float) -> None:
        """Do nothing for so long, but not for longer than a run may take."""
        until = time.monotonic() + min(seconds, self._candidate.deadline_seconds)
        while (left := until - time.monotonic()) > 0:
            self._signals.check()
            self._signals.wait(left)

    def snapshot(self) -> dict[str, tuple[int, int, int]]:
        """Every file that the runs can have left, with what shows that it was changed."""
        found = {}
        for entry in _entries(self.directory, leave_out="output"):
            with suppress(OSError):
                state = entry.stat(follow_symlinks=False)
                found[entry.path] = state.st_ino, state.st_mtime_ns, state.st_size
        return found

    def tally(self, before: Attempt) -> Tally:
        """Read back what was claimed, and what was there before."""
        still_readable = self._shows(before)
        survived = sum(self._shows(attempt) for attempt in self._claimed)
        lost = len(self._claimed) - survived
        return Tally(
            len(self._claimed), survived, lost, len(self._failures), self._hung, grouped(self._failures), still_readable
        )

    def _note(self, attempt: Attempt) -> Outcome:
        if attempt.run.status is None:
            attempt.run.end()
            self._hung += 1
            return "hung"
        if attempt.run.status == 0:
            self._claimed.append(attempt)
            return "claimed"
        self._failures.append(failure := self._understand(attempt.run))
        return failure

    def _shows(self, attempt: Attempt) -> bool:
        """Whether the value can be read back. After a reader that did not end no other is tried."""
        if self._unreadable:
            return False
        reader = self._read(attempt.key)
        self._unreadable = reader is None
        return reader is not None and reader.status == 0 and attempt.value in reader.stdout

    def _read(self, key: str) -> Run | None:
        reader = self._start(self._candidate.get_command.fill(key), f"get-{key}-{secrets.token_hex(2)}")
        if self._all_end([reader]):
            return reader
        reader.end()
        return None

    def _start(self, words: list[str], name: str) -> Run:
        self._signals.check()
        try:
            run = Run(words, self._environ, self.directory / "work", self.directory / "output" / name)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOEXEC, errno.EACCES):
                raise
            raise FailsAlone(shlex.join(words), f"cannot be started ({os.strerror(error.errno).lower()})", "") from None
        self._runs.append(run)
        return run

    def _all_end(self, runs: list[Run]) -> bool:
        """False when the deadline passes first. Looked at often in the beginning, when short runs meet."""
        began = time.monotonic()
        while sum(run.is_over() for run in runs) < len(runs):
            self._signals.check()
            elapsed = time.monotonic() - began
            if elapsed >= self._candidate.deadline_seconds:
                return False
            left = self._candidate.deadline_seconds - elapsed
            self._signals.wait(min(max(0.0005, elapsed / 20), _LONGEST_NAP_SECONDS, left))
        return True

    def _understand(self, run: Run) -> Failure:
        assert run.status is not None
        others = {other.pid for other in self._runs} - {run.pid}
        return understand(run.status, run.stdout, run.stderr, self._shown(run), others)

    def _fails_alone(self, command: CommandLine, run: Run, what: str | None) -> FailsAlone:
        late = f"did not end within {say_duration(self._candidate.deadline_seconds)}"
        return FailsAlone(command.show(), what or late, self._shown(run))

    def _shown(self, run: Run) -> str:
        return shown((run.stderr.strip() or run.stdout).replace(str(self.directory), "SCRATCH"))

    def _clear(self) -> None:
        """Nothing stays: no process, no file. Safe twice, and in the middle of anything else."""
        for run in self._runs:
            run.end()
        end_strays(self.directory)
        for entry in _entries(self.directory):
            if entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    os.chmod(entry.path, 0o700)
        shutil.rmtree(self.directory, ignore_errors=True)


def _entries(directory: str | Path, leave_out: str = "") -> "Iterator[os.DirEntry[str]]":
    """Everything below, a directory before what is in it."""
    try:
        with os.scandir(directory) as entries:
            found = [entry for entry in entries if entry.name != leave_out]
    except OSError:
        return
    for entry in found:
        yield entry
        if entry.is_dir(follow_symlinks=False):
            yield from _entries(entry.path)
