"""A store on a Redis or Valkey server: for users on many machines.

**A verb is one call of redis.lua**, a script that runs on the server, so it is one atomic step.

**Nothing is repeated silently.** The driver's own retries are off. After a lost connection, a
change may have been made or not, so it is sent again only if that is harmless (see exchange.py).

**A wait for the server can be interrupted.** The driver reads a reply piece by piece.
`_WatchedSocket` looks for a signal and at the deadline in between.

**The server must not lose data by design.** A server that may evict keys is refused. One without an
append-only file is used, with a warning. A failover can lose the last writes.
"""

import re
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files
from typing import Any, TypeVar

from redis import Redis, SSLConnection, exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from ..kit.contract.errors import InvalidValues, Mistake, ToolError, VersionConflict
from . import errors
from .exchange import NoReply, Request, Watch, connect_in_thread, send
from .protocol import Health
from .retry_policy import RetryPolicy
from .store import Reply, Store, Write
from .store_url import invalid_store, shown_url, take_store_name

T = TypeVar("T")

_SCHEMA = 3
"""The version of what the script stores. It refuses a store with a higher one."""

_DEFAULT_PREFIX = "{sampletool}"
"""The beginning of all keys. A store with a name of its own has that in the braces, too.

In braces: a cluster keeps all keys with the same text in braces on one server, which a script
requires.
"""

_DRIVER_SCHEMES = {"valkey": "redis", "valkeys": "rediss", "redis+unix": "unix"}
"""The schemes that the driver knows under another name."""

_MAX_TASKS_AT_ONCE = 1000
"""How many tasks one script adds. While a script runs, the server does nothing else."""

_LOOK_SECONDS = 0.05
"""How long to wait for a reply before looking for a signal and at the deadline."""

_HANDSHAKE_SECONDS = 1.0
"""How long TLS may take before the server is asked whether it speaks TLS at all.

A server without TLS waits for the rest of a command, and the client waits for the server.
"""

_SOCKET_SECONDS = 3600.0
"""The timeout that the driver gets. It never counts, because every exchange ends earlier."""

_QUOTED = re.compile("\n|, with args|`|'")
"""Where an error of a server may start to quote what it was sent, which may be a password."""

_SHOWN_SETTINGS = ("maxmemory_policy", "aof_enabled", "role", "appendfsync")
"""The settings that decide whether the server keeps its data."""

_LOGIN_REFUSALS = ("NOAUTH", "WRONGPASS")
"""The codes with which a server refuses a login.

A driver that knows a code raises an AuthenticationError. Another one raises a ResponseError whose
text begins with the code.
"""

_CANNOT_SAVE = "MISCONF"
"""The code with which a server refuses all writes while it cannot save its data.

Nearly always, its disk is full. The driver has no class for this error.
"""

_ERRORS_BEFORE_EXECUTION = (
    exceptions.ResponseError,
    exceptions.BusyLoadingError,
    exceptions.MaxConnectionsError,
)
"""The errors of a server that has not done what it was asked to do."""

_REFUSALS: dict[str, tuple[Callable[..., ToolError], tuple[str, ...]]] = {
    "TASK_NOT_FOUND": (errors.TaskNotFound, ("task",)),
    "TASK_CONFLICT": (errors.TaskConflict, ("task",)),
    "LEASE_LOST": (errors.LeaseLost, ("task", "generation", "actual_generation", "actual_status")),
    "VERSION_CONFLICT": (VersionConflict, ("key", "expected", "actual")),
    "TASK_ENDED": (errors.TaskEnded, ("task", "status")),
    "TASK_NOT_FAILED": (errors.TaskNotFailed, ("task", "status")),
    "COUNTER_RANGE": (errors.CounterRange, ("counter", "value", "amount")),
}
"""The error for each refusal of the script, and the names of the facts that follow the code."""

_NO_TLS = "the server does not speak TLS at this port. Use redis:// instead of rediss://"

_UNREADABLE_CERTIFICATE = "a certificate or key that the URL names cannot be read"

_WRONG_CERTIFICATE = "the certificate of the server is not trusted, or belongs to another host"

