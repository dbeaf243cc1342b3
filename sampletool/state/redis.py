"""A store on a Redis or Valkey server: for many machines, where the last writes may be lost if the server fails over.

Every verb is one call of redis.lua, so one atomic step. A server that may evict keys is refused; one without an
append-only file is used with a warning. The driver's own retries are off: after a lost connection nobody knows
whether a write happened, so it is repeated only if it carries an idempotency key or a fence.
"""

import json
import time
from importlib.resources import files
from typing import Any

from redis import Redis, exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from sampletool.contract.errors import InvalidValues, KeyNotFound, Mistake, ToolError
from sampletool.contract.file_errors import IoFailure, NoSpace, PermissionDenied, ReadOnly
from sampletool.contract.store_errors import (
    IdempotencyKeyReused,
    StateTooNew,
    StoreAuthFailed,
    StoreUnavailable,
    StoreUnsafe,
)
from sampletool.state import promises
from sampletool.state.promises import FREELY, KEY_LIFE_MS, NewTask, Once, TaskState, Value, Written
from sampletool.state.refusals import refusal
from sampletool.state.terms import Terms
from sampletool.state.values import check, digest, encode, given, once_key, shown_url, with_ids

_SCHEMA = 1
_PREFIX = "{sampletool}"
"""In braces: all keys of a store share one slot, as a script needs it on a cluster."""
_SCHEMES = {"valkey": "redis", "valkeys": "rediss", "redis+unix": "unix"}
_PAUSE_SECONDS = 0.05
_NOT_DONE = (exceptions.BusyLoadingError, exceptions.AuthenticationError, exceptions.MaxConnectionsError)
"""Failures of a connection that tell that nothing was done."""


