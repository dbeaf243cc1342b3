"""Explore every schedule that makes a difference, and leave out the others.

Two neighbouring steps of different workers *conflict* if they touch the same file or lock, and one
of them changes it, see kit/stepping/effects.py. If they do not conflict, they can be swapped, and
the run ends in the same way. So all schedules fall into classes: two schedules are in one class if
swapping such neighbours turns one into the other. It is enough to run one schedule of each class.

The classes are not known before. So the search starts with one run, and looks for its *races*:

1. Find each pair of conflicting steps i and j of different workers, i before j, that no chain of
   other conflicts keeps in this order.
2. Plan a run that is the same until i, and takes another worker's step there: so j comes first.
3. Run what was planned, and look for races in it, until nothing is planned any more.

This is *dynamic partial-order reduction* (Flanagan and Godefroid, 2005), with the source sets of
Abdulla, Aronis, Jonsson and Sagonas (2014). Two runs of one class are mostly avoided by *sleep
sets*: where a step was the first of another branch already, it "sleeps" until a step that conflicts
with it is taken. A run in which all workers sleep is given up, because its class was run elsewhere.

Example: A and B each read a counter, write a temporary file of their own, and rename it. There are
70 schedules and 4 classes: A before B, B before A, and both read before one or the other renames.

What this depends on: a step has the same effects whenever it is taken in the same situation, and
each effect is known. A worker that waits in a loop is treated as if it slept until something that
it reads changes, see stepped_worker.py. Otherwise there would be no end of schedules.
"""

import os
import re
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from ..kit.stepping.effects import TAKE, Effects, conflict
from .recording import Played, Turn

Prefix = tuple[str, ...]
"""The first tokens of a schedule. It identifies a situation, because workers are deterministic."""

Sleep = dict[str, Effects]
"""Workers that need not be chosen next, each with the effects of its next step."""

Choose = Callable[[Sequence[str], Sequence[Turn]], str | None]
"""A function that chooses one of the possible tokens, given the turns so far. None ends the run."""

Run = Callable[[str, Choose], Played]
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
    """What is known of the situation after a prefix."""

    possible: tuple[str, ...]
    """The tokens that can be taken."""
    sleep: Sleep
    """The workers that slept when the search came here first."""
    planned: list[str] = field(default_factory=list)
    """The tokens that are or will be taken here, in the order in which they were planned."""
    turns: dict[str, Turn] = field(default_factory=dict)
    """The steps that were taken here, by token."""


@dataclass(frozen=True)
class _Branch:
    """A planned run: the situation in which it leaves another run, and the token that it takes."""

    prefix: Prefix
    token: str | None
    """None for the first run, which leaves nothing."""