_PERMANENT_REASONS = {
    "certificate.verify.failed": _WRONG_CERTIFICATE,
    "wrong.version.number|record.layer.failure": _NO_TLS,
    "PEM.lib|no.certificate.or.crl.found|key.values.mismatch": _UNREADABLE_CERTIFICATE,
    "DB index is out of range": "the server has no database with this number",
    "^(MOVED|CROSSSLOT)": "it is one server of a cluster, which this program does not support",
}
"""Why using the server can never succeed, by a pattern of the text of the error."""

_LISTING_VERBS = ("state_list", "task_list")
"""The verbs that the script does in several calls, so that no call takes long."""

_NO_INFO: dict[str, Any] = {}


class RedisStore(Store):
    """A store on one server."""

    def __init__(self, url: str, policy: RetryPolicy) -> None:
        """Check the URL. The store connects when it is first used."""
        self._shown_url = shown_url(url)
        self._policy = policy
        self._watch = Watch(policy.signals)
        url, name = take_store_name(url, "prefix")
        self._prefix = _DEFAULT_PREFIX if name is None else f"{{sampletool:{name}}}"
        self._refuse_wrong_path(url)
        self._client = self._make_client(url)
        script = (files("sampletool.state") / "redis.lua").read_text()
        self._script = self._client.register_script(script)
        self._is_migrated = False
        self._is_checked = False
        """Whether the settings of the server were checked."""

    def write(self, write: Write) -> Reply:
        """Make the change."""
        self._check_server_once()
        self._migrate_once()
        if write.verb == "task_add":
            _refuse_too_many_tasks(write.arguments["tasks"])
        request = Request(
            store=self._shown_url,
            change=write.describe(),
            repetition=write.repetition,
        )
        return self._run_script(
            request,
            write.verb,
            write.arguments,
            write=write,
            is_forecast=self._policy.dry_run,
        )

    def read(self, verb: str, arguments: dict[str, Any]) -> Any:
        """Return what the verb reads."""
        self._check_server_once()
        if verb in _LISTING_VERBS:
            return self._read_list(verb, arguments)
        return self._read_once(verb, arguments)

    def _read_once(self, verb: str, arguments: dict[str, Any]) -> Any:
        """Return what one call of the script reads."""
        # As a forecast, the script certainly changes nothing.
        request = Request(store=self._shown_url)
        return self._run_script(request, verb, arguments, is_forecast=True).data

    def _read_list(self, verb: str, arguments: dict[str, Any]) -> list[Any]:
        """Return the rows of a list, which the script reads in several calls.

        One call may stop early, so that it does not take long. It returns the rows that it has
        found, and the cursor to continue after: "" at the end of the list.
        """
        rows: list[Any] = []
        limit = arguments["limit"]
        cursor = arguments["cursor"]
        while len(rows) < limit:
            rest = {**arguments, "cursor": cursor, "limit": limit - len(rows)}
            page, cursor = self._read_once(verb, rest)
            rows += page
            is_end_of_list = cursor == ""
            if is_end_of_list:
                break
        return rows

    def health(self) -> Health:
        """Return the state of the server."""
        clock_skew_ms = self._measure_clock_skew()
        info = self._read_info()
        if info:
            # Only an administrator may run CONFIG.
            with suppress(errors.StoreForbidden):
                info = {**info, **self._ask(lambda: self._client.config_get("appendfsync"))}
        return Health(
            server=f"{_server_name(info)} ({self._shown_url})",
            problems=_find_problems(info),
            clock_skew_ms=clock_skew_ms,
            settings={name: str(info[name]) for name in _SHOWN_SETTINGS if name in info},
        )

    def _measure_clock_skew(self) -> int:
        """Return how many milliseconds the clock of the server is ahead of that of this machine."""
        asked_at = time.time()
        seconds, microseconds = self._ask(self._client.time)
        replied_at = time.time()
        server_time: float = seconds + microseconds / 1_000_000
        # The server has read its clock at some moment between the two: take the middle.
        local_time = (asked_at + replied_at) / 2
        return round((server_time - local_time) * 1000)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _refuse_wrong_path(self, url: str) -> None:
        """Raise InvalidValues if the path of the URL is not the number of a database.

        The driver ignores such a path. So redis://host/a and redis://host/b would be one store.
        """
        scheme, _separator, rest = url.partition("://")
        if _DRIVER_SCHEMES.get(scheme, scheme) == "unix":
            return
        # A password may contain slashes, but the host may not.
        place = re.split("[?#]", rest)[0].rpartition("@")[2]
        path = place.partition("/")[2]
        if path and not path.isdecimal():
            raise invalid_store(
                url,
                f"the path of {self._shown_url} is not the number of a database",
                "To separate projects, name the store: redis://HOST/0?prefix=NAME.",
            )

    def _make_client(self, url: str) -> Any:
        """Return a client that has not connected yet."""
        scheme, _separator, rest = url.partition("://")
        driver_scheme = _DRIVER_SCHEMES.get(scheme, scheme)
        connect_seconds = self._policy.seconds_from_now(self._policy.min_server_seconds)
        try:
            client = Redis.from_url(
                f"{driver_scheme}://{rest}",
                socket_timeout=_SOCKET_SECONDS,
                socket_connect_timeout=connect_seconds,
                retry=Retry(NoBackoff(), 0),
                decode_responses=True,
            )
            pool = client.connection_pool
            # This connects to nothing, but raises an error for an unknown option.
            pool.connection_class(**pool.connection_kwargs)
        except (ValueError, TypeError, exceptions.RedisError):
            problem = f"{self._shown_url} is not the URL of a Redis server, or has a wrong option"
            raise invalid_store(url, problem) from None
        pool.connection_class = _watched_class(
            pool.connection_class,
            self._watch,
            self._shown_url,
        )
        return client

    def _run_script(
        self,
        request: Request,
        verb: str,
        arguments: dict[str, Any],
        *,
        write: Write | None = None,
        is_forecast: bool,
    ) -> Reply:
        """Run a verb of the script, and return its reply. Raise the error of a refusal.

        A forecast returns what the verb would return, but changes nothing.
        """
        # The script finds its arguments by their places: see the first lines of redis.lua.
        script_arguments = [verb, _SCHEMA, int(is_forecast), *_once_arguments(write)]
        for argument in arguments.values():
            script_arguments += _flatten(argument)
        # An argument of a script cannot be None.
        texts = ["" if argument is None else argument for argument in script_arguments]

        def run(is_repetition: bool) -> Reply:
            script_reply = self._script([self._prefix], [int(is_repetition), *texts])
            return self._to_reply(script_reply, write)

        return self._send(request, run)

    def _to_reply(self, script_reply: list[Any], write: Write | None) -> Reply:
        """Return the reply of the script as a Reply. Raise the error if the script has refused.

        The first item of `script_reply` is the outcome. The other items depend on it: "done" and
        "replayed" have the data, and "refused" has the code and the facts of the error.
        """
        outcome, *details = script_reply
        if outcome == "refused":
            code, *facts = details
            raise self._script_refusal(code, facts, write)
        (data,) = details
        return Reply(data, is_replayed=outcome == "replayed")

    def _script_refusal(self, code: str, facts: list[Any], write: Write | None) -> ToolError:
        """Return the error to raise if the script has refused a verb with this code."""
        if code == "STATE_TOO_NEW":
            (schema_of_store,) = facts
            return errors.StateTooNew(
                store=self._shown_url,
                found=schema_of_store,
                known=_SCHEMA,
            )
        if code == "IDEMPOTENCY_KEY_REUSED" and write is not None:
            return write.key_reused_error()
        error_class, fact_names = _REFUSALS[code]
        named_facts = dict(zip(fact_names, facts, strict=True))
        return error_class(**named_facts)

    def _check_server_once(self) -> None:
        """Refuse a server that evicts keys. Warn about one that can lose data in a crash."""
        if self._is_checked:
            return
        info = self._read_info()
        policy = _eviction_policy(info)
        if policy != "noeviction":
            raise errors.StoreUnsafe(
                store=self._shown_url,
                reason=_eviction_problem(policy),
                suggestion="Set maxmemory-policy to noeviction.",
            )
        for problem in _find_problems(info):
            self._policy.warn("STORE_NOT_DURABLE", f"{self._shown_url}: {problem}.")
        self._is_checked = True

    def _migrate_once(self) -> None:
        """List the tasks of a store of version 0.2 under their status.

        This takes many short calls, so that other clients do not have to wait. They can do the same
        at the same time. Each call returns "done" if nothing is left to do.
        """
        if self._is_migrated or self._policy.dry_run:
            return
        request = Request(store=self._shown_url)
        while self._run_script(request, "migrate", {}, is_forecast=False).data != "done":
            self._policy.signals.check()
        self._is_migrated = True

    def _read_info(self) -> dict[str, Any]:
        """Return what INFO says. It is empty if this user may not run INFO."""
        try:
            info: dict[str, Any] = self._ask(self._client.info)
        except errors.StoreForbidden:
            return _NO_INFO
        return info

    def _ask(self, ask: Callable[[], T]) -> T:
        """Send a command that changes nothing, again if necessary, and return the reply."""
        return self._send(Request(store=self._shown_url), lambda _is_repetition: ask())

    def _send(self, request: Request, ask: Callable[[bool], T]) -> T:
        """Send a request to the server, again if necessary, and return the reply.

        `ask` is called with whether it repeats an attempt that may have succeeded.
        """

        def attempt(give_up_at: float, is_repetition: bool) -> T:
            self._watch.give_up_at = give_up_at
            was_sent = False
            try:
                # Connect first. A failure to connect has certainly changed nothing.
                pool = self._client.connection_pool
                pool.release(pool.get_connection())
                was_sent = True
                return ask(is_repetition)
            except (exceptions.RedisError, OSError) as error:
                raise self._error_to_raise(error, was_sent=was_sent) from None
            except UnicodeError:
                problem = f"{self._shown_url} names a host that cannot exist"
                raise invalid_store(self._shown_url, problem) from None

        return send(request, self._policy, attempt)

    def _error_to_raise(self, error: Exception, *, was_sent: bool) -> Exception:
        """Return the error to raise instead of an error of the driver: NoReply or a ToolError.

        NoReply means that the server has not replied, so another attempt can follow. `was_sent` is
        whether the request may have reached the server.
        """
        refusal = self._server_refusal(error)
        if refusal is not None:
            return refusal
        permanent_reason = _permanent_reason(error)
        if permanent_reason is not None:
            return errors.StoreMisconfigured(store=self._shown_url, reason=permanent_reason)
        if _is_failure_of_command(error):
            harmless_text = _QUOTED.split(str(error))[0]
            return errors.StoreFailure(self._shown_url, harmless_text)
        was_certainly_not_done = isinstance(error, _ERRORS_BEFORE_EXECUTION)
        return NoReply(
            _temporary_reason(error),
            was_sent=was_sent and not was_certainly_not_done,
        )

    def _server_refusal(self, error: Exception) -> ToolError | None:
        """Return the error to raise if the server has refused the user, or all changes.

        Return None if the driver's error has another cause.
        """
        text = str(error)
        is_login_error = isinstance(error, exceptions.AuthenticationError)
        if is_login_error or text.startswith(_LOGIN_REFUSALS):
            reason = "the password or user is not accepted"
            return errors.StoreAuthFailed(store=self._shown_url, reason=reason)
        if isinstance(error, exceptions.NoPermissionError):
            reason = "the user is not allowed to run this command or to use these keys"
            return errors.StoreForbidden(path=self._shown_url, reason=reason)
        if isinstance(error, exceptions.ReadOnlyError):
            return errors.StoreReadOnly(path=self._shown_url)
        is_memory_full = isinstance(error, exceptions.OutOfMemoryError)
        if is_memory_full or text.startswith(_CANNOT_SAVE):
            return errors.StoreFull(path=self._shown_url)
        return None


