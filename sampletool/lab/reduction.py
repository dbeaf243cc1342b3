"""Explore every schedule that makes a difference, and leave out the others.

Two neighbouring steps of different workers *conflict* if they use the same file or lock, and one of
them changes it. If they do not conflict, they can be swapped without changing the result. So all
schedules fall into *classes*: two schedules are in the same class if swapping such neighbours turns
one into the other. It is enough to run one schedule of each class.

Example: A and B each read a counter, write a temporary file of their own, and rename it. There are
70 schedules and 4 classes: A before B, B before A, and both read before one or the other renames.

The classes are not known in advance. So the search starts with one run, and looks for its *races*:
pairs of conflicting steps that could also have run in the other order, see step_order.py. For each
race, it plans a run that is the same up to the first of the two steps. There, the planned run lets
another worker continue, so that the second step comes first. The search executes the planned runs
and looks for their races, until no run is planned any more.

A *situation* is the state of a run after the first tokens of its schedule, its *prefix*. Workers
are deterministic, so runs with the same prefix come to the same situation.

In a situation, a worker is *explored* if earlier runs have taken its next step there. A later run
that takes a step of another worker need not take the explored step next: the two steps can be
swapped, and then the run would repeat the class of an earlier one. The worker stays explored until
another worker takes a step that conflicts with its next step. Example:

* The first run begins with A1 and A2. Then a run is planned that begins with A1 and B1.
* After A1 B1, worker A is explored if B1 and A2 do not conflict: `A1 B1 A2` would lead to the same
  situation as `A1 A2 B1`, which is left to earlier runs.
* So the run continues with B2. If B2 conflicts with A2, A is not explored any more.

The search gives up a run in which all workers are explored: earlier runs have its class.

This is *dynamic partial-order reduction* (Flanagan and Godefroid, 2005), with the source sets of
Abdulla, Aronis, Jonsson and Sagonas (2014). They call the explored workers the *sleep set*.

It works only if all effects of each step are known, and if a step always has the same effects in
the same situation. A worker that waits in a loop is not chosen until a file that it reads changes,
see stepped_worker.py. Otherwise the number of schedules would be infinite.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from ..kit.stepping.effects import Effects, conflict
from .recording import PlayedRun, Turn, worker_of
from .step_order import Race, find_races

_REPORTED_NUMBER = 100
"""Progress is reported if more runs than this are planned."""

Prefix = tuple[str, ...]
"""The first tokens of a schedule. They identify a situation."""

ExploredWorkers = Mapping[str, Effects]
"""The explored workers of a situation, each with the effects of its next step."""

Choose = Callable[[Sequence[str], Sequence[Turn]], str | None]
"""A function that chooses one of the possible tokens, given the turns so far. None ends the run."""

Run = Callable[[str, Choose], PlayedRun]
"""A function that follows a schedule, and then lets another function choose how to continue."""


class NotDeterministic(Exception):
    """The same schedule led to different steps."""

    def __init__(self, schedule: str, expected: str, found: str) -> None:
        super().__init__(schedule, expected, found)
        self.schedule = schedule
        self.expected = expected
        self.found = found


@dataclass(kw_only=True)
class _Situation:
    """The knowledge about a situation."""

    possible_tokens: tuple[str, ...]
    """The tokens that can be taken here."""
    explored_at_first: ExploredWorkers
    """The workers that were explored when a run came to this situation for the first time."""
    planned_tokens: list[str] = field(default_factory=list)
    """The tokens that runs have taken or will take here, in the order of planning."""
    turns_by_token: dict[str, Turn] = field(default_factory=dict)
    """The steps that runs have taken here."""

    def add_turn(self, turn: Turn) -> None:
        """Store a step that a run has taken here."""
        if turn.token not in self.planned_tokens:
            # The run has chosen this token itself, after the end of its planned schedule.
            self.planned_tokens.append(turn.token)
        self.turns_by_token[turn.token] = turn

    def is_covered(self, worker: str) -> bool:
        """Return whether runs that continue with this worker are planned, executed or needless."""
        planned_workers = {worker_of(token) for token in self.planned_tokens}
        return worker in planned_workers or worker in self.explored_at_first

    def explored_before(self, token: str) -> ExploredWorkers:
        """Return the explored workers for a planned run that takes this token here.

        Besides the workers that were explored at first, these are the workers whose tokens were
        planned earlier.
        """
        explored = dict(self.explored_at_first)
        for planned_token in self.planned_tokens:
            if planned_token == token:
                break
            # Without the effects of a step, no conflict could be found. So its worker does not
            # count as explored until a run has taken the step.
            if planned_token in self.turns_by_token:
                explored[worker_of(planned_token)] = self.turns_by_token[planned_token].effects
        explored.pop(worker_of(token), None)
        return explored


@dataclass(frozen=True)
class _PlannedRun:
    """A run that continues an earlier run's prefix with another token."""

    prefix: Prefix
    token: str | None
    """The token that comes after the prefix. None for the first run, which may take any token."""

    def schedule(self) -> str:
        """Return the beginning of the schedule that is planned."""
        if self.token is None:
            return ""
        return " ".join([*self.prefix, self.token])


