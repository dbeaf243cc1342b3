"""The connection of a PostgreSQL store: opened, brought to today's schema, kept within deadlines, opened again.

A verb is one transaction. If the connection is lost before COMMIT was sent, nothing happened, and the verb is done
again on a new one; after that only if repeating it is harmless, because nobody knows. While the driver waits it
looks for signals, and cancels on the server what it no longer waits for.
"""

import os
import time
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import psycopg
from psycopg import errors as said
from psycopg.conninfo import conninfo_to_dict

from sampletool.contract import errors
from sampletool.contract.lock_held import LockHeld
from sampletool.contract.redaction import redact
from sampletool.safety.signals import Signals
from sampletool.state.terms import Terms
from sampletool.state.values import shown_url

T = TypeVar("T")

ADVISORY = 0x746F6F6C
"""The first half of our advisory locks, to keep them apart from other people's."""
_GRACE_SECONDS = 0.5
"""The server is asked to give up a little before the driver does, so that its own reason is heard."""
_PAUSE_SECONDS = 0.05
_REFUSED = ("authentication failed", "no password supplied", "no pg_hba.conf entry", "role ")


class Link(psycopg.Connection[Any]):
    """A connection that keeps a deadline and notices signals."""

    signals: Signals
    give_up_at: float

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        left = max(0.01, self.give_up_at - time.monotonic())
        return super().wait(self._watched(gen), interval, left if timeout is None else min(left, timeout))

    def _watched(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        is_cancelled = False
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not is_cancelled and self.signals.is_over():
                    is_cancelled = True
                    self.cancel_safe(timeout=_GRACE_SECONDS)
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value


class PostgresLink:
    """`steps` is the schema, as what leads to it; the store remembers how many steps it has been through."""

    def __init__(self, url: str, terms: Terms, steps: tuple[str, ...]) -> None:
        self.shown = shown_url(url)
        self._url = url
        self._terms = terms
        self._steps = steps
        self._link: Link | None = None
        self._pid = os.getpid()
        try:
            conninfo_to_dict(url)
        except psycopg.Error:
            raise errors.InvalidValues(
                errors.Mistake("--store", "INVALID_VALUE", f"{self.shown} is not the URL of a PostgreSQL server")
            ) from None

    def run(self, body: Callable[[Link], T], *, may_repeat: bool) -> T:
        """One transaction: committed when the body has ended, undone if it raises."""
        deadline = time.monotonic() + self._terms.answer_seconds() + _GRACE_SECONDS
        while True:
            self._terms.signals.check()
            is_certain = True
            try:
                link = self._connected(deadline)
                answer = body(link)
                if not self._terms.rehearse:
                    is_certain = False
                    link.commit()
                return answer
            except psycopg.Error as error:
                is_lost = self._is_lost()
                is_certain = is_certain or not is_lost
                is_passing = is_lost or isinstance(error, (said.DeadlockDetected, said.SerializationFailure))
                if not (is_passing and (is_certain or may_repeat)) or time.monotonic() >= deadline or _is_final(error):
                    raise self._our_error(error, is_outcome_unknown=not is_certain and not may_repeat) from None
                self._terms.signals.wait(_PAUSE_SECONDS)
            finally:
                self._leave()

    def close(self) -> None:
        if self._link is not None and self._pid == os.getpid():
            self._link.close()
        self._link = None

    def _connected(self, deadline: float) -> Link:
        if self._pid != os.getpid():
            self._link, self._pid = None, os.getpid()
        if self._link is None or self._link.closed:
            seconds = max(2, round(deadline - time.monotonic()))
            link = Link.connect(self._url, connect_timeout=seconds, application_name="sampletool")
            link.signals, link.give_up_at = self._terms.signals, deadline
            self._link = link
            self._prepare(link)
        self._link.give_up_at = deadline
        return self._link

    def _prepare(self, link: Link) -> None:
        lock_ms = max(1, round(self._terms.seconds() * 1000))
        answer_ms = max(1, round(self._terms.answer_seconds() * 1000))
        link.execute(
            "SELECT set_config('lock_timeout', %s, false), set_config('statement_timeout', %s, false)",
            (f"{lock_ms}ms", f"{answer_ms}ms"),
        )
        if not self._terms.rehearse:
            link.commit()
        if self._version(link) == len(self._steps):
            return
        link.execute("SELECT pg_advisory_xact_lock(%s, 0)", (ADVISORY,))
        for step in self._steps[self._version(link) :]:
            link.execute(step)
        link.execute("UPDATE tool_store SET version = %s", (len(self._steps),))
        if not self._terms.rehearse:
            link.commit()

    def _version(self, link: Link) -> int:
        """Whoever waited for the lock of the schema looks again, and finds it done."""
        if link.execute("SELECT to_regclass('tool_store')").fetchone() == (None,):
            return 0
        found = link.execute("SELECT version FROM tool_store").fetchone()
        version = int(found[0]) if found else 0
        if version > len(self._steps):
            raise errors.StateTooNew(self.shown, version, len(self._steps))
        return version

    def _is_lost(self) -> bool:
        return self._link is None or self._link.closed or self._link.broken

    def _leave(self) -> None:
        """Out of the transaction, whatever happened in it. A rehearsal stays in its one until it is closed."""
        link = self._link
        if link is None or link.closed:
            return
        status = link.info.transaction_status
        if status == psycopg.pq.TransactionStatus.IDLE or (
            self._terms.rehearse and status == psycopg.pq.TransactionStatus.INTRANS
        ):
            return
        try:
            link.rollback()
        except psycopg.Error:
            link.close()

    def _our_error(self, error: psycopg.Error, *, is_outcome_unknown: bool) -> errors.ToolError:
        self._terms.signals.check()
        text = redact(str(error).partition("\n")[0])
        if isinstance(error, (said.LockNotAvailable, said.DeadlockDetected)):
            waited_ms = round(self._terms.seconds() * 1000)
            return LockHeld(
                f"store {self.shown}", [], shared=False, waited_ms=waited_ms, timeout_ms=waited_ms, usual_ms=None
            )
        if isinstance(error, said.InsufficientPrivilege):
            return errors.PermissionDenied(self.shown, text)
        if isinstance(error, said.ReadOnlySqlTransaction):
            return errors.ReadOnly(self.shown)
        if isinstance(error, said.DiskFull):
            return errors.NoSpace(self.shown)
        if _is_final(error):
            return errors.StoreAuthFailed(self.shown, "the user or password is not accepted")
        if isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
            reason = "it did not answer in time" if "timeout" in text else text.rstrip(".") or "no connection"
            return errors.StoreUnavailable(self.shown, reason, is_outcome_unknown=is_outcome_unknown)
        return errors.IoFailure(self.shown, text)


def _is_final(error: psycopg.Error) -> bool:
    """Whether the server knows us and does not want us. A failed connection carries no code, only a text."""
    pgconn = error.pgconn
    if pgconn is None or pgconn.status != psycopg.pq.ConnStatus.BAD or error.sqlstate:
        return False
    return pgconn.needs_password or any(word in str(error) for word in _REFUSED)
