"""What was set in one scratch directory, what that told its callers, and what of it is still there."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sampletool.audit.command_line import CommandLine
from sampletool.audit.errors import FailsAlone
from sampletool.audit.failure import Failure, grouped, understand
from sampletool.audit.run import Run
from sampletool.audit.scratch import Scratch
from sampletool.kit.contract.duration import say_duration
from sampletool.kit.safety.signals import Signals

Outcome = Literal["claimed", "hung"] | Failure


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


class Store(Scratch):
    def __init__(self, candidate: Candidate, signals: Signals) -> None:
        super().__init__(signals)
        self._candidate = candidate
        self._claimed: list[Attempt] = []
        self._failures: list[Failure] = []
        self._hung = 0
        self._unreadable = False

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
        """Wait until they are over and note what each told its caller; who is late is ended and has hung."""
        self._in_time([attempt.run for attempt in attempts])
        return [self._note(attempt) for attempt in attempts]

    def tally(self, before: Attempt) -> Tally:
        """Read back what was claimed, and what was there before."""
        still_readable = self._shows(before)
        claimed, survived = len(self._claimed), sum(self._shows(attempt) for attempt in self._claimed)
        failures = grouped(self._failures)
        return Tally(claimed, survived, claimed - survived, len(self._failures), self._hung, failures, still_readable)

    def _in_time(self, runs: list[Run]) -> bool:
        return self.all_end(runs, self._candidate.deadline_seconds)

    def _note(self, attempt: Attempt) -> Outcome:
        run = attempt.run
        if run.status is None:
            run.end()
            self._hung += 1
            return "hung"
        if run.status == 0:
            self._claimed.append(attempt)
            return "claimed"
        others = {other.pid for other in self.runs} - {run.pid}
        self._failures.append(failure := understand(run.status, run.stdout, run.stderr, self.shown(run), others))
        return failure

    def _shows(self, attempt: Attempt) -> bool:
        """Whether the value can be read back. After a reader that did not end no other is tried."""
        if self._unreadable:
            return False
        reader = self.launch(self._candidate.get_command.fill(attempt.key))
        if not self._in_time([reader]):
            reader.end()
            self._unreadable = True
        return reader.status == 0 and attempt.value in reader.stdout

    def _must_work(self, command: CommandLine, run: Run) -> None:
        if not self._in_time([run]):
            what = f"did not end within {say_duration(self._candidate.deadline_seconds)}"
        elif run.status != 0:
            what = f"failed with status {run.status}"
        else:
            return
        raise FailsAlone(command.show(), what, self.shown(run))
