"""The runs of one probe: what each of them reported to its caller, and what can be read back."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from ..kit.contract.duration import say_duration
from ..kit.safety.signals import Signals
from .command_line import CommandLine
from .errors import FailsAlone
from .failure import Failure, group_failures, parse_failure
from .run import Run
from .sandbox import Sandbox

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
    """What became of the runs of one probe. Runs that were killed are not counted."""

    claimed: int
    survived: int
    silently_lost: int
    failed_loudly: int
    hung: int
    failures: list[Failure]
    still_readable: bool
    """Whether what was stored before the probe can still be read."""


@contextmanager
def open_trial(candidate: Candidate, signals: Signals) -> Iterator["Trial"]:
    """Yield a trial in a new sandbox, which is removed at the end of the block."""
    with Sandbox(signals) as sandbox:
        yield Trial(candidate, sandbox)


class Trial:
    """The attempts of one probe, in one sandbox.

    Each attempt sets a new key. `tally` reads the keys back, and so finds out which are lost.
    """

    def __init__(self, candidate: Candidate, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._candidate = candidate
        self._outcomes: list[tuple[Attempt, Outcome]] = []
        self._has_reader_hung = False

    def prepare(self) -> Attempt:
        """Set one key while nothing else runs, and read it back. Return this attempt.

        Raise FailsAlone if that does not work. Otherwise, there is something to lose now.
        """
        get_command = self._candidate.get_command
        attempt = self.start()
        self._require_success(self._candidate.set_command, attempt.run)
        reader = self.sandbox.launch(get_command.fill(attempt.key))
        self._require_success(get_command, reader)
        if not _shows_value(reader, attempt):
            problem = "did not show the value that had just been set"
            raise FailsAlone(get_command.to_shell(), problem, self.sandbox.output_of(reader))
        return attempt

    def start(self) -> Attempt:
        """Start to set a new key. Use `finish` to wait for the run."""
        # Only letters and digits, so that no tool refuses them. A letter comes first, so that no
        # tool takes them for numbers.
        key = f"k{os.urandom(6).hex()}"
        value = f"v{os.urandom(8).hex()}"
        run = self.sandbox.launch(self._candidate.set_command.fill(key, value))
        return Attempt(run, key, value)

    def finish(self, attempt: Attempt) -> Outcome:
        """Wait until an attempt is over, and return what it has told its caller."""
        (outcome,) = self.finish_all([attempt])
        return outcome

    def finish_all(self, attempts: Sequence[Attempt]) -> list[Outcome]:
        """Wait until all attempts are over, and return what each has told its caller.

        Kill those that have not exited when the deadline passes.
        """
        runs = [attempt.run for attempt in attempts]
        self.sandbox.wait_for(runs, self._candidate.deadline_seconds)
        outcomes = []
        for attempt in attempts:
            outcome = self._outcome_of(attempt.run)
            self._outcomes.append((attempt, outcome))
            outcomes.append(outcome)
        return outcomes

    def tally(self, first: Attempt) -> Tally:
        """Read back the keys of all attempts, and return how many there are of each kind.

        `first` is the attempt of `prepare`, from before the probe.
        """
        still_readable = self._can_be_read(first)
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
                if self._can_be_read(attempt):
                    survived += 1
        return Tally(
            claimed=claimed,
            survived=survived,
            silently_lost=claimed - survived,
            failed_loudly=len(failures),
            hung=hung,
            failures=group_failures(failures),
            still_readable=still_readable,
        )

    def _outcome_of(self, run: Run) -> Outcome:
        """Return what a run has told its caller. Kill it if it is still running."""
        if run.exit_code is None:
            run.kill()
            return "hung"
        if run.exit_code == 0:
            return "claimed"
        other_pids = {other.pid for other in self.sandbox.runs} - {run.pid}
        return parse_failure(
            run.exit_code,
            run.stdout,
            run.stderr,
            shown_output=self.sandbox.output_of(run),
            other_pids=other_pids,
        )

    def _can_be_read(self, attempt: Attempt) -> bool:
        """Return whether the value of an attempt can be read back."""
        # If a reader hung, the next one would hang too, and take as long as the deadline again.
        if self._has_reader_hung:
            return False
        reader = self.sandbox.launch(self._candidate.get_command.fill(attempt.key))
        if not self.sandbox.wait_for([reader], self._candidate.deadline_seconds):
            reader.kill()
            self._has_reader_hung = True
        return reader.exit_code == 0 and _shows_value(reader, attempt)

    def _require_success(self, command: CommandLine, run: Run) -> None:
        """Wait for a run while nothing else runs. Raise FailsAlone if it fails."""
        deadline_seconds = self._candidate.deadline_seconds
        has_exited = self.sandbox.wait_for([run], deadline_seconds)
        if has_exited and run.exit_code == 0:
            return
        if has_exited:
            problem = f"failed with exit code {run.exit_code}"
        else:
            problem = f"did not exit within {say_duration(deadline_seconds)}"
        raise FailsAlone(command.to_shell(), problem, self.sandbox.output_of(run))


def _shows_value(reader: Run, attempt: Attempt) -> bool:
    """Return whether the output of a reader contains the value of this attempt.

    If it shows the value of another attempt instead, this one is lost.
    """
    return attempt.value in reader.stdout
