"""Judge one run: read the state that its workers share, and ask the invariant for problems.

After a power cut, the disk may be in one of several states. The judge lets the invariant judge each
of them.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..kit.contract.expected import EXPECTED, to_tool_error
from ..kit.stepping.power_cut import NOT_MODELLED, Files, states_after
from .errors import UnexpectedOutcome
from .scenario import POWER_CUT, History, Scenario, TakenStep
from .stepped_worker import Worker


class Judge:
    """Collects the problems of one run of a variant."""

    def __init__(
        self, scenario: Scenario, variant_name: str, workers: Sequence[Worker], directory: Path
    ) -> None:
        """Remember the files in the scratch directory, before the first step of the run."""
        self.problems: list[str] = []
        """Every sentence that the invariant has yielded, once each."""
        self._scenario = scenario
        self._variant_name = variant_name
        self._variant = scenario.variants[variant_name]
        self._workers = workers
        self._directory = directory
        self._initial_files = _read_files(directory)

    def read_state(self) -> Any:
        """Return the state that the workers share, or the reason why it cannot be read."""
        return self._read_state_in(self._directory)

    def find_problems(
        self, taken_steps: Sequence[TakenStep], state: Any, *, is_finished: bool
    ) -> list[str]:
        """Return the problems that the invariant finds in this state, except for known problems.

        A problem is known if an earlier call has returned it. `is_finished` says whether all
        workers have exited.
        """
        history = self._history(taken_steps, state, is_finished=is_finished)
        return self._add_new_problems(self._scenario.invariant(history))

    def find_problems_after_power_cut(self, taken_steps: Sequence[TakenStep]) -> list[str]:
        """Return the problems of each possible state of the disk, except for known problems."""
        found = []
        for state in self.states_after_power_cut():
            history = self._history(taken_steps, state, is_finished=True)
            problems = []
            for sentence in self._scenario.invariant(history):
                problems.append(f"After the power cut it is possible that {sentence}")
            found += self._add_new_problems(problems)
        return found

    def _history(
        self, taken_steps: Sequence[TakenStep], state: Any, *, is_finished: bool
    ) -> History:
        """Return the history that the invariant judges."""
        return History(
            workers=[worker.name for worker in self._workers],
            taken_steps=taken_steps,
            state=state,
            is_finished=is_finished,
            directory=self._directory,
            disks_after_power_cut=self._disks_after_power_cut,
        )

    def states_after_power_cut(self) -> Iterator[Any]:
        """Yield the shared state for each possible state of the disk after a power cut now.

        Yield nothing if the variant has no power cuts.
        """
        if POWER_CUT not in (self._variant.faults or ""):
            return
        different_disks = {frozenset(files.items()) for files in self._disks_after_power_cut()}
        for files in sorted(different_disks, key=sorted):
            with TemporaryDirectory(dir=self._directory.parent) as disk:
                for name, content in files:
                    Path(disk, name).write_bytes(content)
                yield self._read_state_in(Path(disk))

    def _add_new_problems(self, problems: Iterable[str]) -> list[str]:
        """Add the problems that are not known yet to `problems`. Return only these."""
        new_problems = []
        for problem in problems:
            if problem not in self.problems:
                self.problems.append(problem)
                new_problems.append(problem)
        return new_problems

    def _read_state_in(self, directory: Path) -> Any:
        """Return the shared state in this directory, or the reason why it cannot be read."""
        try:
            return self._scenario.read_state(directory)
        except EXPECTED as error:
            reason = getattr(error, "strerror", None)
            if reason is None:
                reason = to_tool_error(error).message
            return f"({reason.lower().rstrip('.')})"

    def _disks_after_power_cut(self) -> Iterator[Files]:
        """Yield each possible state of the disk after a power cut now. Only A writes to it.

        Raise UnexpectedOutcome if A has made a call that the model of the disk does not know.
        """
        past_events = self._workers[0].stepped.past_events
        for event in past_events:
            is_inside = os.path.dirname(event.path) == str(self._directory)
            if is_inside and event.name in NOT_MODELLED:
                problem = f"what {event.name} leaves after a power cut is not known"
                surprise = f"{self._scenario.name}, {self._variant_name}: {problem}"
                raise UnexpectedOutcome(surprises=[surprise])
        yield from states_after(self._initial_files, past_events, str(self._directory))


def _read_files(directory: Path) -> Files:
    """Return the content of each file in the directory, by name."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
