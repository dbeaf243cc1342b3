"""sampletool/state/memory.py: what the in-process store promises beside its verbs."""

import asyncio

from sampletool.kit.contract.errors import KeyNotFound
from sampletool.state.memory import _CHANGING_VERBS, _READING_VERBS, MemoryStore
from sampletool.state.protocol import NewTask, Once
from sampletool.state.store import Store
from tests.state.support.outcomes import raises


def test_the_journal_gets_every_change_before_it_is_made() -> None:
    journal_lines: list[tuple[str, str, int]] = []

    async def journal(verb: str, name: str) -> None:
        journal_lines.append((verb, name, await store.counter_get("hits")))

    store = MemoryStore(journal)

    async def call() -> None:
        await store.counter_add(name="hits", amount=1, once=Once("k"))
        await store.counter_add(name="hits", amount=1, once=Once("k"))
        await store.counter_get("hits")
        await store.counter_add("hits", 1)

    asyncio.run(call())

    assert journal_lines == [("counter_add", "hits", 0), ("counter_add", "hits", 1)]


def test_what_the_journal_refuses_has_not_happened() -> None:
    async def full(_verb: str, _name: str) -> None:
        raise OSError("no space")

    store = MemoryStore(full)

    async def call() -> None:
        for change in (
            store.state_set("key", 1, once=Once("k")),
            store.task_add("work", [NewTask(1, "a")]),
        ):
            with raises(OSError, match="no space"):
                await change
        assert await store.task_left("work") == 0
        with raises(KeyNotFound):
            await store.state_get("key")

    asyncio.run(call())


def test_what_is_no_verb_is_no_member() -> None:
    assert not hasattr(MemoryStore(), "counter_ad")


def test_it_offers_every_verb_of_a_store() -> None:
    verbs = {name for name in vars(Store) if not name.startswith("_")}

    # These are for a backend. A program calls the verbs.
    verbs -= {"read", "write", "close"}

    assert {*_READING_VERBS, *_CHANGING_VERBS} == verbs
