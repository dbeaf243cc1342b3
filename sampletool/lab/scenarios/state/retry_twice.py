"""The order was booked, and the answer was lost on its way. The caller does what every caller does: it tries again.

Now it is booked twice. Nobody can tell from outside whether a call that did not answer was done; so the second try has
to be recognised as such, by a name that the caller gave it. Remembering the name in a step of its own is not enough.
"""

import os
from pathlib import Path

from ....state.protocol import Once
from ...scenario import Removal, Scenario, Step, Way
from ._orders import BOOKED_ONCE, invariant, look
from ._stores import has, key, open_here, prepare, steps, writes

__all__ = ["invariant", "look", "prepare"]


def naive(worker: str) -> None:
    if needs_to_try(worker):
        open_here().counter_add(key("orders"), 1)
        reply()


def wrong_remember_afterwards(worker: str) -> None:
    if needs_to_try(worker):
        store = open_here()
        if not has(store, "order-17"):
            store.counter_add(key("orders"), 1)
            store.state_set(key("order-17"), "booked")
        reply()


def fixed(worker: str) -> None:
    if needs_to_try(worker):
        open_here().counter_add(key("orders"), 1, Once(key=key("order-17")))
        reply()


def needs_to_try(worker: str) -> bool:
    """B is the caller's second try: only if no reply has come."""
    return "reply" not in os.listdir(".")


def reply() -> None:
    Path("reply").touch()


scenario = Scenario(
    title="The reply was lost, so the caller tried again",
    rule="A second try must be able to find the first: keep its key in the same commit as its effect.",
    happened=(
        "Every payment interface has learned it: Stripe's answer, a key that the caller chooses and that is kept with "
        "the result, has become the common one.",
        "https://stripe.com/blog/idempotency",
    ),
    question="A is killed somewhere between beginning and replying; the caller tries again as B. How many are booked?",
    shared="booked",
    strikes="!",
    in_turn=True,
    ways={
        "naive": Way(
            says="book it, then reply",
            shows="A1 A2 A3 A!",
            because="A was killed after its commit and before its reply, so B booked it again.",
        ),
        "wrong-remember-afterwards": Way(
            says="book it, then write down that order 17 is booked",
            shows="A1 A2 A3 A!",
            because="booked and remembered were two commits, and A was killed between them.",
        ),
        "fixed": Way(
            says="tool counter add --idempotency-key: booked and remembered in one commit",
            shows="A1 A2 A3 A!",
            because="B found what A had been answered, and changed nothing.",
        ),
    },
    steps=(
        Step("any reply?", "os.listdir", "here"),
        Step("book", "sql", "state.db", statement="INSERT INTO tool_counters"),
        *steps("commit", sql="COMMIT", verb="counter_add"),
        *writes("remember", verb="state_set", after=("commit",)),
        Step("reply", "open", "reply", kind="write"),
    ),
    mechanisms=(
        *BOOKED_ONCE,
        Removal(
            "state/sql.py:SqlStore.write",
            says="remembering the key in a commit of its own",
            pattern="""\
def body(db: Session) -> Reply:
    ...
    if write.key is not None:
        _remember(db, write, data)
    return Reply(data)

return self.transact(body, write)
""",
            instead="""\
def body(db: Session) -> Reply:
    ...
    return Reply(data)

reply = self.transact(body, write)
if write.key is not None:
    self.transact(lambda db: _remember(db, write, reply.data))
return reply
""",
            breaks="one order was made, and 2 are booked",
        ),
        Removal(
            "state/sql.py:SqlStore.write",
            says="not asking for the key",
            pattern="remembered = _find_result(db, write)",
            instead="remembered = None",
            breaks="one order was made, and 2 are booked",
        ),
    ),
    symbol="sampletool.state.sql:SqlStore.write",
    still_broken_by="an effect outside of the store, such as a mail: it cannot be in the same commit.",
)