def _refuse_too_many_tasks(tasks: list[Any]) -> None:
    """Raise InvalidValues if one script cannot add so many tasks."""
    if len(tasks) > _MAX_TASKS_AT_ONCE:
        problem = f"a Redis store takes at most {_MAX_TASKS_AT_ONCE} tasks at once"
        hint = "Add them with several commands."
        raise InvalidValues(Mistake("BODY", "INVALID_VALUE", problem, suggestion=hint))


class _WatchedSocket:
    """A socket whose waits end with the exchange: at its deadline, or after a signal.

    The driver sets a timeout for each recv(). So a server that sends one byte before each timeout
    would keep the driver waiting permanently.
    """

    def __init__(self, connected_socket: Any, watch: Watch) -> None:
        self._socket = connected_socket
        self._watch = watch
        self._is_blocking = True
        self._socket.settimeout(_LOOK_SECONDS)

    def __getattr__(self, name: str) -> Any:
        """Return everything else of the socket."""
        return getattr(self._socket, name)

    def settimeout(self, seconds: float | None) -> None:
        """Remember whether the driver wants to wait at all. How long is up to the watch."""
        # A socket with a timeout of 0 never waits. None means to wait without a limit.
        self._is_blocking = seconds != 0
        if self._is_blocking:
            self._socket.settimeout(_LOOK_SECONDS)
        else:
            self._socket.settimeout(0)

    def recv(self, size: int) -> bytes:
        """Receive what has arrived, at least one byte."""
        content: bytes = self._wait_for(self._socket.recv, size)
        return content

    def recv_into(self, buffer: Any, *args: Any) -> int:
        """Receive what has arrived into a buffer, and return the number of bytes."""
        byte_count: int = self._wait_for(self._socket.recv_into, buffer, *args)
        return byte_count

    def sendall(self, content: bytes) -> None:
        """Send the content, in pieces if the socket does not take all of it at once.

        Between two pieces, look for a signal and at the deadline.
        """
        remaining = memoryview(content)
        while remaining:
            byte_count = self._wait_for(self._socket.send, remaining)
            remaining = remaining[byte_count:]

    def _wait_for(self, operation: Callable[..., Any], *args: Any) -> Any:
        """Repeat an operation until it succeeds. Raise TimeoutError if the exchange is over."""
        while True:
            if self._is_blocking and self._watch.is_over():
                raise TimeoutError
            try:
                return operation(*args)
            except TimeoutError:
                # Only _LOOK_SECONDS have passed.
                continue


