"""The checkers of tasks accept what the store may do, and refuse everything else."""

from dataclasses import replace

import pytest

from tests.state.history.operation import Json, Operation
from tests.state.history.tasks import check_tasks
from tests.state.history.written import call

MAX_ATTEMPTS = 2
LONG = 60_000
"""Lease of a minute: it does not end within these histories."""


def added(begin: float = 0, end: float | None = 1, *, created: bool = True) -> Operation:
    names: list[Json] = ["t"] if created else []
    return call(begin, end, "add_tasks", "work", {"tasks": ["t"]}, {"created": names})


def claimed(
    begin: float,
    end: float | None,
    generation: int,
    *,
    lease_ms: int = LONG,
    attempts: int | None = None,
) -> Operation:
    facts: dict[str, Json] = {
        "task": "t",
        "generation": generation,
        "attempts": generation if attempts is None else attempts,
    }
    arguments: dict[str, Json] = {"lease_ms": lease_ms, "count": 1}
    return call(begin, end, "claim", "work", arguments, {"claimed": [facts]})


def used(
    verb: str, begin: float, end: float | None, generation: int, *, is_refused: bool = False
) -> Operation:
    arguments: dict[str, Json] = {"generation": generation}
    if verb == "renew":
        arguments["lease_ms"] = LONG
    if is_refused:
        return call(begin, end, verb, "t", arguments, refusal="LEASE_LOST")
    response: dict[str, Json] = {"effect": "updated", "value": 1, "replayed": False}
    return call(begin, end, verb, "t", arguments, response)


def replayed(begin: float, end: float, generation: int) -> Operation:
    """Return a write that was repeated after its connection broke: the store remembers it."""
    arguments: dict[str, Json] = {"generation": generation}
    return call(begin, end, "write", "t", arguments, {"value": 1, "replayed": True})


def listed(status: str, *, attempts: int = 1, effects: int = 0) -> Operation:
    facts: dict[str, Json] = {
        "task": "t",
        "status": status,
        "generation": attempts,
        "attempts": attempts,
        "effects": effects,
    }
    return call(900, 901, "list_tasks", "work", {}, {"tasks": [facts]})


def broken(*operations: Operation) -> set[str]:
    """Return the promises that this history breaks."""
    return {violation.promise for violation in check_tasks(operations, MAX_ATTEMPTS)}


def test_a_task_that_is_claimed_written_renewed_and_finished_keeps_every_promise() -> None:
    history = [
        added(),
        added(2, 3, created=False),
        claimed(4, 5, 1),
        used("write", 6, 7, 1),
        used("renew", 8, 9, 1),
        used("finish", 10, 11, 1),
        listed("done", effects=1),
    ]

    assert broken(*history) == set()


def test_a_task_is_created_once() -> None:
    done = [claimed(4, 5, 1), used("finish", 6, 7, 1), listed("done")]

    assert broken(added(0, 1), added(2, 3), *done) == {"added-once"}
    assert broken(added(0, None), added(2, 3), *done) == set()


def test_generations_grow_and_are_given_once() -> None:
    end = [used("finish", 100, 101, 2), listed("done", attempts=2)]

    assert "generations" in broken(added(), claimed(2, 3, 2), claimed(4, 5, 1), *end)
    assert "generations" in broken(added(), claimed(2, 3, 2), claimed(2, 4, 2), *end)


def test_generations_that_are_not_neighbors_are_compared_too() -> None:
    """The claim in the middle was at the same time as both others."""
    claims = [claimed(60, 70, 1, lease_ms=0), claimed(2, 65, 2), claimed(3, 50, 3)]

    violations = check_tasks([added(), *claims, listed("claimed")], MAX_ATTEMPTS)

    explanations = {violation.explanation for violation in violations}
    assert "t:3 was given before t:1" in explanations


def test_a_task_is_not_claimed_while_its_lease_is_live() -> None:
    end = [used("finish", 100, 101, 2), listed("done", attempts=2)]

    assert broken(added(), claimed(2, 3, 1), claimed(4, 5, 2), *end) == {"one-holder"}


