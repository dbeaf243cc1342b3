"""The only module here that knows the interface of the store.

Each verb takes and returns plain JSON values, so that a log can hold them.
"""

from collections.abc import Callable

from sampletool.kit.contract.expected import EXPECTED, to_tool_error
from sampletool.state.connect import open_store
from sampletool.state.protocol import Fence, NewTask, Once
from tests.state.support.store_client import make_policy

from .operation import Json

MAX_ATTEMPTS = 8
"""A task fails after so many claims."""

_PATIENCE_SECONDS = 60.0
"""How long a call waits for a lock or a restarted server. A busy machine may need some seconds."""

_EVERYTHING = 1_000_000

_REFUSALS = {
    "KEY_NOT_FOUND": (),
    "VERSION_CONFLICT": ("actual",),
    "LEASE_LOST": ("actual_generation", "status"),
}
"""Errors after which the call certainly changed nothing, and the facts to write down."""

_UNCERTAIN = {"STORE_UNAVAILABLE", "LOCK_HELD"}
"""Errors after which the call may have happened."""


class Refused(Exception):
    """The store refused a call, and changed nothing."""

    def __init__(self, code: str, facts: dict[str, Json]) -> None:
        super().__init__(code)
        self.code = code
        self.facts = facts


class NoResponse(Exception):
    """The connection broke, so the call may have happened."""


class StoreAdapter:
    """A connection to one store."""

    def __init__(self, url: str) -> None:
        """Connect when the first verb is called."""
        self._store = open_store(url, None, make_policy(patience=_PATIENCE_SECONDS))

    def call(self, verb: str, target: str, arguments: dict[str, Json]) -> dict[str, Json]:
        """Call a verb and return its response. Raise Refused or NoResponse."""
        method: Callable[..., dict[str, Json]] = getattr(self, verb)
        try:
            return method(target, **arguments)
        except EXPECTED as error:
            tool_error = to_tool_error(error)
            is_unknown = tool_error.context.get("outcome") == "unknown"
            if is_unknown or tool_error.code in _UNCERTAIN:
                raise NoResponse from error
            if tool_error.code not in _REFUSALS:
                raise
            names = _REFUSALS[tool_error.code]
            facts = {name: tool_error.context[name] for name in names}
            raise Refused(tool_error.code, facts) from error

    def close(self) -> None:
        """Close the connection."""
        self._store.close()

    def get(self, key: str) -> dict[str, Json]:
        """Read a value."""
        found = self._store.state_get(key)
        return {"value": found.value, "version": found.version}

    def set(self, key: str, *, value: str, if_version: int | None) -> dict[str, Json]:
        """Replace a value, if it has the expected version. Version 0 means: if there is none."""
        written = self._store.state_set(key, value, if_version=if_version)
        return {"version": written.version}

    def unset(self, key: str, *, if_version: int | None) -> dict[str, Json]:
        """Remove a value, if it has the expected version."""
        written = self._store.state_unset(key, if_version=if_version)
        return {"version": written.version}

    def add(self, counter: str, *, amount: int, key: str | None) -> dict[str, Json]:
        """Add to a counter, once for each idempotency key."""
        counted = self._store.counter_add(counter, amount, Once(key))
        return {"value": counted.value}

    def count(self, counter: str) -> dict[str, Json]:
        """Read a counter."""
        return {"value": self._store.counter_get(counter)}

    def add_tasks(self, queue: str, *, tasks: list[str]) -> dict[str, Json]:
        """Add tasks with these IDs, and say which of them are new."""
        added = self._store.task_add(queue, [NewTask(body=task, id=task) for task in tasks])
        created: list[Json] = [task for task, effect in added.effects if effect == "created"]
        return {"created": created}

    def claim(self, queue: str, *, lease_ms: int, count: int) -> dict[str, Json]:
        """Claim up to `count` tasks."""
        claim = self._store.task_claim(
            queue, "worker", lease_ms=lease_ms, count=count, max_attempts=MAX_ATTEMPTS
        )
        claimed: list[Json] = []
        for task in claim.tasks:
            facts: dict[str, Json] = {
                "task": task.id,
                "generation": task.generation,
                "attempts": task.attempts,
            }
            claimed.append(facts)
        return {"claimed": claimed}

    def write(self, task: str, *, generation: int) -> dict[str, Json]:
        """Do the effect of a task, fenced by its claim: add 1 to a counter of the task."""
        once = Once(fence=Fence(task, generation))
        counted = self._store.counter_add(effect_counter(task), 1, once)
        return {"value": counted.value, "replayed": counted.replayed}

    def renew(self, task: str, *, generation: int, lease_ms: int) -> dict[str, Json]:
        """Make the lease of a claim longer."""
        self._store.task_renew(task, generation, lease_ms=lease_ms)
        return {}

    def finish(self, task: str, *, generation: int) -> dict[str, Json]:
        """Mark a claimed task as done."""
        return {"effect": self._store.task_finish(task, generation)}

    def release(self, task: str, *, generation: int) -> dict[str, Json]:
        """Give a claimed task back to its queue."""
        return {"effect": self._store.task_release(task, generation)}

    def count_open(self, queue: str) -> dict[str, Json]:
        """Count the tasks that are neither done nor failed."""
        return {"open": self._store.task_left(queue)}

    def list_tasks(self, queue: str) -> dict[str, Json]:
        """Return the state of every task in a queue, and the effects that were written for it."""
        tasks: list[Json] = []
        for task in self._store.task_list(queue, None, 0, _EVERYTHING):
            facts: dict[str, Json] = {
                "task": task.id,
                "status": task.status,
                "generation": task.generation,
                "attempts": task.attempts,
                "effects": self._store.counter_get(effect_counter(task.id)),
            }
            tasks.append(facts)
        return {"tasks": tasks}


def effect_counter(task: str) -> str:
    """Return the name of the counter that holds the effects of a task."""
    return f"effect-{task}"
