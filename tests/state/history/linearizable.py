"""Search for an order of the calls that explains every response: is this history linearizable?

A history is *linearizable* if you can give each call one moment between its invocation and its
response, so that the calls, executed one after the other at these moments, return exactly what the
callers saw.

The search is that of Wing and Gong (1993). Lowe (2017) added the memory of visited places:

* Begin with the initial state, and with no call in the order.
* A call can be the next one if no other remaining call ended before it began.
* Ask the model whether the call returns this response in the current state. If so, the model
  returns the new state, and the search continues from there. If not, try another call.
* If the order contains every call that has a response, the history is linearizable.
* If all orders have been tried, it is not. The error shows the place where the search came
  furthest: the calls that could be next there, and what is wrong with each of them.

A call without a response may be put into the order at any moment after its invocation, or left out.

The number of orders grows exponentially with the number of calls at the same time. So check each
key on its own, and keep the number of calls per key small (some hundreds). After `most_places`
places, the search stops and returns `Unknown`, which is neither a yes nor a no.
"""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from .operation import Operation, describe, describe_call

MOST_PLACES = 100_000
"""A right history of 100 calls needs some 200 places, so this is reached only by a hard case."""

_MOST_SHOWN = 8

State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True)
class Impossible:
    """Why a call cannot return its response in a state."""

    reason: str


class Model(Protocol[State]):
    """What an object is supposed to do if only one caller uses it."""

    def initial(self) -> State:
        """Return the state before the first call."""

    def step(self, state: State, operation: Operation) -> State | Impossible:
        """Return the state after the call, or why it cannot have this response in this state."""


@dataclass(frozen=True)
class Linearizable:
    """The search found an order that explains every response."""

    order: tuple[Operation, ...]


@dataclass(frozen=True)
class NotLinearizable:
    """The search tried all orders, and none explains every response."""

    explanation: str


@dataclass(frozen=True)
class Unknown:
    """The search reached its bound before it found an order, or had tried all of them."""

    places: int


@dataclass(frozen=True, eq=False)
class _Place(Generic[State]):
    """A place in the search: the calls that are in the order so far, and the state after them."""

    placed: int
    """A set of calls as a bit mask: bit i is set if call i is in the order."""
    state: State
    depth: int
    """How many calls with a response are in the order."""
    previous: "_Place[State] | None" = None
    operation: Operation | None = None

    def order(self) -> tuple[Operation, ...]:
        """Return the calls up to here, the first one first."""
        operations = []
        place: _Place[State] | None = self
        while place is not None and place.operation is not None:
            operations.append(place.operation)
            place = place.previous
        return tuple(reversed(operations))


def find_order(
    model: Model[State], operations: Iterable[Operation], most_places: int = MOST_PLACES
) -> Linearizable | NotLinearizable | Unknown:
    """Search for an order of these calls that the model explains."""
    calls = sorted(operations, key=lambda operation: operation.invoked_ns)
    wanted = sum(not call.may_have_happened for call in calls)
    place = _Place(placed=0, state=model.initial(), depth=0)
    furthest = place
    # Two orders of the same calls that lead to the same state have the same continuations. So the
    # search continues from only one of them: this keeps it from trying every permutation.
    visited = {(place.placed, place.state)}
    places = [place]
    while places:
        place = places.pop()
        if place.depth == wanted:
            return Linearizable(place.order())
        if place.depth > furthest.depth:
            furthest = place
        for following in _continuations(model, place, calls):
            key = (following.placed, following.state)
            if key not in visited:
                visited.add(key)
                places.append(following)
        if len(visited) > most_places:
            return Unknown(len(visited))
    return NotLinearizable(_explain(model, furthest, calls))


def _continuations(
    model: Model[State], place: _Place[State], calls: Sequence[Operation]
) -> Iterator[_Place[State]]:
    """Yield the places that are one call further. The caller tries the last one first."""
    possible = sorted(_next_calls(place, calls), key=lambda index: _preference(calls[index]))
    for index in possible:
        call = calls[index]
        state = model.step(place.state, call)
        if isinstance(state, Impossible):
            continue
        yield _Place(
            placed=place.placed | 1 << index,
            state=state,
            depth=place.depth + (not call.may_have_happened),
            previous=place,
            operation=call,
        )


def _next_calls(place: _Place[State], calls: Sequence[Operation]) -> list[int]:
    """Return the calls that can be next: no other remaining call ended before they began."""
    possible = []
    earliest_end: float = float("inf")
    for index, call in enumerate(calls):
        if place.placed >> index & 1:
            continue
        if call.invoked_ns > earliest_end:
            # All later calls began even later.
            break
        possible.append(index)
        if call.responded_ns is not None:
            earliest_end = min(earliest_end, call.responded_ns)
    return [index for index in possible if calls[index].invoked_ns <= earliest_end]


def _preference(call: Operation) -> float:
    """Return a number that is higher for a call that the search should try earlier.

    Calls with a response come before those without one, and of these the one that ended first.
    Any preference finds the same result. This one finds it early for a right history.
    """
    if call.responded_ns is None:
        return float("-inf")
    return -call.responded_ns


def _explain(model: Model[State], furthest: _Place[State], calls: Sequence[Operation]) -> str:
    """Return the end of the longest order that was found, and why no call can follow it."""
    start_ns = calls[0].invoked_ns
    order = furthest.order()
    shown = order[-_MOST_SHOWN:]
    lines = [f"The first {len(order)} of {len(calls)} calls can be put into an order. Its end is:"]
    for call in shown:
        lines.append(describe([call], start_ns))
    lines.append(f"After these calls, the state is: {furthest.state}")
    lines.append("One of these calls has to be next, but none of them can be:")
    for index in _next_calls(furthest, calls):
        call = calls[index]
        result = model.step(furthest.state, call)
        if isinstance(result, Impossible):
            lines.append(describe([call], start_ns))
            lines.append(f"      impossible here: {result.reason}")
        else:
            lines.append(f"  after {describe_call(call)}, the search finds no order either")
    return "\n".join(lines)