def _watched_class(connection_class: Any, watch: Watch, shown_url: str) -> Any:
    """Return a class of the driver's connections that use watched sockets."""

    class WatchedConnection(connection_class):  # type: ignore[misc]
        """A connection that obeys the limits of the exchange."""

        def _connect(self) -> _WatchedSocket:
            connect: Callable[[], Any] = super()._connect
            if isinstance(self, SSLConnection):
                connected_socket = self._connect_with_tls(connect)
            else:
                connected_socket = _connect_socket(connect, watch)
            return _WatchedSocket(connected_socket, watch)

        def _connect_with_tls(self, connect: Callable[[], Any]) -> Any:
            """Return a socket. Raise StoreMisconfigured if this can never succeed."""
            try:
                connected_socket = _connect_soon(connect, watch)
                if connected_socket is not None:
                    return connected_socket
                # Either the server is slow, or it does not speak TLS. Find out before a long wait.
                if _speaks_redis_without_tls(self.host, self.port, watch):
                    raise errors.StoreMisconfigured(store=shown_url, reason=_NO_TLS)
                return _connect_socket(connect, watch)
            except (FileNotFoundError, PermissionError) as error:
                # The driver would turn it into the error of an unreachable server.
                raise errors.StoreMisconfigured(
                    store=shown_url,
                    reason=_UNREADABLE_CERTIFICATE,
                ) from error

    return WatchedConnection


