"""An agent reads a value, thinks about it for a minute, and writes back what it made of it.

No lock can be held for as long as a person thinks. Meanwhile another caller has changed the value, and that change is
written over without anybody having seen it. Reading once more just before writing only makes the gap smaller.
"""

from collections.abc import Iterator
from pathlib import Path

from ....state.update import update
from ...scenario import History, Removal, Scenario, Way
from ._stores import key, open_here, steps, store_in, writes


def naive(worker: str) -> None:
    store = open_here()
    text = store.state_get(key("text")).value
    store.state_set(key("text"), edited(text, worker))


def wrong_read_again(worker: str) -> None:
    store = open_here()
    text = store.state_get(key("text")).value
    while (now := store.state_get(key("text")).value) != text:
        text = now
    store.state_set(key("text"), edited(text, worker))


def fixed(worker: str) -> None:
    update(open_here(), key("text"), lambda text: edited(text, worker))


def edited(text: str, worker: str) -> str:
    return f"{text} +{worker}"


def prepare(directory: Path) -> None:
    with store_in(directory) as store:
        store.state_set(key("text", directory), "draft")


def look(directory: Path) -> str:
    with store_in(directory) as store:
        return str(store.state_get(key("text", directory)).value)


def invariant(history: History) -> Iterator[str]:
    """A change is in the text from the moment when its worker is answered that it was accepted."""
    for letter in history.served:
        if history.now.split().count(f"+{letter}") != 1:
            yield f"{letter}'s change was accepted, and is not in the text."
    for letter in history.letters:
        if history.is_over and letter not in history.served:
            yield f"{letter} could not make its change."


scenario = Scenario(
    title="Read, thought about, written back over another change",
    rule="Say which version you read, and write only over that one; if it has changed, read again.",
    happened=(
        "hermes-agent wrote its files atomically and still lost changes: each write was whole, and each was made from "
        "what had been read too early.",
        "https://github.com/NousResearch/hermes-agent/issues/18795",
    ),
    question="A reads and thinks. B reads, thinks and writes. Now A writes. What has become of B's change?",
    shared="text",
    private=("text",),
    ways={
        "naive": Way(
            says="read, think, write",
            shows="A1 B1 B2 A2",
            because="A wrote what it had made of the text without B's change.",
        ),
        "wrong-read-again": Way(
            says="read once more just before writing, and start again if it has changed",
            shows="A1 A2 B1 B2 B3 A3",
            because="between the last look and the write there is still a gap.",
        ),
        "fixed": Way(
            says="tool state set --if-version: refused if another write came between, then read again",
            shows="A1 B1 B2 A2 A3 A4",
            because="A's first write was refused, since the version was not the one it had read; its second one was "
            "made from B's text.",
        ),
    },
    steps=(
        *steps("read", sql="SELECT key, value, version, expires_at FROM tool_state", verb="state_get"),
        *writes("write", verb="state_set"),
    ),
    mechanisms=(
        Removal(
            "state/sql_verbs.py:_lock_value",
            says="not comparing the version",
            pattern="if_version is not None and if_version != version",
            instead="if_version is None and version < 0",
            breaks="change was accepted, and is not in the text",
        ),
        Removal(
            "state/update.py:update",
            says="not saying which version was read",
            pattern="store.state_set(key, change(value), if_version=version)",
            instead="store.state_set(key, change(value))",
            breaks="change was accepted, and is not in the text",
        ),
        Removal(
            "state/update.py:update",
            says="not trying again",
            pattern="attempt == attempts - 1",
            instead="attempt < attempts",
            breaks="could not make its change",
        ),
    ),
    symbol="sampletool.state.update:update",
    still_broken_by="a change that cannot be made again, because it has had an effect outside: see retry-twice.",
)
