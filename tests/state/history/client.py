"""A client that calls a store at random, and writes down each call.

The mixture of calls is chosen so that promises are put to the test: several clients change the same
few values and counters, leases are often too short, and clients continue to use claims that they
have lost.
"""

import os
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from .adapter import NoResponse, Refused, StoreAdapter
from .operation import Json, Log, Operation, whole

_VALUES = 3
_COUNTERS = 2
_LEASES_MS = (0, 2, 50, 400)
"""Some leases end at once, some while their holder works, and some after that."""
_MOST_HELD = 5
"""A client forgets older claims, lost or not. Their tasks are claimed again after the lease."""

_DRAIN_PAUSE_SECONDS = 0.01
_DRAIN_LEASE_MS = 2000
"""Long enough for the work. If the response to a claim is lost, the next claim waits so long."""


@dataclass(frozen=True)
class HeldClaim:
    """A claim that this client received, and may have lost since."""

    task: str
    generation: int


class RecordedStore:
    """A store that writes each call to a log, before it and after it."""

    def __init__(self, store: StoreAdapter, log: Log, on_invoke: Callable[[], object]) -> None:
        self._store = store
        self._log = log
        self._on_invoke = on_invoke

    def call(self, verb: str, target: str, **arguments: Json) -> dict[str, Json] | None:
        """Call a verb. Return None if the store refused the call, or if there is no response."""
        call = self._log.invoke(verb, target, arguments)
        self._on_invoke()
        try:
            response = self._store.call(verb, target, arguments)
        except Refused as refused:
            self._log.respond(call, refused.facts, refused.code)
            return None
        except NoResponse:
            # The second line is missing, as after kill -9: the call may have happened.
            return None
        self._log.respond(call, response, None)
        return response


class RandomClient:
    """One client. Its calls depend only on its name, the seed, and the responses."""

    def __init__(self, store: RecordedStore, name: str, seed: int, round_name: str) -> None:
        """Use only values, counters and queues whose names begin with `round_name`."""
        self._store = store
        self._name = name
        self._round = round_name
        self._random = random.Random(f"{seed} {round_name} {name}")
        self._texts = 0
        self._tasks: list[str] = []
        self._claims: deque[HeldClaim] = deque(maxlen=_MOST_HELD)
        self._versions: dict[str, int] = {}
        """The version of each value that this client saw last. It is often out of date."""
        self._last_keyed: tuple[str, int, str] | None = None
        """The last addition with an idempotency key: the counter, the amount and the key."""

    def repeat(self, unanswered: Operation) -> None:
        """Repeat an addition of a killed client, with the same idempotency key."""
        self._store.call(unanswered.verb, unanswered.target, **unanswered.arguments)

    def act(self) -> None:
        """Do something that is chosen at random: one or two calls."""
        actions = {
            self._get: 4,
            self._set: 3,
            self._compare_and_set: 6,
            self._unset: 2,
            self._add: 3,
            self._add_once: 3,
            self._add_again: 2,
            self._count: 1,
            self._add_tasks: 2,
            self._claim: 6,
        }
        if self._claims:
            actions |= {self._write: 6, self._renew: 4, self._finish: 4, self._release: 1}
        (action,) = self._random.choices(list(actions), list(actions.values()))
        action()

    def _value(self) -> str:
        return f"{self._round}-value-{self._random.randrange(_VALUES)}"

    def _counter(self) -> str:
        return f"{self._round}-counter-{self._random.randrange(_COUNTERS)}"

    def _new_text(self) -> str:
        """Return a text that no client writes twice, so a reader can tell which call wrote it."""
        self._texts += 1
        return f"{self._name}-{self._texts}"

    def _see(self, key: str, response: dict[str, Json] | None) -> None:
        if response is not None:
            self._versions[key] = whole(response["version"])

    def _get(self) -> None:
        key = self._value()
        self._see(key, self._store.call("get", key))

    def _set(self) -> None:
        key = self._value()
        text = self._new_text()
        self._see(key, self._store.call("set", key, value=text, if_version=None))

    def _compare_and_set(self) -> None:
        """Set a value only over the version that this client saw last."""
        key = self._value()
        self._see(key, self._store.call("get", key))
        version = self._versions.get(key, 0)
        text = self._new_text()
        self._see(key, self._store.call("set", key, value=text, if_version=version))

    def _unset(self) -> None:
        key = self._value()
        version = self._random.choice([None, self._versions.get(key, 0)])
        response = self._store.call("unset", key, if_version=version)
        if response is not None:
            self._versions[key] = 0

    def _add(self) -> None:
        self._store.call("add", self._counter(), amount=self._amount(), key=None)

    def _add_once(self) -> None:
        """Add with an idempotency key, so that the call can be repeated."""
        counter = self._counter()
        amount = self._amount()
        key = f"{self._round}-{self._new_text()}"
        self._last_keyed = (counter, amount, key)
        self._store.call("add", counter, amount=amount, key=key)

    def _add_again(self) -> None:
        """Repeat the last addition, as a caller does that did not receive the response."""
        if self._last_keyed is not None:
            counter, amount, key = self._last_keyed
            self._store.call("add", counter, amount=amount, key=key)

    def _amount(self) -> int:
        return self._random.choice([1, 1, 2, 5, -3])

    def _count(self) -> None:
        self._store.call("count", self._counter())

    def _add_tasks(self) -> None:
        """Add two tasks: both are new, or one of them was added before."""
        new = [f"{self._round}-{self._new_text()}", f"{self._round}-{self._new_text()}"]
        if self._tasks and self._random.random() < 0.3:
            new[0] = self._random.choice(self._tasks)
        self._tasks += new
        self._store.call("add_tasks", queue_of(self._round), tasks=list(new))

    def _claim(self) -> None:
        lease_ms = self._random.choice(_LEASES_MS)
        count = self._random.choice([1, 1, 3])
        queue = queue_of(self._round)
        self._claims.extend(
            _claims_in(self._store.call("claim", queue, lease_ms=lease_ms, count=count))
        )

    def _write(self) -> None:
        claim = self._random.choice(self._claims)
        self._store.call("write", claim.task, generation=claim.generation)

    def _renew(self) -> None:
        claim = self._random.choice(self._claims)
        lease_ms = self._random.choice(_LEASES_MS)
        self._store.call("renew", claim.task, generation=claim.generation, lease_ms=lease_ms)

    def _finish(self) -> None:
        claim = self._random.choice(self._claims)
        self._store.call("finish", claim.task, generation=claim.generation)

    def _release(self) -> None:
        claim = self._random.choice(self._claims)
        self._store.call("release", claim.task, generation=claim.generation)