def test_a_task_is_claimed_again_after_its_lease_has_ended() -> None:
    first = claimed(2, 3, 1, lease_ms=20)
    end = [used("finish", 100, 101, 2), listed("done", attempts=2)]

    assert broken(added(), first, claimed(30, 31, 2), *end) == set()
    assert broken(added(), first, claimed(4, 31, 2), *end) == set()
    assert broken(added(), first, claimed(4, 5, 2), *end) == {"one-holder"}


def test_a_renewal_makes_the_lease_longer() -> None:
    first = claimed(2, 3, 1, lease_ms=20)
    end = [used("finish", 100, 101, 2), listed("done", attempts=2)]

    renewed = used("renew", 4, 5, 1)

    assert broken(added(), first, renewed, claimed(30, 31, 2), *end) == {"one-holder"}


def test_a_renewal_without_a_response_leaves_open_how_long_the_lease_is() -> None:
    first = claimed(2, 3, 1)
    end = [used("finish", 100, 101, 2), listed("done", attempts=2)]

    assert broken(added(), first, used("renew", 4, None, 1), claimed(30, 31, 2), *end) == set()


@pytest.mark.parametrize("end_ms", [5, None])
def test_a_task_is_claimed_again_after_it_was_released(end_ms: float | None) -> None:
    """A release without a response may have happened."""
    released = used("release", 4, end_ms, 1)
    end = [used("finish", 100, 101, 2), listed("done", attempts=2)]

    assert broken(added(), claimed(2, 3, 1), released, claimed(6, 7, 2), *end) == set()


@pytest.mark.parametrize("verb", ["write", "renew", "finish", "release"])
def test_a_stale_claim_changes_nothing(verb: str) -> None:
    claims = [claimed(2, 3, 1, lease_ms=0), claimed(10, 11, 2)]
    end = [used("finish", 100, 101, 2), listed("done", attempts=2)]

    assert "stale-claims" in broken(added(), *claims, used(verb, 12, 13, 1), *end)
    refused = used(verb, 12, 13, 1, is_refused=True)
    assert broken(added(), *claims, refused, *end) == set()


def test_a_stale_claim_may_get_the_response_of_its_earlier_write_again() -> None:
    claims = [claimed(2, 3, 1, lease_ms=0), used("write", 4, 5, 1), claimed(10, 11, 2)]
    end = [used("finish", 100, 101, 2), listed("done", attempts=2, effects=1)]

    assert broken(added(), *claims, replayed(12, 13, 1), *end) == set()


def test_the_holder_may_get_the_response_of_its_write_again_after_it_finished_the_task() -> None:
    done = [claimed(2, 3, 1), used("write", 4, 5, 1), used("finish", 6, 7, 1)]

    assert broken(added(), *done, replayed(8, 9, 1), listed("done", effects=1)) == set()


def test_a_write_at_the_same_time_as_the_next_claim_may_still_succeed() -> None:
    claims = [claimed(2, 3, 1, lease_ms=0), claimed(10, 15, 2)]
    end = [used("finish", 100, 101, 2), listed("done", attempts=2, effects=1)]

    assert broken(added(), *claims, used("write", 12, 13, 1), *end) == set()


def test_a_claim_that_was_finished_or_released_changes_nothing_more() -> None:
    finished = [added(), claimed(2, 3, 1), used("finish", 4, 5, 1), listed("done", effects=1)]
    again = used("finish", 6, 7, 1)
    unchanged = call(6, 7, "finish", "t", {"generation": 1}, {"effect": "unchanged"})

    assert broken(*finished, used("write", 6, 7, 1)) == {"ended-claims"}
    assert "finished-once" in broken(*finished, again)
    assert "ended-claims" not in broken(*finished, unchanged)


def test_a_lease_that_has_ended_is_not_renewed() -> None:
    first = claimed(2, 3, 1, lease_ms=10)
    end = [used("finish", 100, 101, 1), listed("done")]

    assert broken(added(), first, used("renew", 30, 31, 1), *end) == {"renewals"}
    assert broken(added(), first, used("renew", 11, 12, 1), *end) == set()


def test_the_holder_of_a_live_claim_is_not_refused() -> None:
    first = claimed(2, 3, 1)
    refused = used("write", 4, 5, 1, is_refused=True)
    end = [used("finish", 100, 101, 1), listed("done")]

    assert broken(added(), first, refused, *end) == {"refusals"}


