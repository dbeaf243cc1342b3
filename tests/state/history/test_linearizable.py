"""The search accepts every history that some order explains, and refuses all others."""

from collections.abc import Sequence
from itertools import combinations, permutations

from hypothesis import given
from hypothesis import strategies as st

from tests.state.history.linearizable import (
    Impossible,
    Linearizable,
    NotLinearizable,
    Unknown,
    find_order,
)
from tests.state.history.models import CounterModel, ValueModel
from tests.state.history.operation import Operation
from tests.state.history.written import (
    add,
    conflict,
    count,
    get,
    get_nothing,
    put,
    unset,
)


def is_right(*operations: Operation) -> bool:
    return isinstance(find_order(ValueModel(), operations), Linearizable)


def is_right_counter(*operations: Operation) -> bool:
    return isinstance(find_order(CounterModel(), operations), Linearizable)


def test_calls_one_after_the_other_return_what_was_written() -> None:
    assert is_right(
        get_nothing(0, 1),
        put(2, 3, "red", 1),
        get(4, 5, "red", 1),
        put(6, 7, "blue", 2, if_version=1),
        conflict(8, 9, if_version=1, actual=2),
        unset(10, 11, 2),
        get_nothing(12, 13),
        unset(14, 15, 0),
        put(16, 17, "green", 3, if_version=0),
    )


def test_a_read_during_a_set_may_see_the_old_or_the_new_value() -> None:
    old, running = put(0, 1, "red", 1), put(2, 9, "blue", 2)

    assert is_right(old, running, get(3, 4, "red", 1))
    assert is_right(old, running, get(3, 4, "blue", 2))


def test_a_read_after_a_set_must_not_see_the_old_value() -> None:
    assert not is_right(put(0, 1, "red", 1), put(2, 3, "blue", 2), get(4, 5, "red", 1))


def test_a_new_value_that_was_seen_must_not_disappear_again() -> None:
    """The `set` still runs, so each read alone would be right."""
    old, running = put(0, 1, "red", 1), put(2, 9, "blue", 2)

    assert not is_right(old, running, get(3, 4, "blue", 2), get(5, 6, "red", 1))


def test_two_sets_must_not_both_replace_the_same_version() -> None:
    old = put(0, 1, "red", 1)
    first = put(2, 5, "blue", 2, if_version=1)

    assert not is_right(old, first, put(3, 6, "green", 3, if_version=1))
    assert is_right(old, first, conflict(3, 6, if_version=1, actual=2))


def test_a_set_must_not_be_refused_over_the_version_that_it_expected() -> None:
    assert not is_right(put(0, 1, "red", 1), conflict(2, 3, if_version=1, actual=1))


def test_a_version_must_not_be_used_twice_even_after_unset() -> None:
    removed = [put(0, 1, "red", 1), unset(2, 3, 1)]

    assert not is_right(*removed, put(4, 5, "blue", 1))
    assert is_right(*removed, put(4, 5, "blue", 7))


def test_unset_must_return_the_version_that_it_removed() -> None:
    assert not is_right(put(0, 1, "red", 3), unset(2, 3, 2))
    assert not is_right(put(0, 1, "red", 3), unset(2, 3, 0))
    assert is_right(put(0, 1, "red", 3), unset(2, 3, 3), unset(4, 5, 0))


def test_a_value_that_nobody_wrote_is_refused() -> None:
    assert not is_right(put(0, 1, "red", 1), get(2, 3, "blue", 1))


def test_a_killed_set_may_have_happened_or_not() -> None:
    old, killed = put(0, 1, "red", 1), put(2, None, "blue")

    assert is_right(old, killed, get(3, 4, "red", 1))
    assert is_right(old, killed, get(3, 4, "blue", 2))
    assert is_right(old, killed, put(3, 4, "green", 2))
    assert is_right(old, killed, put(3, 4, "green", 3))


def test_a_killed_set_may_happen_long_after_its_caller_was_killed() -> None:
    """The server may still have the request in its queue."""
    assert is_right(
        put(0, 1, "red", 1), put(2, None, "blue"), get(3, 4, "red", 1), get(5, 6, "blue", 2)
    )


def test_a_killed_set_must_not_happen_twice() -> None:
    assert not is_right(
        put(0, None, "blue"), put(2, 3, "red", 5), get(4, 5, "blue", 6), put(6, 7, "red", 7),
        get(8, 9, "blue", 8),
    )  # fmt: skip


def test_a_killed_set_must_not_happen_before_it_began() -> None:
    assert not is_right(get(0, 1, "blue", 1), put(2, None, "blue"))


def test_a_killed_set_happens_only_over_the_version_that_it_expected() -> None:
    old = [put(0, 1, "red", 1), put(2, 3, "green", 2)]

    assert not is_right(*old, put(4, None, "blue", if_version=1), get(5, 6, "blue", 3))
    assert is_right(*old, put(4, None, "blue", if_version=2), get(5, 6, "blue", 3))


def test_the_version_of_a_killed_set_is_learned_from_its_first_reader() -> None:
    killed = put(0, None, "blue")

    assert is_right(killed, get(1, 2, "blue", 4), get(3, 4, "blue", 4))
    assert not is_right(killed, get(1, 2, "blue", 4), get(3, 4, "blue", 5))
    assert is_right(killed, get(1, 2, "blue", 4), put(3, 4, "red", 5))
    assert not is_right(killed, get(1, 2, "blue", 4), put(3, 4, "red", 4))


