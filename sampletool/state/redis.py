"""A store on a Redis or Valkey server: for many machines, where the last writes may be lost if the server fails over.

Every verb is one call of redis.lua, so one atomic step. A server that may evict keys is refused; one without an
append-only file is used with a warning. The driver's own retries are off: after a lost connection nobody knows
whether a write happened, so it is repeated only if it carries an idempotency key or a fence.
"""

import re
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from itertools import chain
from typing import Any

from redis import Redis, exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from ..kit.contract.errors import InvalidValues, Mistake, ToolError, VersionConflict
from ..kit.contract.file_errors import IoFailure, NoSpace, PermissionDenied
from ..kit.safety.signals import Signals
from . import errors
from .exchange import interruptibly, until_answered
from .protocol import Health
from .retry_policy import RetryPolicy
from .store import Store, Write
from .store_url import no_store, shown_url

_SCHEMA = 2
_PREFIX = "{sampletool}"
"""In braces: all keys of a store share one slot, as a script needs it on a cluster."""
_SCHEMES = {"valkey": "redis", "valkeys": "rediss", "redis+unix": "unix"}
_MOST_AT_ONCE = 1000
_LOOK_SECONDS = 0.05
_QUOTED = re.compile("\n|, with args|`|'")
"""From here on an error of a server may quote what it was sent, and that may be a password."""
_SETTINGS = ("maxmemory_policy", "aof_enabled", "role", "appendfsync")
_AUTH_REFUSALS = ("NOAUTH", "WRONGPASS")
_NOT_DONE = (exceptions.ResponseError, exceptions.BusyLoadingError, exceptions.MaxConnectionsError)
"""What a server refuses without having done anything."""
_REFUSALS: dict[str, tuple[Callable[..., ToolError], str]] = {
    "TASK_NOT_FOUND": (errors.TaskNotFound, "task"),
    "TASK_CONFLICT": (errors.TaskConflict, "task"),
    "LEASE_LOST": (errors.LeaseLost, "task generation actual status"),
    "VERSION_CONFLICT": (VersionConflict, "key expected actual"),
    "TASK_NOT_FAILED": (errors.TaskNotFailed, "task status"),
    "COUNTER_RANGE": (errors.CounterRange, "counter value amount"),
}
"""The script answers the code and these facts, in this order."""


