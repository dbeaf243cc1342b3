"""sampletool/state/update.py, on every backend."""

import json
from typing import Any

from sampletool.kit.contract.errors import VersionConflict
from sampletool.state.store import Store
from sampletool.state.update import update
from tests.state.support.outcomes import raises


def test_update_tries_again_when_another_write_came_between(store: Store) -> None:
    store.state_set("key", 1)
    others = iter([10, 20])

    def change(value: Any) -> Any:
        for other in others:
            store.state_set("key", other)
            break
        return value + 1

    written = update(store, "key", change)

    assert store.state_get("key").value == 21
    assert written.version == store.state_get("key").version


def test_update_gives_up_with_the_conflict(store: Store) -> None:
    def change(_value: Any) -> Any:
        store.state_set("key", json.dumps(store.state_list("", "", 1) != []))
        return "never"

    with raises(VersionConflict):
        update(store, "key", change, attempts=3)
