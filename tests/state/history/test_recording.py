"""Random clients, some of which are killed with kill -9, break no promise on any backend."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sampletool.kit.project import ROOT
from sampletool.kit.testing.scale import scale
from tests.state.history.check import check
from tests.state.history.recording import Plan
from tests.state.history.round import record_in
from tests.state.support.stores import Backend, SharedBackend

SEED = 24
KILLS = 4


@pytest.mark.timeout(scale(110, 3600))
def test_random_clients_that_are_killed_break_no_promise(
    shared: SharedBackend, tmp_path: Path
) -> None:
    for number in range(scale(1, 50)):
        plan = Plan(seed=SEED + number, kills=KILLS, round_name=f"r{number}")
        directory = tmp_path / plan.round_name
        directory.mkdir()
        # Shown if the test fails.
        print(f"seed {plan.seed}, logs in {directory}")

        history = record_in(ROOT, shared.url, directory, plan)

        verdict = check(history)
        assert not verdict.violations, str(verdict)
        assert verdict.unknown == ()
        # The history is worth checking: every kind of call is in it, and some were refused.
        assert verdict.operations > 400
        assert {"set", "unset", "add", "claim", "write", "finish"} < {op.verb for op in history}
        assert {"VERSION_CONFLICT", "LEASE_LOST"} <= {op.refusal for op in history}
        assert len({op.client for op in history}) == plan.clients + KILLS + 1


def test_a_client_that_is_killed_in_a_call_leaves_a_call_that_may_have_happened(
    make_backend: Callable[[str], Backend], tmp_path: Path
) -> None:
    backend = make_backend("sqlite")
    assert isinstance(backend, SharedBackend)
    directory = tmp_path / "logs"
    directory.mkdir()

    history = record_in(ROOT, backend.url, directory, Plan(seed=SEED, clients=1, kills=8))

    maybe = [operation for operation in history if operation.may_have_happened]
    assert 1 <= len(maybe) <= 8
