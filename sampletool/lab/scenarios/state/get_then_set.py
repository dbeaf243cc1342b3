"""Which worker does the nightly run? The one that sees no mark in the store sets one, and does it.

The check and the set are two steps, and two find no mark. A time after which the mark ends by itself, which is what
everybody adds next, helps when its owner dies; it does nothing about two owners.

By name: `SET NX PX` on Redis (`SETNX` and `EXPIRE` are two steps again), a script in Lua for more than that, and
`INSERT ... ON CONFLICT DO NOTHING` in SQL.
"""

from ....kit.contract.errors import VersionConflict
from ...scenario import Scenario, Way
from ._one_job import do_it, invariant, look
from ._stores import has, key, open_here, prepare, steps, transaction, unprotected, writes

__all__ = ["invariant", "look", "prepare"]

HOUR_MS = 3_600_000


def naive(worker: str) -> None:
    store = open_here()
    if not has(store, "owner"):
        store.state_set(key("owner"), worker)
        do_it(worker)


def wrong_expiry(worker: str) -> None:
    store = open_here()
    if not has(store, "owner"):
        store.state_set(key("owner"), worker, expires_ms=HOUR_MS)
        do_it(worker)


def fixed(worker: str) -> None:
    try:
        open_here().state_set(key("owner"), worker, if_version=0, expires_ms=HOUR_MS)
        do_it(worker)
    except VersionConflict:
        pass


scenario = Scenario(
    title="Two who found that nobody owns it",
    rule="Set it only if it is not there, in one step, and look at what that step answered.",
    happened=(
        "A report on a registration service: it checks and then creates, so two quick requests for one person can make "
        "two.",
        "https://github.com/hackmcgill/hackerAPI/issues/461",
    ),
    question="Nobody owns the run. A gets, B gets, A sets, B sets. How often does it run?",
    shared="who did it",
    ways={
        "naive": Way(
            says="get the owner; if there is none, set it",
            because="B set what it had found unset before A set it.",
        ),
        "wrong-expiry": Way(
            says="the same, with a mark that ends by itself after an hour",
            because="when a mark ends does not change who may set it.",
        ),
        "fixed": Way(
            says="tool state set --if-version 0 --expires 1h: only if there is none",
            steps=transaction("state_set", {"compare": "WITH CLOCK", "set": "INSERT INTO tool_state"}),
            shows="A1 B1",
            because="B's step found A's mark and was refused.",
        ),
    },
    steps=(
        *steps("get: no owner", sql="SELECT key, value, version, expires_at FROM tool_state", verb="state_get"),
        *writes("set", verb="state_set"),
    ),
    mechanisms=unprotected("the one job was done by A and B", "failed"),
    symbol="sampletool.state.sql_verbs:state_set",
    still_broken_by="an owner that is still at work when its mark ends: see zombie-worker.",
)