def test_each_claim_counts_as_an_attempt_up_to_the_limit() -> None:
    end = [used("finish", 100, 101, 1), listed("done")]

    assert broken(added(), claimed(2, 3, 1, attempts=0), *end) == {"attempts"}
    too_many = [claimed(10 * number, 10 * number + 1, number, lease_ms=0) for number in (1, 2, 3)]
    assert "attempts" in broken(added(), *too_many, listed("failed", attempts=3))


def test_each_task_is_done_or_failed_in_the_end() -> None:
    claims = [claimed(10, 11, 1, lease_ms=0), claimed(20, 21, 2, lease_ms=0)]

    assert broken(added(), *claims, listed("failed", attempts=2)) == set()
    assert broken(added(), *claims[:1], listed("failed", attempts=1)) == {"drain"}
    assert broken(added(), *claims, listed("expired", attempts=2)) == {"drain"}
    assert broken(added(), *claims, listed("done", attempts=2)) == {"drain"}


def test_an_acknowledged_task_must_not_disappear() -> None:
    nothing = call(900, 901, "list_tasks", "work", {}, {"tasks": []})

    assert broken(added(), nothing) == {"drain"}
    assert broken(added(0, None), nothing) == set()


def test_a_history_without_a_list_of_the_tasks_is_not_drained() -> None:
    assert broken(added(), claimed(2, 3, 1), used("finish", 4, 5, 1)) == {"drain"}


def test_a_task_that_was_finished_must_not_fail_or_be_claimed_again() -> None:
    finished = [added(), claimed(2, 3, 1), used("finish", 4, 5, 1)]

    assert broken(*finished, listed("failed", attempts=2)) == {"drain"}
    again = claimed(6, 7, 2)
    assert broken(*finished, again, listed("done", attempts=2)) == {"finished-once"}


def test_a_finish_without_a_response_may_have_happened() -> None:
    maybe = [added(), claimed(2, 3, 1, lease_ms=0), used("finish", 4, None, 1)]

    assert broken(*maybe, listed("done")) == set()
    second = claimed(20, 21, 2, lease_ms=0)
    assert broken(*maybe, second, listed("failed", attempts=2)) == set()


def test_a_fenced_write_happens_once() -> None:
    start = [added(), claimed(2, 3, 1)]
    end = [used("finish", 100, 101, 1)]
    write = used("write", 4, 5, 1)
    maybe = used("write", 4, None, 1)

    assert broken(*start, write, *end, listed("done", effects=1)) == set()
    assert broken(*start, write, *end, listed("done", effects=2)) == {"effects"}
    assert broken(*start, write, *end, listed("done", effects=0)) == {"effects"}
    assert broken(*start, maybe, *end, listed("done", effects=1)) == set()
    assert broken(*start, maybe, *end, listed("done", effects=0)) == set()
    assert broken(*start, *end, listed("done", effects=1)) == {"effects"}
    second = replace(write, response={"value": 2, "replayed": False})
    assert broken(*start, second, *end, listed("done", effects=1)) == {"effects"}


def test_a_violation_shows_all_calls_that_prove_it() -> None:
    history = [
        added(),
        claimed(2, 3, 1, lease_ms=0),
        claimed(10, 11, 2),
        used("write", 12, 13, 1),
        used("finish", 100, 101, 2),
        listed("done", attempts=2, effects=1),
    ]

    (violation,) = check_tasks(history, MAX_ATTEMPTS)

    assert violation.explanation == "write t:1 succeeded after t:2 was given"
    assert violation.operations == (history[1], history[2], history[3])


def test_a_violation_shows_its_calls_in_the_order_in_which_they_began() -> None:
    history = [
        added(),
        claimed(2, 3, 1),
        claimed(4, 5, 2),
        used("finish", 100, 101, 2),
        listed("done", attempts=2),
    ]

    (violation,) = check_tasks(history, MAX_ATTEMPTS)

    first, second, third = str(violation).splitlines()
    assert first == "one-holder: t:2 was given while t:1 was live"
    assert second.startswith("       0.00 to      1.00 ms  ann     claim work (lease_ms 60000")
    assert third.startswith("       2.00 to      3.00 ms  ann     claim work (lease_ms 60000")