_FIRST_RUN = _PlannedRun(prefix=(), token=None)
"""The run with which every search starts."""


@dataclass(frozen=True)
class _ReadyRun:
    """A planned run whose situation has been looked up, so that a thread can execute it."""

    planned: _PlannedRun
    explored_at_start: ExploredWorkers
    """The workers that are explored when the run takes the token after its prefix."""


class Search:
    """A search through the classes of schedules. `runs` yields a run of each class."""

    def __init__(
        self, run: Run, report_progress: Callable[[str], None] = lambda line: None
    ) -> None:
        self._run = run
        self._report_progress = report_progress
        self._situations: dict[Prefix, _Situation] = {}
        # First in, first out. So each of the next runs differs from the first run in one race only.
        # If the number of runs is limited, these runs find most mistakes.
        self._planned_runs = deque([_FIRST_RUN])

    @property
    def remaining(self) -> int:
        """The number of planned runs that have not been executed yet."""
        return len(self._planned_runs)

    def runs(self) -> Generator[PlayedRun, None, None]:
        """Yield one run of each class, always in the same order.

        Close the generator if you do not take all runs: this ends its threads.
        """
        processors = os.cpu_count() or 1
        with ThreadPoolExecutor(processors) as pool:
            while self._planned_runs:
                batch = self._next_batch(processors)
                # The pool starts all runs of the batch at once, and returns them in this order.
                played_runs = pool.map(self._execute, batch)
                for ready, played in zip(batch, played_runs, strict=True):
                    self._learn_from(ready, played.turns)
                    if played.is_complete:
                        yield played
                if self.remaining > _REPORTED_NUMBER:
                    self._report_progress(f"{self.remaining} more schedules, at least.")

    def _next_batch(self, most_runs: int) -> list[_ReadyRun]:
        """Remove the next planned runs, and return them ready to be executed.

        Their threads must not read the situations, which change while the batch is executed. So
        this looks up all that the threads need.
        """
        batch: list[_ReadyRun] = []
        while self._planned_runs and len(batch) < most_runs:
            planned = self._planned_runs.popleft()
            batch.append(_ReadyRun(planned, self._explored_at_start(planned)))
        return batch

    def _explored_at_start(self, planned: _PlannedRun) -> ExploredWorkers:
        """Return the workers that are explored when a run takes the token after its prefix."""
        if planned.token is None:
            return {}
        return self._situations[planned.prefix].explored_before(planned.token)

    def _execute(self, ready: _ReadyRun) -> PlayedRun:
        """Execute a planned run. After its planned token, choose workers that are not explored."""
        start = len(ready.planned.prefix)

        def choose(possible_tokens: Sequence[str], turns: Sequence[Turn]) -> str | None:
            """Return the next token of the run, or None to give the run up."""
            explored = ready.explored_at_start
            for turn in turns[start:]:
                explored = _explored_after(turn, explored)
            return _choose_unexplored(possible_tokens, explored, turns)

        return self._run(ready.planned.schedule(), choose)

    def _learn_from(self, ready: _ReadyRun, turns: Sequence[Turn]) -> None:
        """Store the situations and steps of a run, and plan the runs that its races call for."""
        self._store_new_situations(ready, turns)
        self._store_steps(turns)
        self._plan_other_orders(ready.planned, turns)

    def _store_new_situations(self, ready: _ReadyRun, turns: Sequence[Turn]) -> None:
        """Store the situations to which no earlier run has come."""
        tokens = _tokens_of(turns)
        explored = ready.explored_at_start
        # Earlier runs have come to the situations before the end of the planned prefix.
        for position in range(len(ready.planned.prefix), len(turns)):
            turn = turns[position]
            prefix = tokens[:position]
            if prefix not in self._situations:
                self._situations[prefix] = _Situation(
                    possible_tokens=turn.possible,
                    explored_at_first=explored,
                )
            explored = _explored_after(turn, explored)

    def _store_steps(self, turns: Sequence[Turn]) -> None:
        """Store the step that a run has taken in each of its situations.

        Raise NotDeterministic if the same token was another step in an earlier run.
        """
        tokens = _tokens_of(turns)
        for position, turn in enumerate(turns):
            situation = self._situations[tokens[:position]]
            known_turn = situation.turns_by_token.get(turn.token)
            if known_turn is not None and not _is_same_step(known_turn.step, turn.step):
                raise NotDeterministic(" ".join(tokens), known_turn.step, turn.step)
            situation.add_turn(turn)

    def _plan_other_orders(self, planned: _PlannedRun, turns: Sequence[Turn]) -> None:
        """Plan runs in which the new races of a run have the other order."""
        tokens = _tokens_of(turns)
        # A race is new if its second step comes after the prefix. Other runs have had the others.
        for race in find_races(turns, first_later=len(planned.prefix)):
            prefix = tokens[: race.earlier]
            situation = self._situations[prefix]
            for token in _tokens_for_other_order(race, situation):
                situation.planned_tokens.append(token)
                self._planned_runs.append(_PlannedRun(prefix, token))