def test_a_killed_unset_may_have_happened_or_not() -> None:
    old, killed = put(0, 1, "red", 1), unset(2, None)

    assert is_right(old, killed, get_nothing(3, 4))
    assert is_right(old, killed, get(3, 4, "red", 1))
    assert not is_right(old, killed, get_nothing(3, 4), get(5, 6, "red", 1))


def test_additions_at_the_same_time_return_different_sums() -> None:
    assert is_right_counter(add(0, 9, 2), add(1, 8, 1), count(10, 11, 2))
    assert not is_right_counter(add(0, 9, 1), add(1, 8, 1), count(10, 11, 1))


def test_the_example_of_the_page() -> None:
    """See docs/state/history.md."""
    bob, carol = add(1, 4, 1), count(5, 6, 2)

    assert is_right_counter(add(0, 3, 2), bob, carol)
    assert not is_right_counter(add(0, 3, 2), bob, count(5, 6, 1))
    assert not is_right_counter(add(0, 3, 1), bob, carol)
    assert not is_right_counter(add(0, 0.5, 2), bob, carol)


def test_additions_one_after_the_other_return_growing_sums() -> None:
    assert not is_right_counter(add(0, 1, 2), add(2, 3, 1))


def test_a_killed_addition_explains_one_missing_sum_and_no_more() -> None:
    killed = add(0, None, amount=5)

    assert is_right_counter(killed, add(1, 2, 1))
    assert is_right_counter(killed, add(1, 2, 6))
    assert not is_right_counter(killed, add(1, 2, 6), add(3, 4, 12))


def test_an_acknowledged_addition_must_not_be_lost() -> None:
    assert not is_right_counter(add(0, 1, 1), count(2, 3, 0))


def test_the_search_says_unknown_when_it_reaches_its_bound() -> None:
    killed = [add(0, None, amount=1 << number) for number in range(12)]
    impossible = count(1, 2, -1)

    result = find_order(CounterModel(), [*killed, impossible], most_places=1000)

    assert isinstance(result, Unknown)
    assert isinstance(find_order(CounterModel(), [*killed, impossible]), NotLinearizable)


def test_the_explanation_shows_the_order_that_was_found_and_the_calls_that_cannot_follow() -> None:
    history = [
        put(0, 1, "red", 1),
        put(2, 4, "blue", 2, if_version=1),
        put(3, 5, "green", 3, if_version=1),
    ]

    result = find_order(ValueModel(), history)

    assert isinstance(result, NotLinearizable)
    lines = result.explanation.splitlines()
    assert lines[0] == "The first 2 of 3 calls can be put into an order. Its end is:"
    assert 'set color (value "red") -> version 1' in lines[1]
    assert 'set color (value "blue", if_version 1) -> version 2' in lines[2]
    assert lines[3] == 'After these calls, the state is: value "blue", version 2'
    assert 'set color (value "green", if_version 1) -> version 3' in lines[5]
    assert lines[6].strip() == (
        'impossible here: its response requires version 1, but there is: value "blue", version 2'
    )


def is_right_by_trying_all_orders(calls: list[Operation]) -> bool:
    """Return whether some order explains all responses. This is the definition, word for word."""
    answered = [call for call in calls if not call.may_have_happened]
    killed = [call for call in calls if call.may_have_happened]
    for size in range(len(killed) + 1):
        for happened in combinations(killed, size):
            for order in permutations([*answered, *happened]):
                if is_in_real_time(order) and explains(order):
                    return True
    return False


def is_in_real_time(order: Sequence[Operation]) -> bool:
    """Return whether no call comes before one that had ended when it began."""
    return not any(later.is_before(earlier) for earlier, later in combinations(order, 2))


def explains(order: Sequence[Operation]) -> bool:
    value = 0
    for operation in order:
        result = CounterModel().step(value, operation)
        if isinstance(result, Impossible):
            return False
        value = result
    return True


def random_call(draw: st.DrawFn) -> Operation:
    begin = draw(st.integers(0, 8))
    length = draw(st.none() | st.integers(1, 6))
    value = draw(st.integers(0, 4))
    if length is None:
        return add(begin, None)
    if draw(st.booleans()):
        return add(begin, begin + length, value)
    return count(begin, begin + length, value)


@given(st.data())
def test_the_search_agrees_with_trying_all_orders(data: st.DataObject) -> None:
    amount = data.draw(st.integers(1, 5))
    calls = [data.draw(st.composite(random_call)()) for _ in range(amount)]

    assert is_right_counter(*calls) == is_right_by_trying_all_orders(calls)


def test_the_search_does_not_try_what_it_has_tried_before() -> None:
    """Two reads at the same time can have either order. 200 such pairs have 2**200 orders."""
    reads = []
    for turn in range(200):
        reads += [count(10 * turn, 10 * turn + 8, 0), count(10 * turn + 1, 10 * turn + 9, 0)]
    wrong_end = count(3000, 3001, 7)

    assert is_right_counter(*reads)
    assert not is_right_counter(*reads, wrong_end)