class Search:
    """A search through the classes of schedules. `runs` yields a run of each class."""

    def __init__(
        self, run: Run, report_progress: Callable[[str], None] = lambda line: None
    ) -> None:
        self._run = run
        self._report_progress = report_progress
        self._situations: dict[Prefix, _Situation] = {}
        # First in, first out: so the first runs differ from the very first one in one race each. If
        # there is a limit, these are the runs that find most mistakes.
        self._planned: deque[_Branch] = deque([_Branch((), None)])

    @property
    def remaining(self) -> int:
        """How many runs are planned and not taken yet."""
        return len(self._planned)

    def runs(self) -> Generator[Played, None, None]:
        """Yield a run of each class, always in the same order.

        Close the generator if you do not take all runs: this ends its threads.
        """
        workers = os.cpu_count() or 1
        with ThreadPoolExecutor(workers) as pool:
            while self._planned:
                size = min(workers, len(self._planned))
                batch = [self._planned.popleft() for _ in range(size)]
                sleeps = [self._sleep_after(branch) for branch in batch]
                for branch, played in zip(
                    batch, pool.map(self._follow, batch, sleeps), strict=True
                ):
                    self._learn(branch, *played)
                    if played[0].is_complete:
                        yield played[0]
                if self.remaining > 100:
                    self._report_progress(f"{self.remaining} more schedules, at least.")

    def _sleep_after(self, branch: _Branch) -> Sleep:
        """Return the workers that sleep after the first step of a branch that is about to run.

        These are the workers that were chosen before in the same situation, and those that slept
        there already, except if the step of the branch wakes them. What the step does is known only
        in the run, so the run wakes them.
        """
        if branch.token is None:
            return {}
        situation = self._situations[branch.prefix]
        sleep = dict(situation.sleep)
        for token in situation.planned:
            if token == branch.token:
                break
            # Without its effects, it is not known what would wake it. So it does not sleep.
            if token in situation.turns:
                sleep[token[0]] = situation.turns[token].effects
        sleep.pop(branch.token[0], None)
        return sleep

    def _follow(self, branch: _Branch, sleep: Sleep) -> tuple[Played, list[Sleep]]:
        """Run a branch. Return the run, and who slept in each situation after the branch."""
        tokens = [*branch.prefix]
        if branch.token is not None:
            tokens.append(branch.token)
        sleeps: list[Sleep] = []
        choose = partial(_choose_awake, len(tokens), sleep, sleeps)
        return self._run(" ".join(tokens), choose), sleeps

    def _learn(self, branch: _Branch, played: Played, sleeps: Sequence[Sleep]) -> None:
        """Note the situations of a run, and plan the branches that its races ask for."""
        tokens = tuple(turn.token for turn in played.turns)
        first_new = len(branch.prefix) + (branch.token is not None)
        for position, turn in enumerate(played.turns):
            prefix = tokens[:position]
            situation = self._situations.get(prefix)
            if situation is None:
                sleep = sleeps[position - first_new]
                situation = _Situation(possible=turn.possible, sleep=sleep)
                self._situations[prefix] = situation
            self._check_repetition(situation, turn, tokens)
            if turn.token not in situation.planned:
                situation.planned.append(turn.token)
            situation.turns[turn.token] = turn
        for position, token in races_of(played.turns, first_new - 1, self._is_covered(tokens)):
            prefix = tokens[:position]
            self._situations[prefix].planned.append(token)
            self._planned.append(_Branch(prefix, token))

    def _check_repetition(self, situation: _Situation, turn: Turn, tokens: Prefix) -> None:
        known = situation.turns.get(turn.token)
        if known is None or _without_numbers(known.step) == _without_numbers(turn.step):
            return
        raise NotDeterministic(" ".join(tokens), known.step, turn.step)

    def _is_covered(self, tokens: Prefix) -> Callable[[int, Sequence[str]], bool]:
        """Return a function: is one of these workers planned or asleep at this position?"""

        def is_covered(position: int, letters: Sequence[str]) -> bool:
            situation = self._situations[tokens[:position]]
            planned = {token[0] for token in situation.planned}
            return any(letter in planned or letter in situation.sleep for letter in letters)

        return is_covered


def _without_numbers(step: str) -> str:
    """Return the name of a step without process numbers and random parts of file names."""
    return re.sub(r"[0-9a-f]*[0-9][0-9a-f-]*", "#", step)


def _choose_awake(
    given: int,
    sleep: Sleep,
    sleeps: list[Sleep],
    possible: Sequence[str],
    turns: Sequence[Turn],
) -> str | None:
    """Choose a worker that is awake, if possible the last one. Return None if all of them sleep.

    `given` is the number of tokens of the branch. `sleep` has the sleepers, and is changed. Append
    those of each situation to `sleeps`.
    """
    if turns and len(turns) >= given:
        wake(sleep, turns[-1])
    sleeps.append(dict(sleep))
    awake = [token for token in possible if token[0] not in sleep]
    if not awake:
        return None
    if turns:
        for token in awake:
            if token[0] == turns[-1].worker:
                return token
    return awake[0]


def wake(sleep: Sleep, turn: Turn) -> None:
    """Wake the workers whose next step conflicts with this step."""
    for letter, effects in list(sleep.items()):
        if letter == turn.worker or conflict(effects, turn.effects):
            del sleep[letter]


def predecessors_of(turns: Sequence[Turn]) -> list[int]:
    """Return for each step the earlier steps that have to come before it, as a set of bits.

    These are the steps of its own worker, those that conflict with it, and their predecessors. Sets
    of bits make the search about three times as fast as sets of numbers.
    """
    predecessors: list[int] = []
    for position, turn in enumerate(turns):
        found = 0
        for earlier in range(position - 1, -1, -1):
            is_found = found >> earlier & 1
            if not is_found and must_precede(turns[earlier], turn):
                found |= 1 << earlier | predecessors[earlier]
        predecessors.append(found)
    return predecessors


def _has(positions: int, position: int) -> bool:
    return bool(positions >> position & 1)


def _bits(positions: Sequence[int]) -> int:
    bits = 0
    for position in positions:
        bits |= 1 << position
    return bits


def must_precede(first: Turn, second: Turn) -> bool:
    """Return whether these two steps cannot be swapped."""
    return first.worker == second.worker or conflict(first.effects, second.effects)


