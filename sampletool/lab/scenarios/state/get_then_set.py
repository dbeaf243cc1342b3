"""Which worker does the nightly run? The one that sees no mark in the store sets one, and does it.

The check and the set are two steps, and two find no mark. A time after which the mark ends by itself, which is what
everybody adds next, helps when its owner dies; it does nothing about two owners.

By name: `SET NX PX` on Redis (`SETNX` and `EXPIRE` are two steps again), a script in Lua for more than that, and
`INSERT ... ON CONFLICT DO NOTHING` in SQL.
"""

from collections.abc import Iterator
from pathlib import Path

from sampletool.kit.contract.errors import KeyNotFound, VersionConflict
from sampletool.lab.scenario import History, Scenario, Step, Way
from sampletool.lab.scenarios.state._stores import (
    LOCK,
    key,
    open_here,
    steps,
    with_reading_first,
    without_transaction,
    writes,
)

HOUR_MS = 3_600_000


def naive(worker: str) -> None:
    store = open_here()
    try:
        store.state_get(key("owner"))
    except KeyNotFound:
        store.state_set(key("owner"), worker)
        run(worker)


def with_an_end(worker: str) -> None:
    store = open_here()
    try:
        store.state_get(key("owner"))
    except KeyNotFound:
        store.state_set(key("owner"), worker, expires_ms=HOUR_MS)
        run(worker)


def fixed(worker: str) -> None:
    try:
        open_here().state_set(key("owner"), worker, if_version=0, expires_ms=HOUR_MS)
        run(worker)
    except VersionConflict:
        pass


def run(worker: str) -> None:
    Path(f"run-by-{worker}").touch()


def prepare(directory: Path) -> None:
    store = open_here(directory)
    store.state_set(key("another", directory), "")
    store.close()


def look(directory: Path) -> str:
    return " ".join(sorted(path.name[-1] for path in directory.glob("run-by-*"))) or "nobody"


def invariant(history: History) -> Iterator[str]:
    """The nightly run is run by one worker, never by two; and by one at the end."""
    if len(history.now.split()) > 1:
        yield f"the nightly run ran {len(history.now.split())} times."
    if history.is_over and history.now == "nobody":
        yield "nobody ran the nightly run."
    for letter, status in history.statuses.items():
        if status:
            yield f"{letter} failed instead of finding that there is nothing to do."


GET_SET = (
    *steps("get: no owner", sql="SELECT [*] FROM tool_state", verb="state_get"),
    *writes("set", verb="state_set"),
)

scenario = Scenario(
    title="Two who found that nobody owns it",
    rule="Set it only if it is not there, in one step, and look at what that step answered.",
    happened=(
        "A report on a registration service: it checks and then creates, so two quick requests for one person can make "
        "two.",
        "https://github.com/hackmcgill/hackerAPI/issues/461",
    ),
    question="Nobody owns the run. A gets, B gets, A sets, B sets. How often does it run?",
    shared="who ran it",
    needs_store=True,
    prepare=prepare,
    look=look,
    invariant=invariant,
    ways={
        "naive": Way(
            says="get the owner; if there is none, set it",
            program=naive,
            steps=GET_SET,
            shows="A1 B1 A2 B2",
            because="B set what it had found unset before A set it.",
        ),
        "wrong-expiry": Way(
            says="the same, with a mark that ends by itself after an hour",
            program=with_an_end,
            steps=GET_SET,
            shows="A1 B1 A2 B2",
            because="when a mark ends does not change who may set it.",
        ),
        "fixed": Way(
            says="tool state set --if-version 0 --expires 1h: only if there is none",
            program=fixed,
            steps=(
                LOCK,
                Step("compare", "sql", "state.db", statement="WITH CLOCK"),
                Step("set", "sql", "state.db", statement="INSERT INTO tool_state"),
                *steps("commit", sql="COMMIT", verb="state_set"),
            ),
            shows="A1 B1",
            because="B's step found A's mark and was refused.",
        ),
    },
    mechanisms=(
        without_transaction("the nightly run ran 2 times"),
        with_reading_first("failed"),
    ),
    symbol="sampletool.state.sql_verbs:state_set",
    still_broken_by="an owner that is still at work when its mark ends: see zombie-worker.",
)
