"""Random histories of verbs, on every backend: each response is that of a simple model."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from sampletool.kit.contract.errors import KeyNotFound
from sampletool.kit.contract.expected import EXPECTED, to_tool_error
from sampletool.kit.testing.scale import scale
from sampletool.state.protocol import UNCONDITIONAL, Fence, NewTask, Once
from sampletool.state.store import Store
from tests.state.support.outcomes import statuses
from tests.state.support.stores import Backend

LONG = 3_600_000
names = st.sampled_from(["a", "b"])
keys = st.sampled_from([None, "k1", "k2"])
values = st.sampled_from([None, 1, "x", [1]])


class Model:
    """A store in a few lines, for one caller at a time. A lease lasts permanently or not at all."""

    def __init__(self) -> None:
        self.counters: dict[str, int] = {}
        self.values: dict[str, tuple[Any, int]] = {}
        self.used: dict[str, int] = {}
        """The highest version that each name ever had."""
        self.tasks: dict[str, dict[str, Any]] = {}
        self.once: dict[Any, tuple[Any, Any]] = {}

    def write(self, once: Once, said: tuple[Any, ...], change: Any) -> Any:
        key: Any = once.key
        if once.fence is not None:
            task = self.tasks.get(once.fence.task)
            if task is None:
                return "TASK_NOT_FOUND"
            if task["generation"] != once.fence.generation or task["status"] != "claimed":
                return "LEASE_LOST"
            key = (once.fence.task, *said[:2], once.key)
        if key in self.once and key is not None:
            before, answer = self.once[key]
            return (*answer, True) if before == said else "IDEMPOTENCY_KEY_REUSED"
        answer = change()
        if isinstance(answer, str):
            return answer
        if key is not None:
            self.once[key] = (said, answer)
        return (*answer, False)

    def add(self, name: str, amount: int, once: Once) -> Any:
        def change() -> Any:
            effect = "updated" if name in self.counters else "created"
            self.counters[name] = self.counters.get(name, 0) + amount
            return self.counters[name], effect

        return self.write(once, ("add", name, amount), change)

    def put(self, name: str, value: Any, if_version: int | None, once: Once, first: int) -> Any:
        """Set a value. The store chooses its first version. No version is used twice."""

        def change() -> Any:
            _, version = self.values.get(name, (None, 0))
            if if_version not in (None, version):
                return "VERSION_CONFLICT"
            new = version + 1 if version else first
            assert new > self.used.get(name, 0)
            self.used[name] = new
            self.values[name] = (value, new)
            return new, "updated" if version else "created"

        return self.write(once, ("set", name, value, if_version), change)

    def unset(self, name: str, once: Once) -> Any:
        def change() -> Any:
            _, version = self.values.pop(name, (None, 0))
            return version, "deleted" if version else "unchanged"

        return self.write(once, ("unset", name), change)

    def add_task(self, name: str, body: int) -> str:
        if name in self.tasks:
            is_repetition = self.tasks[name]["body"] == body
            return "unchanged" if is_repetition else "TASK_CONFLICT"
        self.tasks[name] = {
            "body": body,
            "status": "free",
            "generation": 0,
            "attempts": 0,
            "limit": 0,
            "lasts": True,
        }
        return "created"

    def claim(self, lasts: bool, limit: int) -> list[tuple[str, int, int]]:
        for name, task in self.tasks.items():
            is_over = task["status"] == "claimed" and not task["lasts"]
            if task["status"] == "free" or (is_over and not 0 < task["limit"] <= task["attempts"]):
                task.update(
                    status="claimed", lasts=lasts, limit=limit, generation=task["generation"] + 1
                )
                task["attempts"] += 1
                return [(name, task["generation"], task["attempts"])]
        return []

    def end(self, verb: str, name: str, generation: int) -> str:
        task = self.tasks.get(name)
        if task is None:
            return "TASK_NOT_FOUND"
        if task["generation"] != generation:
            return "LEASE_LOST"
        if verb == "finish":
            return self.finish(task)
        if verb == "release":
            return self.release(task)
        if task["status"] == "claimed" and task["lasts"]:
            return "updated"
        return "LEASE_LOST"

    def finish(self, task: dict[str, Any]) -> str:
        if task["status"] == "done":
            return "unchanged"
        if task["status"] != "claimed":
            return "LEASE_LOST"
        task["status"] = "done"
        return "updated"

    def release(self, task: dict[str, Any]) -> str:
        if task["status"] == "done":
            return "LEASE_LOST"
        if task["status"] != "claimed":
            return "unchanged"
        is_last_attempt = 0 < task["limit"] <= task["attempts"]
        task["status"] = "failed" if is_last_attempt else "free"
        return "updated"

    def counts(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for task in self.tasks.values():
            status = task["status"]
            if status == "claimed" and not task["lasts"]:
                status = "failed" if 0 < task["limit"] <= task["attempts"] else "expired"
            counts[status] = counts.get(status, 0) + 1
        return counts


def answer(ask: Any) -> Any:
    try:
        return ask()
    except EXPECTED as error:
        return to_tool_error(error).code


class Machine(RuleBasedStateMachine):
    store: Store

    @initialize()
    def begin(self) -> None:
        """Names of this history begin with a number, so that histories do not meet."""
        self.model = Model()
        type(self).histories += 1
        self.prefix = f"{type(self).histories}-"

    histories = 0

    def once(self, key: str | None, fence: tuple[str, int] | None) -> tuple[Once, Once]:
        """For the model, and for the store."""
        if key is None and fence is None:
            return UNCONDITIONAL, UNCONDITIONAL
        fences = (
            [None, None]
            if fence is None
            else [Fence(fence[0], fence[1]), Fence(self.prefix + fence[0], fence[1])]
        )
        return Once(key, fences[0]), Once(key and self.prefix + key, fences[1])

    @rule(
        name=names,
        amount=st.integers(-3, 3),
        key=keys,
        fence=st.none() | st.tuples(names, st.integers(0, 3)),
    )
    def add(self, name: str, amount: int, key: str | None, fence: Any) -> None:
        known, ours = self.once(key, fence)
        made = answer(lambda: self.store.counter_add(self.prefix + name, amount, ours))

        assert self.plain(made) == self.model.add(name, amount, known)
        assert self.store.counter_get(self.prefix + name) == self.model.counters.get(name, 0)

    @rule(name=names, value=values, offset=st.sampled_from([None, 0, 1]), key=keys)
    def put(self, name: str, value: Any, offset: int | None, key: str | None) -> None:
        known, ours = self.once(key, None)
        at = self.model.values.get(name, (None, 0))[1]
        if_version = None if offset is None else at + offset
        made = self.plain(
            answer(
                lambda: self.store.state_set(
                    self.prefix + name, value, if_version=if_version, once=ours
                )
            )
        )

        assert made == self.model.put(
            name, value, if_version, known, first=0 if isinstance(made, str) else made[0]
        )

    @rule(name=names, key=keys)
    def unset(self, name: str, key: str | None) -> None:
        known, ours = self.once(key, None)
        made = answer(lambda: self.store.state_unset(self.prefix + name, once=ours))

        assert self.plain(made) == self.model.unset(name, known)

    @rule(name=names)
    def get(self, name: str) -> None:
        try:
            found = self.store.state_get(self.prefix + name)
            assert (found.value, found.version) == self.model.values[name]
        except KeyNotFound:
            assert name not in self.model.values

    @rule(name=names, body=st.sampled_from([1, 2]))
    def task(self, name: str, body: int) -> None:
        def add() -> str:
            added = self.store.task_add(self.prefix, [NewTask(body, self.prefix + name)])
            ((_task_id, effect),) = added.effects
            return effect

        assert answer(add) == self.model.add_task(name, body)

    @rule(lasts=st.booleans(), limit=st.integers(0, 2))
    def claim(self, lasts: bool, limit: int) -> None:
        lease_ms = LONG if lasts else 0
        claimed = self.store.task_claim(
            self.prefix, "ann", lease_ms=lease_ms, max_attempts=limit
        ).tasks

        made = [
            (task.id.removeprefix(self.prefix), task.generation, task.attempts) for task in claimed
        ]
        assert made == self.model.claim(lasts, limit)

    @rule(
        verb=st.sampled_from(["finish", "renew", "release"]),
        name=names,
        generation=st.integers(0, 3),
    )
    def end(self, verb: str, name: str, generation: int) -> None:
        task = self.prefix + name
        calls = {
            "finish": lambda: self.store.task_finish(task, generation),
            "renew": lambda: self.store.task_renew(task, generation, lease_ms=LONG) and "updated",
            "release": lambda: self.store.task_release(task, generation),
        }

        assert answer(calls[verb]) == self.model.end(verb, name, generation)
        assert statuses(self.store, self.prefix) == self.model.counts()

    @staticmethod
    def plain(made: Any) -> Any:
        return made if isinstance(made, str) else tuple(made)


@pytest.mark.timeout(300)
def test_every_backend_answers_like_a_dictionary(backend: Backend) -> None:
    class OnThis(Machine):
        store = backend.open()

    run_state_machine_as_test(
        OnThis,
        settings=settings(
            max_examples=scale(25, 500),
            stateful_step_count=20,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
