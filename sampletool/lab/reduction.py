"""Explore every schedule that makes a difference, and leave out the others.

Two neighbouring steps of different workers *conflict* if they use the same file or lock, and one of
them changes it, see kit/stepping/effects.py. If they do not conflict, they can be swapped without
changing the result. So all schedules fall into classes: two schedules are in the same class if
swapping such neighbours turns one into the other. It is enough to run one schedule of each class.

The classes are not known in advance. So the search starts with one run, and looks for its *races*:

1. Find each pair of conflicting steps i and j of different workers, i before j, that no chain of
   other conflicts keeps in this order.
2. Plan a run that is the same until i, and takes another worker's step there, so that j comes
   first.
3. Execute the planned runs, and look for races in them, until no run is planned any more.

This is *dynamic partial-order reduction* (Flanagan and Godefroid, 2005), with the source sets of
Abdulla, Aronis, Jonsson and Sagonas (2014). *Sleep sets* avoid most repeated runs of one class: if
a step was the first step of an earlier branch, its worker "sleeps" until another worker takes a
step that conflicts with it. The search gives up a run in which all workers sleep, because an
earlier branch has run its class.

Example: A and B each read a counter, write a temporary file of their own, and rename it. There are
70 schedules and 4 classes: A before B, B before A, and both read before one or the other renames.

This works only if all effects of each step are known, and if a step always has the same effects in
the same situation. A worker that waits in a loop is not chosen until a file that it reads changes,
see stepped_worker.py. Otherwise the number of schedules would be infinite.
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
from .recording import PlayedRun, Turn

Prefix = tuple[str, ...]
"""The first tokens of a schedule. It identifies a situation, because workers are deterministic."""

Sleep = dict[str, Effects]
"""Workers that need not be chosen next, each with the effects of its next step."""

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
    """The knowledge about the situation after a prefix."""

    possible: tuple[str, ...]
    """The tokens that can be taken here."""
    sleep: Sleep
    """The workers that slept when a run reached this situation for the first time."""
    planned: list[str] = field(default_factory=list)
    """The tokens that runs have taken or will take here, in the order of planning."""
    turns: dict[str, Turn] = field(default_factory=dict)
    """The steps that runs have taken here, by token."""


@dataclass(frozen=True)
class _Branch:
    """A planned run: the prefix that it shares with an earlier run, and its next token."""

    prefix: Prefix
    token: str | None
    """None for the first run."""


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
        self._planned: deque[_Branch] = deque([_Branch((), None)])

    @property
    def remaining(self) -> int:
        """The number of planned runs that have not been executed yet."""
        return len(self._planned)

    def runs(self) -> Generator[PlayedRun, None, None]:
        """Yield one run of each class, always in the same order.

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
        """Return the workers that sleep when a branch takes its first step.

        These are the workers that slept in this situation, and the workers whose steps earlier
        branches took there. The run wakes the workers whose steps conflict with its first step,
        because only the run shows the effects of that step.
        """
        if branch.token is None:
            return {}
        situation = self._situations[branch.prefix]
        sleep = dict(situation.sleep)
        for token in situation.planned:
            if token == branch.token:
                break
            # If the effects of the step are unknown, its worker cannot be woken, so it is awake.
            if token in situation.turns:
                sleep[token[0]] = situation.turns[token].effects
        sleep.pop(branch.token[0], None)
        return sleep

    def _follow(self, branch: _Branch, sleep: Sleep) -> tuple[PlayedRun, list[Sleep]]:
        """Run a branch. Return the run, and the sleeping workers of each situation after it."""
        tokens = [*branch.prefix]
        if branch.token is not None:
            tokens.append(branch.token)
        sleeps: list[Sleep] = []
        choose = partial(_choose_awake, len(tokens), sleep, sleeps)
        return self._run(" ".join(tokens), choose), sleeps

    def _learn(self, branch: _Branch, played: PlayedRun, sleeps: Sequence[Sleep]) -> None:
        """Store the situations of a run, and plan the branches that reverse its races."""
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
        """Raise NotDeterministic if the same token was another step in an earlier run."""
        known = situation.turns.get(turn.token)
        if known is None or _without_numbers(known.step) == _without_numbers(turn.step):
            return
        raise NotDeterministic(" ".join(tokens), known.step, turn.step)

    def _is_covered(self, tokens: Prefix) -> Callable[[int, Sequence[str]], bool]:
        """Return a function that tells whether a worker is planned or asleep at a position."""

        def is_covered(position: int, letters: Sequence[str]) -> bool:
            situation = self._situations[tokens[:position]]
            planned = {token[0] for token in situation.planned}
            return any(letter in planned or letter in situation.sleep for letter in letters)

        return is_covered