def _connect_socket(connect: Callable[[], Any], watch: Watch) -> Any:
    """Return the socket that `connect` returns. Raise TimeoutError if the exchange is over."""
    # In a thread: looking up a host name cannot be interrupted.
    return connect_in_thread(connect, watch, socket.socket.close)


def _connect_soon(connect: Callable[[], Any], watch: Watch) -> Any | None:
    """Return the socket that `connect` returns, or None if that takes too long for a handshake.

    Raise TimeoutError if the exchange is over.
    """
    give_up_at = min(watch.give_up_at, time.monotonic() + _HANDSHAKE_SECONDS)
    handshake_watch = Watch(watch.signals, give_up_at)
    try:
        return _connect_socket(connect, handshake_watch)
    except TimeoutError:
        if watch.is_over():
            raise
        return None


def _speaks_redis_without_tls(host: str, port: int, watch: Watch) -> bool:
    """Return whether a server replies to a command that is not encrypted.

    Raise TimeoutError if the exchange is over.
    """

    def close_nothing(_is_reply: bool) -> None:
        """Do nothing: `_replies_without_tls` has closed its connection itself."""

    return connect_in_thread(lambda: _replies_without_tls(host, port), watch, close_nothing)


def _replies_without_tls(host: str, port: int) -> bool:
    """Return whether a server replies to a command that is not encrypted."""
    try:
        with socket.create_connection((host, port), _HANDSHAKE_SECONDS) as plain:
            plain.sendall(b"PING\r\n")
            # A server that requires a password replies with an error.
            return plain.recv(1) in (b"+", b"-")
    except OSError:
        return False