def drain(store: RecordedStore, round_name: str, longest_seconds: float) -> None:
    """Do all tasks that the clients left, read everything, and record that as well.

    Give up after `longest_seconds`: the checker then reports the tasks that are still open.
    """
    queue = queue_of(round_name)
    deadline = time.monotonic() + longest_seconds
    while time.monotonic() < deadline:
        claims = _claims_in(store.call("claim", queue, lease_ms=_DRAIN_LEASE_MS, count=20))
        for claim in claims:
            store.call("write", claim.task, generation=claim.generation)
            store.call("finish", claim.task, generation=claim.generation)
        if not claims:
            if store.call("count_open", queue) == {"open": 0}:
                break
            # A lease of a killed client has not ended yet.
            time.sleep(_DRAIN_PAUSE_SECONDS)
    for number in range(_VALUES):
        store.call("get", f"{round_name}-value-{number}")
    for number in range(_COUNTERS):
        store.call("count", f"{round_name}-counter-{number}")
    store.call("list_tasks", queue)


def queue_of(round_name: str) -> str:
    """Return the name of the queue of a round."""
    return f"{round_name}-queue"


def run_client(client: RandomClient, calls: int | None) -> None:
    """Act `calls` times. Without a number, act until this process is killed."""
    done = 0
    while calls is None or done < calls:
        client.act()
        done += 1


def tell_progress(descriptor: int) -> Callable[[], object]:
    """Return a function that writes one byte, so that another process can count the calls.

    If that process has exited, the write fails, and so this client does not outlive it.
    """
    return lambda: os.write(descriptor, b".")


def _claims_in(response: dict[str, Json] | None) -> list[HeldClaim]:
    if response is None:
        return []
    claimed = response["claimed"]
    assert isinstance(claimed, list)
    claims = []
    for facts in claimed:
        assert isinstance(facts, dict)
        claims.append(HeldClaim(str(facts["task"]), whole(facts["generation"])))
    return claims
