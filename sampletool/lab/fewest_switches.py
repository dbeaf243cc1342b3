"""Reorder the steps of a run so that the run is easier to read.

A *switch* is a step that follows a step of another worker. A run with few switches is easier to
understand. Only steps that do not conflict are swapped, so the result stays the same.
"""

from collections.abc import Sequence
from itertools import pairwise

from .recording import Turn, worker_of
from .step_order import StepOrder


def with_fewest_switches(turns: Sequence[Turn]) -> list[str]:
    """Return the tokens of a schedule with few switches and the same result."""
    order = StepOrder(turns)
    schedules = []
    for first_worker in sorted({turn.worker for turn in turns}):
        schedule = _schedule_beginning_with(first_worker, turns, order)
        schedules.append(schedule)
    return min(schedules, key=count_switches)


def _schedule_beginning_with(
    first_worker: str,
    turns: Sequence[Turn],
    order: StepOrder,
) -> list[str]:
    """Return a schedule with the same result in which each worker continues as long as it can.

    Begin with `first_worker`, if possible.
    """
    current_worker = first_worker
    remaining = list(range(len(turns)))
    schedule: list[str] = []
    while remaining:
        position = _next_position(remaining, current_worker, turns, order)
        remaining.remove(position)
        schedule.append(turns[position].token)
        current_worker = turns[position].worker
    return schedule


def _next_position(
    remaining: Sequence[int],
    preferred_worker: str,
    turns: Sequence[Turn],
    order: StepOrder,
) -> int:
    """Return the first remaining step that can come next, of the preferred worker if possible."""
    next_positions: dict[str, int] = {}
    for position in remaining:
        next_positions.setdefault(turns[position].worker, position)

    possible = {}
    for worker, position in next_positions.items():
        if not any(order.must_precede(other, position) for other in next_positions.values()):
            possible[worker] = position
    return possible.get(preferred_worker, min(possible.values()))


def count_switches(tokens: Sequence[str]) -> int:
    """Return the number of steps that are followed by a step of another worker."""
    workers = [worker_of(token) for token in tokens]
    return sum(1 for worker, following in pairwise(workers) if worker != following)
