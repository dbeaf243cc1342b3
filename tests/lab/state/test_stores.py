"""The scenarios that need a store, on a server."""

import os
from collections.abc import Iterator

import pytest

from sampletool.kit.testing.leaks import outlives_the_test
from sampletool.kit.testing.scale import SOAK
from sampletool.lab.scenario import FIXED, NAIVE, STORE_VARIABLE, module_of, scenario_names
from tests.lab.conftest import Lab
from tests.state.support.servers import NoServer, Server, run_directory

NEED_A_STORE = [name for name in scenario_names() if hasattr(module_of(name), "open_shared_store")]
TRIED = NEED_A_STORE if SOAK else ["double-claim"]


@pytest.fixture
def valkey(testrun_uid: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    try:
        # Other tests of the run may use the server as well.
        with outlives_the_test():
            server = Server("valkey", run_directory(testrun_uid, "valkey"))
    except NoServer as reason:
        pytest.skip(f"no valkey server: {reason}")
    # A database of its own: tests of the store empty theirs, which are numbered from 0.
    monkeypatch.setenv(STORE_VARIABLE, f"redis+unix://{server.running.socket}?db=62")
    yield
    server.leave()


def test_those_that_are_tried_are_some_of_them() -> None:
    assert set(TRIED) <= set(NEED_A_STORE)
    assert STORE_VARIABLE not in os.environ


@pytest.mark.parametrize("name", TRIED)
def test_on_a_server_the_naive_way_breaks_and_ours_holds_on_every_schedule(
    lab: Lab, name: str, valkey: None
) -> None:
    # Otherwise each worker of each run imports the driver, which takes most of its time.
    lab.fork_server.load("sampletool.state.redis")

    assert lab.explore(name, FIXED).reasons == {}
    assert lab.explore(name, NAIVE).broken