def _tokens_of(turns: Sequence[Turn]) -> Prefix:
    """Return the tokens of the turns. Those before a turn identify its situation."""
    return tuple(turn.token for turn in turns)


def _explored_after(turn: Turn, explored: ExploredWorkers) -> ExploredWorkers:
    """Return the workers that are still explored after this step of a run."""
    still_explored = {}
    for worker, effects in explored.items():
        if worker != turn.worker and not conflict(effects, turn.effects):
            still_explored[worker] = effects
    return still_explored


def _choose_unexplored(
    possible_tokens: Sequence[str],
    explored: ExploredWorkers,
    turns: Sequence[Turn],
) -> str | None:
    """Return the token of a worker that is not explored, or None if all workers are.

    Prefer the worker of the last step.
    """
    unexplored = [token for token in possible_tokens if worker_of(token) not in explored]
    if not unexplored:
        return None
    last_worker = turns[-1].worker if turns else None
    for token in unexplored:
        if worker_of(token) == last_worker:
            return token
    return unexplored[0]


def _tokens_for_other_order(race: Race, situation: _Situation) -> list[str]:
    """Return the tokens with which runs have to continue in this situation to reverse a race.

    `situation` is the one before the first step of the race. Return no token if runs that reverse
    the race are planned already.
    """
    if any(situation.is_covered(worker) for worker in race.first_workers):
        return []
    token_by_worker = {worker_of(token): token for token in situation.possible_tokens}
    for worker in race.first_workers:
        if worker in token_by_worker:
            return [token_by_worker[worker]]
    # These workers have to wait here, so another worker must come first. Try each of them.
    tokens = []
    for worker, token in token_by_worker.items():
        if not situation.is_covered(worker):
            tokens.append(token)
    return tokens


def _is_same_step(step: str, other_step: str) -> bool:
    """Return whether the names of two steps differ at most in numbers, such as process ids."""
    return _without_numbers(step) == _without_numbers(other_step)


def _without_numbers(step: str) -> str:
    """Return the name of a step without process numbers and random parts of file names."""
    return re.sub(r"[0-9a-f]*[0-9][0-9a-f-]*", "#", step)