def races_of(
    turns: Sequence[Turn],
    first_new: int,
    is_covered: Callable[[int, Sequence[str]], bool],
) -> Iterator[tuple[int, str]]:
    """Yield what to take instead, as a position and a token, so that each race is reversed.

    Look at the races whose second step is at `first_new` or later. `is_covered` tells whether one
    of these workers will be chosen at a position anyway.
    """
    predecessors = predecessors_of(turns)
    for later in range(max(first_new, 0), len(turns)):
        racing = [
            *_racing_with(later, turns, predecessors),
            *_taken_before(later, turns, predecessors),
        ]
        for earlier in racing:
            initials = _initials(earlier, later, turns, predecessors)
            if is_covered(earlier, initials):
                continue
            tokens = {token[0]: token for token in turns[earlier].possible}
            preferred = [turns[later].worker, *initials]
            first_choice = _first_of(preferred, initials, tokens)
            if first_choice is not None:
                yield earlier, tokens[first_choice]
                continue
            # The worker waits there, so another one has to come first. It is not known which.
            for letter, token in tokens.items():
                if not is_covered(earlier, [letter]):
                    yield earlier, token


def _first_of(
    preferred: Sequence[str],
    initials: Sequence[str],
    tokens: Mapping[str, str],
) -> str | None:
    """Return the first preferred worker that can go first and has a token."""
    for letter in preferred:
        if letter in initials and letter in tokens:
            return letter
    return None


def _initials(
    earlier: int,
    later: int,
    turns: Sequence[Turn],
    predecessors: Sequence[int],
) -> list[str]:
    """Return the workers that can go first, so that the later step comes before the earlier one."""
    # The steps that do not depend on the earlier step can come before it.
    moved = []
    for position in range(earlier + 1, later):
        if not _has(predecessors[position], earlier):
            moved.append(position)
    moved.append(later)
    moved_bits = _bits(moved)
    initials = []
    for position in moved:
        is_first = not predecessors[position] & moved_bits
        if is_first:
            initials.append(turns[position].worker)
    return initials


def _racing_with(
    later: int,
    turns: Sequence[Turn],
    predecessors: Sequence[int],
) -> Iterator[int]:
    """Yield the steps of other workers that directly conflict with the step at `later`."""
    found = 0
    for earlier in range(later - 1, -1, -1):
        if _has(found, earlier) or not must_precede(turns[earlier], turns[later]):
            continue
        if turns[earlier].worker != turns[later].worker:
            yield earlier
        found |= 1 << earlier | predecessors[earlier]


def _taken_before(
    later: int,
    turns: Sequence[Turn],
    predecessors: Sequence[int],
) -> Iterator[int]:
    """Yield the step in which another worker took the lock that the step at `later` takes.

    The release of the lock keeps the two in this order. But if the worker of the later step asks
    earlier, it may get the lock first.
    """
    for lock in _locks_taken(turns[later]):
        for earlier in range(later - 1, -1, -1):
            if lock not in _locks_taken(turns[earlier]):
                continue
            is_possible = turns[earlier].worker != turns[later].worker
            for position in range(earlier + 1, later):
                is_own = turns[position].worker == turns[later].worker
                if is_own and _has(predecessors[position], earlier):
                    # It would not ask for the lock without what the other has done.
                    is_possible = False
            if is_possible:
                yield earlier
            break


def _locks_taken(turn: Turn) -> set[str]:
    return {resource for resource, kind in turn.effects.items() if kind == TAKE}


def with_fewest_switches(turns: Sequence[Turn]) -> list[str]:
    """Return the schedule of the same class that changes least often from one worker to another."""
    predecessors = predecessors_of(turns)
    schedules = []
    for first_letter in sorted({turn.worker for turn in turns}):
        schedule = _linearize(turns, predecessors, first_letter)
        schedules.append(schedule)
    return min(schedules, key=count_switches)


def _linearize(
    turns: Sequence[Turn],
    predecessors: Sequence[int],
    letter: str,
) -> list[str]:
    """Return the steps in another order: each worker continues as long as it can."""
    remaining = list(range(len(turns)))
    schedule: list[str] = []
    while remaining:
        remaining_bits = _bits(remaining)
        ready = [position for position in remaining if not predecessors[position] & remaining_bits]
        own = [position for position in ready if turns[position].worker == letter]
        chosen = own[0] if own else ready[0]
        letter = turns[chosen].worker
        schedule.append(turns[chosen].token)
        remaining.remove(chosen)
    return schedule


def count_switches(tokens: Sequence[str]) -> int:
    """Return how often the next step is that of another worker."""
    letters = [token[0] for token in tokens]
    return sum(1 for letter, following in pairwise(letters) if letter != following)