class RedisStore:
    """See promises.py."""

    def __init__(self, url: str, terms: Terms) -> None:
        self._shown = shown_url(url)
        self._terms = terms
        scheme, _, rest = url.partition("://")
        seconds = terms.answer_seconds()
        try:
            self._client = Redis.from_url(
                f"{_SCHEMES.get(scheme, scheme)}://{rest}",
                socket_timeout=seconds,
                socket_connect_timeout=seconds,
                retry=Retry(NoBackoff(), 0),
                health_check_interval=0,
            )
            pool = self._client.connection_pool
            pool.connection_class(**pool.connection_kwargs)  # connects nowhere, but refuses an option it does not know
        except (ValueError, TypeError):
            problem = f"{self._shown} is not the URL of a Redis server, or has an option that there is not"
            raise InvalidValues(Mistake("--store", "INVALID_VALUE", problem)) from None
        self._script = self._client.register_script((files("sampletool.state") / "redis.lua").read_text())
        self._is_checked = False

    def counter_add(self, name: str, amount: int, once: Once = FREELY) -> promises.Counted:
        check(name=name, amount=amount)
        (value, effect), replayed = self._write(once, "counter add", name, [amount], amount)
        return promises.Counted(int(value), effect, replayed)

    def counter_get(self, name: str) -> int:
        return int(self._read("counter get", name)[0])

    def counter_list(self, after: str, limit: int) -> list[tuple[str, int]]:
        return [(name, int(value)) for name, value in _rows(self._read("counter list", after, limit), 2)]

    def state_get(self, key: str) -> Value:
        found = self._read("state get", key)
        if not found:
            raise KeyNotFound(key, "the store", [], "tool state list")
        return _value(found)

    def state_set(
        self, key: str, value: Any, *, if_version: int | None = None, expires_ms: int | None = None, once: Once = FREELY
    ) -> Written:
        check(key=key, if_version=if_version, expires=expires_ms)
        arguments = [value, if_version, expires_ms]
        (version, effect), replayed = self._write(
            once, "state set", key, arguments, encode(value), _text(if_version), _text(expires_ms)
        )
        return Written(int(version), effect, replayed)

    def state_unset(self, key: str, *, if_version: int | None = None, once: Once = FREELY) -> Written:
        check(key=key, if_version=if_version)
        (version, effect), replayed = self._write(once, "state unset", key, [if_version], _text(if_version))
        return Written(int(version), effect, replayed)

    def state_list(self, prefix: str, after: str, limit: int) -> list[Value]:
        return [_value(row) for row in _rows(self._read("state list", prefix, after, limit), 4)]

    def task_add(self, queue: str, tasks: list[NewTask], once: Once = FREELY) -> promises.Added:
        check(queue=queue)
        flat = [part for task in with_ids(tasks) for part in task]
        effects, replayed = self._write(once, "task add", queue, given(tasks), *flat)
        return promises.Added([(task, effect) for task, effect in _rows(effects, 2)], replayed)

    def task_claim(
        self, queue: str, worker: str, *, lease_ms: int, count: int = 1, max_attempts: int = 0, once: Once = FREELY
    ) -> promises.Claim:
        check(queue=queue, worker=worker, lease=lease_ms, count=count, max_attempts=max_attempts)
        arguments = [worker, lease_ms, count, max_attempts]
        found, replayed = self._write(once, "task claim", queue, arguments, *arguments)
        tasks = [
            promises.Claimed(task, int(generation), json.loads(body), int(attempts), int(ends))
            for task, generation, body, attempts, ends in _rows(found, 5)
        ]
        return promises.Claim(tasks, replayed)

    def task_renew(self, task: str, generation: int, *, lease_ms: int) -> int:
        check(lease=lease_ms)
        return int(self._change("task renew", task, generation, lease_ms)[0])

    def task_finish(self, task: str, generation: int) -> str:
        return self._change("task finish", task, generation)[0]

    def task_release(self, task: str, generation: int, *, delay_ms: int = 0) -> str:
        check(delay=delay_ms)
        return self._change("task release", task, generation, delay_ms)[0]

    def task_list(self, queue: str | None, status: str | None, after: int, limit: int) -> list[TaskState]:
        found = self._read("task list", queue or "", status or "", after, limit)
        return [_task_state(row) for row in _rows(found, 10)]

    def task_count(self, queue: str | None) -> dict[str, int]:
        return {status: int(number) for status, number in _rows(self._read("task count", queue or ""), 2)}

    def health(self) -> promises.Health:
        self._is_checked = True
        began = time.time()
        now = int(self._read("health")[0])
        skew_ms = round(now - (began + time.time()) / 2 * 1000)
        info = self._talk(self._client.info, may_repeat=True)
        name = "Valkey" if "valkey_version" in info else "Redis"
        settings = {name: str(info.get(name)) for name in ("maxmemory_policy", "aof_enabled", "role")}
        version = info.get("valkey_version", info["redis_version"])
        return promises.Health(f"{name} {version} ({self._shown})", _problems(info), skew_ms, settings)

    def close(self) -> None:
        self._client.close()

    def _read(self, verb: str, *arguments: Any) -> list[str]:
        return self._run(FREELY, verb, "", [], arguments, may_repeat=True)[0]

    def _change(self, verb: str, *arguments: Any) -> list[str]:
        """Named by a generation, which makes doing it again harmless."""
        return self._run(FREELY, verb, "", [], arguments, may_repeat=True)[0]

    def _write(self, once: Once, verb: str, name: str, said: list[Any], *arguments: Any) -> tuple[list[str], bool]:
        return self._run(once, verb, name, said, (name, *arguments), may_repeat=once != FREELY)

    def _run(
        self, once: Once, verb: str, name: str, said: list[Any], arguments: tuple[Any, ...], *, may_repeat: bool
    ) -> tuple[list[str], bool]:
        """One call of the script; whether its answer is a replay comes with it."""
        if not self._is_checked:
            self._check_server()
        key = once_key(once, verb, name)
        head: list[Any] = [
            verb,
            _SCHEMA,
            int(self._terms.rehearse),
            key or "",
            digest(verb, name, said) if key else "",
            KEY_LIFE_MS if once.fence is None else "",
            once.fence.task if once.fence else "",
            once.fence.generation if once.fence else "",
        ]
        answer = self._talk(lambda: self._script([_PREFIX], [*head, *arguments]), may_repeat=may_repeat)
        kind, *parts = (part.decode() for part in answer)
        if kind in ("done", "again"):
            return parts, kind == "again"
        if kind == "STATE_TOO_NEW":
            raise StateTooNew(self._shown, int(parts[0]), _SCHEMA)
        if kind == "IDEMPOTENCY_KEY_REUSED":
            raise IdempotencyKeyReused(once.key or name, is_fenced=once.key is None)
        raise refusal(kind, parts, once.fence.generation if once.fence else arguments[1])

    def _check_server(self) -> None:
        info = self._talk(self._client.info, may_repeat=True)
        if (policy := info.get("maxmemory_policy", "noeviction")) != "noeviction":
            raise StoreUnsafe(
                self._shown, f"its maxmemory-policy {policy} may evict what it keeps", "Set it to noeviction."
            )
        for problem in _problems(info):
            self._terms.warn("STORE_NOT_DURABLE", f"{self._shown}: {problem}.")
        self._is_checked = True

    def _talk(self, ask: Any, *, may_repeat: bool) -> Any:
        """Ask; ask again until the deadline if that cannot do anything twice."""
        deadline = time.monotonic() + self._terms.answer_seconds()
        while True:
            is_sent = False
            try:
                self._connect()
                is_sent = True
                return ask()
            except (exceptions.ConnectionError, exceptions.TimeoutError, OSError) as error:
                is_certain = not is_sent or isinstance(error, _NOT_DONE)
                is_final = isinstance(error, exceptions.AuthenticationError) or not (may_repeat or is_certain)
                if is_final or time.monotonic() >= deadline:
                    raise self._our_error(error, is_outcome_unknown=not is_certain and not may_repeat) from None
                self._terms.signals.wait(_PAUSE_SECONDS)
                self._terms.signals.check()
            except exceptions.RedisError as error:
                raise self._our_error(error, is_outcome_unknown=False) from None

    def _connect(self) -> None:
        """Before asking, so that a failure to connect is known to have done nothing."""
        connection = self._client.connection_pool.get_connection()
        self._client.connection_pool.release(connection)

    def _our_error(self, error: Exception, *, is_outcome_unknown: bool) -> ToolError:
        said = str(error)
        if isinstance(error, exceptions.AuthenticationError) or said.startswith(("NOAUTH", "WRONGPASS")):
            return StoreAuthFailed(self._shown, "the password or user is not accepted")
        if isinstance(error, exceptions.NoPermissionError):
            return PermissionDenied(self._shown, "the user may not run scripts or use these keys")
        if isinstance(error, exceptions.ReadOnlyError):
            return ReadOnly(self._shown)
        if isinstance(error, exceptions.OutOfMemoryError) or said.startswith("MISCONF"):
            return NoSpace(self._shown)
        if isinstance(error, exceptions.ResponseError) and not said.startswith("BUSY"):
            return IoFailure(self._shown, said.partition("\n")[0])
        reason = "it did not answer in time" if isinstance(error, exceptions.TimeoutError) else "no connection"
        return StoreUnavailable(self._shown, reason, is_outcome_unknown=is_outcome_unknown)


def _problems(info: dict[str, Any]) -> list[str]:
    if info.get("aof_enabled"):
        return []
    return ["it has no append-only file, so a crash loses everything since its last snapshot"]


def _rows(parts: list[str], width: int) -> list[list[str]]:
    return [parts[start : start + width] for start in range(0, len(parts), width)]


def _value(row: list[str]) -> Value:
    key, text, version, ends = row
    return Value(key, json.loads(text), int(version), int(ends) if ends else None)


def _task_state(row: list[str]) -> TaskState:
    task, queue, status, generation, attempts, body, by, at, due, position = row
    times = (int(at) if at else None, int(due) if due else None)
    return TaskState(
        task, queue, status, int(generation), int(attempts), by or None, *times, int(position), json.loads(body)
    )


def _text(number: int | None) -> str:
    return "" if number is None else str(number)
