"""The runs of one probe: how each of them ended, and whether its value can be read back."""

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
"""How a run ended, as its caller sees it.

* "claimed": it exited with 0, so the caller believes that the value is stored.
* "hung": it did not exit before the deadline.
* A Failure: it exited with another exit code, or a signal killed it.
"""


@dataclass(frozen=True)
class Candidate:
    """The audited tool: its commands to set and to read back a key, and how long a run may take."""

    set_command: CommandLine
    get_command: CommandLine
    deadline_seconds: float


@dataclass(frozen=True)
class Attempt:
    """A run that sets a new key, which no other run uses, to a random value."""

    run: Run
    key: str
    value: str


@dataclass(frozen=True)
class Tally:
    """The counts of the runs of one probe. Runs that the probe has killed are not counted."""

    claimed: int
    """How many runs reported success with exit code 0."""
    survived: int
    """How many of the claimed values could be read back."""
    silently_lost: int
    """How many of the claimed values could not be read back."""
    failed_loudly: int
    """How many runs reported a failure with their exit code."""
    hung: int
    """How many runs did not exit before the deadline."""
    failures: list[Failure]
    """The failed runs, grouped by kind."""
    still_readable: bool
    """Whether the value that was stored before the probe can still be read."""


@contextmanager
def open_trial(candidate: Candidate, signals: Signals) -> Iterator["Trial"]:
    """Yield a trial in a new sandbox. At the end of the block, remove the sandbox."""
    with Sandbox(signals) as sandbox:
        yield Trial(candidate, sandbox)


class Trial:
    """The attempts of one probe, in one sandbox.

    Each attempt sets a new key. At the end, `tally` reads all keys back, to find out which of the
    values are lost.
    """

    def __init__(self, candidate: Candidate, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self._candidate = candidate
        self._outcomes: list[tuple[Attempt, Outcome]] = []
        self._has_reader_hung = False

    def prepare(self) -> Attempt:
        """Set a key while nothing else runs, and read it back. Return this attempt.

        This checks that the commands work, and stores a value that the probe may destroy. Raise
        FailsAlone if one of the commands fails, or if the value is not shown.
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
        """Start a run that sets a new key. Use `finish` to wait for it."""
        # Use only letters and digits, which every tool accepts. Begin with a letter, because a tool
        # might take other texts for numbers.
        key = f"k{os.urandom(6).hex()}"
        value = f"v{os.urandom(8).hex()}"
        run = self.sandbox.launch(self._candidate.set_command.fill(key, value))
        return Attempt(run, key, value)

    def finish(self, attempt: Attempt) -> Outcome:
        """Wait for one run, as `finish_all` does. Return how it ended."""
        (outcome,) = self.finish_all([attempt])
        return outcome

    def finish_all(self, attempts: Sequence[Attempt]) -> list[Outcome]:
        """Wait until all runs have exited, or the deadline has passed. Return how each run ended.

        Kill the runs that are still running after the deadline.
        """
        runs = [attempt.run for attempt in attempts]
        self.sandbox.wait_for(runs, self._candidate.deadline_seconds)
        outcomes = []
        for attempt in attempts:
            outcome = self._end_run(attempt.run)
            self._outcomes.append((attempt, outcome))
            outcomes.append(outcome)
        return outcomes

    def tally(self, first: Attempt) -> Tally:
        """Read back the keys of all attempts, and return the counts of the probe.

        `first` is the attempt that `prepare` has returned.
        """
        still_readable = self._read_back(first)
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
                if self._read_back(attempt):
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

    def _end_run(self, run: Run) -> Outcome:
        """Kill a run if it is still running. Return how it ended."""
        if run.exit_code is None:
            run.kill()
            return "hung"
        if run.exit_code == 0:
            return "claimed"
        # If the error mentions one of the other runs, it says who holds the lock.
        other_pids = {other.pid for other in self.sandbox.runs} - {run.pid}
        return parse_failure(
            run.exit_code,
            run.stdout,
            run.stderr,
            shown_output=self.sandbox.output_of(run),
            other_pids=other_pids,
        )

    def _read_back(self, attempt: Attempt) -> bool:
        """Read the value of an attempt back. Return whether this gave the value."""
        # If a reader hung, the next one would hang too, and take as long as the deadline again.
        if self._has_reader_hung:
            return False
        reader = self.sandbox.launch(self._candidate.get_command.fill(attempt.key))
        if not self.sandbox.wait_for([reader], self._candidate.deadline_seconds):
            reader.kill()
            self._has_reader_hung = True
        return reader.exit_code == 0 and _shows_value(reader, attempt)

    def _require_success(self, command: CommandLine, run: Run) -> None:
        """Wait for a run of this command. Raise FailsAlone if it fails or does not exit in time."""
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

    The value of another attempt does not count: then the value of this one is lost.
    """
    return attempt.value in reader.stdout
