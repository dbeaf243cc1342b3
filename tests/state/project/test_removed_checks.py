"""The history checker finds faults: without one of its checks, each store breaks a promise.

Nothing arranges the schedule. The clients run until the fault shows, mostly in the first round.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.state.history.check import check
from tests.state.history.recording import Plan
from tests.state.history.round import record_in
from tests.state.project.removed_checks import RemovedCheck, read_removed_checks
from tests.state.support.stores import Backend, SharedBackend

MOST_ROUNDS = 20
DRAIN_SECONDS = 3
"""Long enough for the leases of the clients, which last up to 0.4 s.

A broken store may claim the same tasks forever. What the drain leaves open breaks only the promise
"drain", which is no promise of the list.
"""
REMOVED_CHECKS = [
    pytest.param(backend, removed, id=f"{backend}: {removed.name}")
    for removed in read_removed_checks()
    for backend in removed.backends
]


@pytest.mark.parametrize(("kind", "removed"), REMOVED_CHECKS)
def test_the_checker_refuses_a_store_without(
    kind: str, removed: RemovedCheck, make_backend: Callable[[str], Backend], tmp_path: Path
) -> None:
    backend = make_backend(kind)
    assert isinstance(backend, SharedBackend)
    tree = tmp_path / "tree"
    removed.remove(tree)
    broken: set[str] = set()

    for seed in range(MOST_ROUNDS):
        plan = Plan(
            seed=seed,
            clients=3,
            calls=80,
            kills=0,
            drain_seconds=DRAIN_SECONDS,
            round_name=f"r{seed}",
        )
        directory = tmp_path / plan.round_name
        directory.mkdir()
        verdict = check(record_in(tree, backend.url, directory, plan))
        broken |= {violation.promise for violation in verdict.violations}
        if removed.refused_by in broken:
            break

    assert removed.refused_by in broken