def _without_numbers(step: str) -> str:
    """Return the name of a step without process numbers and random parts of file names."""
    return re.sub(r"[0-9a-f]*[0-9][0-9a-f-]*", "#", step)


def _choose_awake(
    branch_length: int,
    sleep: Sleep,
    sleeps: list[Sleep],
    possible: Sequence[str],
    turns: Sequence[Turn],
) -> str | None:
    """Return the token of a worker that is awake, or None if all workers sleep.

    Prefer the worker of the last step. `branch_length` is the number of tokens of the branch.
    Remove workers that wake up from `sleep`. For each situation, append a copy of `sleep` to
    `sleeps`.
    """
    if turns and len(turns) >= branch_length:
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
    """Remove the workers from `sleep` whose next step conflicts with this step."""
    for letter, effects in list(sleep.items()):
        if letter == turn.worker or conflict(effects, turn.effects):
            del sleep[letter]


def predecessors_of(turns: Sequence[Turn]) -> list[int]:
    """Return for each step its predecessors: the earlier steps that must come before it.

    These are the steps of the same worker, the steps that conflict with it, and their predecessors.
    Each result is a set of positions as bits of a number: bit 3 is the step at position 3. This
    makes the search about three times as fast as sets of numbers.
    """
    predecessors: list[int] = []
    for position, turn in enumerate(turns):
        found = 0
        for earlier in range(position - 1, -1, -1):
            if not _has(found, earlier) and must_precede(turns[earlier], turn):
                found |= 1 << earlier | predecessors[earlier]
        predecessors.append(found)
    return predecessors


def _has(positions: int, position: int) -> bool:
    """Return whether a set of bits contains a position."""
    return bool(positions >> position & 1)


def _bits(positions: Sequence[int]) -> int:
    """Return the positions as a set of bits."""
    bits = 0
    for position in positions:
        bits |= 1 << position
    return bits


def must_precede(first: Turn, second: Turn) -> bool:
    """Return whether two steps must keep their order."""
    return first.worker == second.worker or conflict(first.effects, second.effects)


def races_of(
    turns: Sequence[Turn],
    first_new: int,
    is_covered: Callable[[int, Sequence[str]], bool],
) -> Iterator[tuple[int, str]]:
    """Yield a position and a token for each race: with this token there, the race is reversed.

    Skip races whose second step comes before `first_new`. `is_covered` is a function that returns
    whether a run chooses one of these workers at a position already.
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
            # The worker waits there, so another worker must come first. Try each of them.
            for letter, token in tokens.items():
                if not is_covered(earlier, [letter]):
                    yield earlier, token


def _first_of(
    preferred: Sequence[str],
    initials: Sequence[str],
    tokens: Mapping[str, str],
) -> str | None:
    """Return the first preferred worker that is in `initials` and has a token, or None."""
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
    """Return the workers that can begin if the later step comes before the earlier step."""
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

    The two steps do not conflict directly, because the release of the lock is between them. But the
    worker of the later step may get the lock first if it asks for the lock earlier.
    """
    for lock in _locks_taken(turns[later]):
        for earlier in range(later - 1, -1, -1):
            if lock not in _locks_taken(turns[earlier]):
                continue
            is_possible = turns[earlier].worker != turns[later].worker
            for position in range(earlier + 1, later):
                is_own = turns[position].worker == turns[later].worker
                if is_own and _has(predecessors[position], earlier):
                    # The later worker asks for the lock only after a step of the other worker.
                    is_possible = False
            if is_possible:
                yield earlier
            break


def _locks_taken(turn: Turn) -> set[str]:
    """Return the locks that a step takes."""
    return {resource for resource, kind in turn.effects.items() if kind == TAKE}


def with_fewest_switches(turns: Sequence[Turn]) -> list[str]:
    """Return the tokens of a schedule with few switches of workers and the same result.

    A *switch* is a step that follows a step of another worker. Swap only steps that do not
    conflict: then the result stays the same.
    """
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
    """Return a schedule with the same result in which each worker continues as long as it can.

    `letter` is the worker that comes first, if possible.
    """
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
    """Return the number of steps that are followed by a step of another worker."""
    letters = [token[0] for token in tokens]
    return sum(1 for letter, following in pairwise(letters) if letter != following)