class RedisStore(Store):
    def __init__(self, url: str, terms: RetryPolicy) -> None:
        self._shown = shown_url(url)
        self._terms = terms
        scheme, _, rest = url.partition("://")
        seconds = terms.seconds(terms.answer_seconds)
        try:
            self._client = Redis.from_url(
                f"{_SCHEMES.get(scheme, scheme)}://{rest}",
                socket_timeout=seconds,
                socket_connect_timeout=seconds,
                retry=Retry(NoBackoff(), 0),
                decode_responses=True,
            )
            pool = self._client.connection_pool
            pool.connection_class(**pool.connection_kwargs)  # connects nowhere, but refuses an option it does not know
            pool.connection_class = _noticing(pool.connection_class, terms.signals)
        except (ValueError, TypeError):
            problem = f"{self._shown} is not the URL of a Redis server, or has an option that there is not"
            raise no_store(url, problem) from None
        self._script = self._client.register_script((files("sampletool.state") / "redis.lua").read_text())
        self._is_checked = False

    def write(self, write: Write) -> tuple[Any, bool]:
        if not self._is_checked:
            self._check_server()
        if write.verb == "task_add" and len(write.arguments[1]) > _MOST_AT_ONCE:
            problem = f"more than {_MOST_AT_ONCE} tasks at once would keep the server from everything else"
            raise InvalidValues(Mistake("BODY", "INVALID_VALUE", problem, suggestion="Add them in several calls."))
        head = [write.verb, _SCHEMA, int(self._terms.rehearse), write.key, write.said, write.key_life_ms]
        head += write.once.fence or [None, None]
        sent = ["" if part is None else part for part in [*head, *_flat(write.arguments)]]
        kind, *found = self._talk(lambda: self._script([_PREFIX], sent), may_repeat=write.may_repeat)
        if kind in ("done", "again"):
            return found[0], kind == "again"
        if kind == "STATE_TOO_NEW":
            raise errors.StateTooNew(store=self._shown, found=found[0], known=_SCHEMA)
        if kind == "IDEMPOTENCY_KEY_REUSED":
            raise write.reused()
        error, names = _REFUSALS[kind]
        raise error(**dict(zip(names.split(), found, strict=True)))

    def read(self, verb: str, *arguments: Any) -> Any:
        if verb not in ("state_list", "task_list"):
            return self.write(Write(verb, arguments))[0]
        *where, after, limit = arguments
        rows: list[Any] = []
        while len(rows) < limit:
            some, after = self.write(Write(verb, (*where, after, limit - len(rows))))[0]
            rows += some
            if after == "":
                break
        return rows

    def health(self) -> Health:
        began = time.time()
        seconds, microseconds = self._talk(self._client.time, may_repeat=True)
        skew_ms = round((seconds + microseconds / 1e6 - (began + time.time()) / 2) * 1000)
        info = self._talk(self._client.info, may_repeat=True)
        with suppress(exceptions.RedisError):  # not everybody may ask
            info |= self._client.config_get("appendfsync")
        settings = {name: str(info[name]) for name in _SETTINGS if name in info}
        name, version = ("Valkey", "valkey_version") if "valkey_version" in info else ("Redis", "redis_version")
        return Health(f"{name} {info[version]} ({self._shown})", _problems(info), skew_ms, settings)

    def close(self) -> None:
        self._client.close()

    def _check_server(self) -> None:
        info = self._talk(self._client.info, may_repeat=True)
        problems = _problems(info)
        if info.get("maxmemory_policy", "noeviction") != "noeviction":
            raise errors.StoreUnsafe(store=self._shown, reason=problems[0], suggestion="Set it to noeviction.")
        for problem in problems:
            self._terms.warn("STORE_NOT_DURABLE", f"{self._shown}: {problem}.")
        self._is_checked = True

    def _talk(self, ask: Callable[[], Any], *, may_repeat: bool) -> Any:
        def attempt(_deadline: float) -> Any:
            is_certain = True
            try:
                self._client.connection_pool.release(self._client.connection_pool.get_connection())
                is_certain = may_repeat  # a failure to connect would be known to have done nothing
                return ask()
            except (exceptions.RedisError, OSError) as error:
                raise self._our_error(error, is_certain=is_certain) from None

        return until_answered(self._terms, self._shown, attempt)

    def _our_error(self, error: Exception, *, is_certain: bool) -> ToolError:
        said = str(error)
        if isinstance(error, exceptions.AuthenticationError) or said.startswith(_AUTH_REFUSALS):
            return errors.StoreAuthFailed(store=self._shown, reason="the password or user is not accepted")
        if isinstance(error, exceptions.NoPermissionError):
            return PermissionDenied(self._shown, "the user may not run scripts or use these keys")
        if isinstance(error, exceptions.ReadOnlyError):
            return errors.StoreReadOnly(self._shown)
        if isinstance(error, exceptions.OutOfMemoryError) or said.startswith("MISCONF"):
            return NoSpace(self._shown)
        if isinstance(error, exceptions.ResponseError) and not said.startswith("BUSY"):
            return IoFailure(self._shown, _QUOTED.split(said)[0])
        reason = "it did not answer in time" if isinstance(error, exceptions.TimeoutError) else "no connection"
        is_known = is_certain or isinstance(error, _NOT_DONE)
        unavailable = errors.StoreUnavailable if is_known else errors.OutcomeUnknown
        return unavailable(store=self._shown, reason=reason)


def _noticing(kind: Any, signals: Signals) -> Any:
    """The driver's kind of connection, except that a signal ends the wait for an answer, and for the connection."""

    class Noticing(kind):  # type: ignore[misc]
        def connect(self) -> None:
            if not self.is_connected:
                interruptibly(signals, super().connect, lambda _: self.disconnect())

        def read_response(self, *args: Any, **named: Any) -> Any:
            give_up_at = time.monotonic() + self.socket_timeout
            try:
                while not self.can_read(_LOOK_SECONDS):
                    signals.check()
                    if time.monotonic() >= give_up_at:
                        raise exceptions.TimeoutError
            except BaseException:
                self.disconnect()
                raise
            return super().read_response(*args, **named)

    return Noticing


def _problems(info: dict[str, Any]) -> list[str]:
    policy, flushes = info.get("maxmemory_policy", "noeviction"), info.get("appendfsync") != "no"
    found = {
        f"its maxmemory-policy {policy} may evict what it keeps": policy != "noeviction",
        "it has no append-only file, so a crash loses everything since its last snapshot": not info.get("aof_enabled"),
        "appendfsync is no, so a crash of the machine loses what the system has not yet written": not flushes,
        "it could not write its append-only file": info.get("aof_last_write_status", "ok") != "ok",
        "it is a replica: what is written here is refused, or lost": info.get("role") in ("slave", "replica"),
    }
    return [problem for problem, is_so in found.items() if is_so]


def _flat(arguments: tuple[Any, ...]) -> list[Any]:
    """Without the structure of tasks: id and body, one after the other."""
    return [part for one in arguments for part in (chain(*one) if isinstance(one, list) else [one])]