def _once_arguments(write: Write | None) -> list[Any]:
    """Return the arguments that keep a write from happening twice, or too late.

    There are always five, in this order: redis.lua reads them as `once_key` to `fence_generation`.
    Those that a write does not have are None. `write` is None for a verb that only reads.
    """
    key = None
    fingerprint = None
    key_lifetime_ms = None
    task = None
    generation = None
    if write is not None:
        key = write.key
        fingerprint = write.fingerprint
        key_lifetime_ms = write.key_lifetime_ms
        fence = write.once.fence
        if fence is not None:
            task = fence.task
            generation = fence.generation
    return [key, fingerprint, key_lifetime_ms, task, generation]


def _flatten(argument: Any) -> list[Any]:
    """Return an argument of a verb as arguments of the script.

    A list of tasks becomes id, body, id, body …, and a list of claims task, generation ….
    """
    if not isinstance(argument, list):
        return [argument]
    flat: list[Any] = []
    for pair in argument:
        flat += pair
    return flat


def _permanent_reason(error: Exception) -> str | None:
    """Return why using the server can never succeed. None if a later attempt may succeed."""
    text = str(error)
    for pattern, reason in _PERMANENT_REASONS.items():
        if re.search(pattern, text, re.IGNORECASE):
            return reason
    if isinstance(error, ssl.SSLError):
        return _UNREADABLE_CERTIFICATE
    return None


def _is_failure_of_command(error: Exception) -> bool:
    """Return whether the server has executed the command, and the command has failed.

    A server that is BUSY runs a slow script. It has not executed the command, and can be asked
    again.
    """
    return isinstance(error, exceptions.ResponseError) and not str(error).startswith("BUSY")


def _server_name(info: dict[str, Any]) -> str:
    """Return the kind and the version of the server. Valkey has both versions in its INFO."""
    if "valkey_version" in info:
        return f"Valkey {info['valkey_version']}"
    if "redis_version" in info:
        return f"Redis {info['redis_version']}"
    return "Redis or Valkey"


def _eviction_policy(info: dict[str, Any]) -> str:
    """Return what the server does if its memory is full. Without INFO, assume that it is safe."""
    return str(info.get("maxmemory_policy", "noeviction"))


def _eviction_problem(policy: str) -> str:
    return f"its maxmemory-policy {policy} may evict stored data"


_NO_APPEND_ONLY_FILE = (
    "it has no append-only file, so a crash loses everything since its last snapshot"
)  # fmt: skip
_NOT_FLUSHED = (
    "appendfsync is no, so a crash of the machine loses what the system has not yet written"
)  # fmt: skip


def _find_problems(info: dict[str, Any]) -> list[str]:
    """Return everything that could make the server lose data that it has acknowledged."""
    if not info:
        return ["this user may not run INFO, so it is not known whether the server keeps its data"]
    problems = []
    policy = _eviction_policy(info)
    if policy != "noeviction":
        problems.append(_eviction_problem(policy))
    if not info.get("aof_enabled"):
        problems.append(_NO_APPEND_ONLY_FILE)
    if info.get("appendfsync") == "no":
        problems.append(_NOT_FLUSHED)
    if info.get("aof_last_write_status", "ok") != "ok":
        problems.append("it could not write its append-only file")
    if info.get("role") in ("slave", "replica"):
        problems.append("it is a replica, so changes are refused or lost")
    return problems


def _temporary_reason(error: Exception) -> str:
    """Return why there was no reply, in our own words."""
    if isinstance(error, (exceptions.TimeoutError, TimeoutError)):
        return "it did not reply in time"
    return "no connection"
