"""Find the steps of a run whose order makes a difference.

Two steps of different workers *conflict* if they use the same file, lock or variable, and one of
them changes it, see kit/stepping/effects.py. Neighbouring steps that do not conflict can be swapped
without changing the result. So a step *must come before* a later step in these cases:

* Both are steps of the same worker.
* The two steps conflict.
* A chain of such pairs leads from the one to the other.

Two conflicting steps of different workers form a *race* if no chain through other steps keeps them
in their order. Then the steps can also run in the other order, which may have another result.

Example: A and B each read `count` and then write it. In the run `A1 B1 A2 B2`, the read B1 and the
write A2 are a race. B1 and B2 are steps of the same worker. A1 must come before B2 because both use
`count`, but they are no race: A1 must come before A2, and A2 must come before B2.
"""

from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass

from ..kit.stepping.effects import TAKE, conflict
from .recording import Turn


@dataclass(frozen=True)
class Race:
    """Two steps of different workers that can also run in the other order."""

    earlier: int
    """The position of the first of the two steps in the run."""
    first_workers: tuple[str, ...]
    """The workers with which a run in the other order can continue at this position.

    The worker of the second step comes first, if it is one of them.
    """


class StepOrder:
    """The pairs of steps in a run that must keep their order. A step is named by its position."""

    def __init__(self, turns: Sequence[Turn]) -> None:
        self._turns = turns
        self._direct_predecessors: list[list[int]] = []
        """For each step: the steps that must come before it without a step between them."""
        self._last_predecessors: list[dict[str, int]] = []
        """For each step and each worker: the worker's last step that must come before this step.

        All earlier steps of that worker must come before it, too.
        """
        for position in range(len(turns)):
            self._add_step(position)

    def must_precede(self, earlier: int, later: int) -> bool:
        """Return whether the step at `earlier` must come before the step at `later`."""
        worker = self._turns[earlier].worker
        return earlier <= self._last_predecessors[later].get(worker, -1)

    def direct_predecessors(self, position: int) -> Sequence[int]:
        """Return the steps that must come before a step without a step between them."""
        return self._direct_predecessors[position]

    def _add_step(self, position: int) -> None:
        """Find the predecessors of the step at this position. Those before it are known."""
        turn = self._turns[position]
        direct: list[int] = []
        last_by_worker: dict[str, int] = {}
        for earlier in range(position - 1, -1, -1):
            earlier_turn = self._turns[earlier]
            is_known = earlier <= last_by_worker.get(earlier_turn.worker, -1)
            if not is_known and must_keep_order(earlier_turn, turn):
                direct.append(earlier)
                _keep_later_positions(last_by_worker, self._last_predecessors[earlier])
                _keep_later_positions(last_by_worker, {earlier_turn.worker: earlier})
        self._direct_predecessors.append(direct)
        self._last_predecessors.append(last_by_worker)


def must_keep_order(first: Turn, second: Turn) -> bool:
    """Return whether two steps of a run cannot be swapped without changing the result."""
    return first.worker == second.worker or conflict(first.effects, second.effects)


def _keep_later_positions(
    positions: MutableMapping[str, int],
    others: MutableMapping[str, int],
) -> None:
    """Replace each worker's position with the other position if that one is later."""
    for worker, position in others.items():
        if position > positions.get(worker, -1):
            positions[worker] = position


def find_races(turns: Sequence[Turn], first_later: int) -> Iterator[Race]:
    """Yield the races whose second step is at the position `first_later` or after it."""
    order = StepOrder(turns)
    for later in range(first_later, len(turns)):
        for earlier in order.direct_predecessors(later):
            if turns[earlier].worker != turns[later].worker:
                yield Race(earlier, _first_workers(earlier, later, turns, order))
        for earlier in _previous_owners(later, turns, order):
            yield Race(earlier, _first_workers(earlier, later, turns, order))


def _previous_owners(later: int, turns: Sequence[Turn], order: StepOrder) -> Iterator[int]:
    """Yield the step in which another worker took the lock that the step at `later` takes.

    The two steps are no direct race, because the release of the lock is between them. But the
    worker of the later step may get the lock first if it asks for the lock earlier.
    """
    for lock in _locks_taken(turns[later]):
        earlier = _last_taking(lock, later, turns)
        if earlier is None or turns[earlier].worker == turns[later].worker:
            continue
        if not _asks_only_after(earlier, later, turns, order):
            yield earlier


def _last_taking(lock: str, end: int, turns: Sequence[Turn]) -> int | None:
    """Return the last step before `end` that takes the lock, or None if there is none."""
    for position in range(end - 1, -1, -1):
        if lock in _locks_taken(turns[position]):
            return position
    return None


def _asks_only_after(earlier: int, later: int, turns: Sequence[Turn], order: StepOrder) -> bool:
    """Return whether the worker of the later step cannot ask for its lock before `earlier`.

    This is so if one of its own steps before the later one must come after the step at `earlier`.
    """
    for position in range(earlier + 1, later):
        is_own_step = turns[position].worker == turns[later].worker
        if is_own_step and order.must_precede(earlier, position):
            return True
    return False


def _locks_taken(turn: Turn) -> set[str]:
    """Return the locks that a step takes."""
    return {resource for resource, kind in turn.effects.items() if kind == TAKE}


def _first_workers(
    earlier: int,
    later: int,
    turns: Sequence[Turn],
    order: StepOrder,
) -> tuple[str, ...]:
    """Return the workers that can begin if the later step comes before the earlier step."""
    first_positions: dict[str, int] = {}
    for position in range(earlier + 1, later + 1):
        # Steps that need not come after the earlier step move in front of it.
        is_moved = position == later or not order.must_precede(earlier, position)
        if is_moved:
            first_positions.setdefault(turns[position].worker, position)

    first_workers = []
    for worker, position in first_positions.items():
        other_positions = first_positions.values()
        if any(order.must_precede(other, position) for other in other_positions):
            continue
        first_workers.append(worker)
    # False sorts before True, so the worker of the later step comes first.
    first_workers.sort(key=lambda worker: worker != turns[later].worker)
    return tuple(first_workers)
