"""A verdict covers every value, every counter and every task of a history, each on its own."""

from dataclasses import replace

from tests.state.history.check import check, merge_repetitions
from tests.state.history.operation import Operation
from tests.state.history.written import MS, add, call, count, get, put


def listing() -> Operation:
    return call(900, 901, "list_tasks", "work", {}, {"tasks": []})


def test_a_right_history_has_no_violations() -> None:
    verdict = check([put(0, 1, "red", 1), add(2, 3, 1), add(4, None), count(5, 6, 2), listing()])

    assert verdict.violations == ()
    assert (verdict.operations, verdict.maybe) == (5, 1)
    assert (verdict.values, verdict.counters) == (1, 1)


def test_each_key_is_judged_on_its_own() -> None:
    other = replace(get(4, 5, "blue", 1), target="size")

    verdict = check([put(0, 1, "red", 1), get(2, 3, "red", 1), other, listing()])

    (violation,) = verdict.violations
    assert violation.promise == "linearizable"
    assert violation.explanation.startswith("size is not linearizable.")


def test_a_key_that_takes_too_long_is_unknown_and_not_a_violation() -> None:
    killed = [add(0, None, amount=1 << number) for number in range(12)]

    verdict = check([*killed, count(1, 2, -1), listing()], most_places=100)

    assert verdict.violations == ()
    assert verdict.unknown == ("hits",)


def test_calls_with_one_idempotency_key_are_one_call() -> None:
    """It began with the first of them, and had happened when the first response came."""
    killed = add(0, None, key="k")
    repeated = [add(5, 6, 1, key="k"), add(7, 8, 1, key="k")]

    (merged,), contradictions = merge_repetitions([killed, *repeated])

    assert (merged.invoked_ns, merged.responded_ns) == (0, 6 * MS)
    assert merged.response == {"value": 1}
    assert contradictions == []


def test_calls_with_one_idempotency_key_must_return_the_same_result() -> None:
    verdict = check([add(0, 1, 1, key="k"), add(2, 3, 2, key="k"), listing()])

    assert [violation.promise for violation in verdict.violations] == ["repetitions"]


def test_calls_with_one_idempotency_key_must_not_have_two_effects() -> None:
    verdict = check([add(0, 1, 1, key="k"), add(2, 3, 1, key="k"), count(4, 5, 2), listing()])

    assert [violation.promise for violation in verdict.violations] == ["linearizable"]
