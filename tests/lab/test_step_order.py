"""The order of the steps of a run: which can run in another order, and which are easier to read."""

from sampletool.kit.stepping.effects import READ, TAKE, WRITE, Effects
from sampletool.lab.fewest_switches import count_switches, with_fewest_switches
from sampletool.lab.recording import Turn, worker_of
from sampletool.lab.step_order import Race, StepOrder, find_races


def turn(token: str, effects: Effects) -> Turn:
    return Turn(
        worker=worker_of(token), token=token, step="a step", effects=effects, possible=(token,)
    )


LOST_UPDATE = [
    turn("A1", {"count": READ}),
    turn("B1", {"count": READ}),
    turn("A2", {"count": WRITE}),
    turn("B2", {"count": WRITE}),
]
LOCKED = [
    turn("A1", {"lock": TAKE}),
    turn("A2", {"lock": WRITE}),
    turn("B1", {"lock": TAKE}),
    turn("B2", {"lock": WRITE}),
]


def test_conflicting_neighbours_of_different_workers_are_races() -> None:
    races = list(find_races(LOST_UPDATE, first_later=0))

    assert races == [Race(1, ("A",)), Race(2, ("B",))]


def test_races_with_an_early_second_step_are_left_out() -> None:
    races = list(find_races(LOST_UPDATE, first_later=3))

    assert races == [Race(2, ("B",))]


def test_a_chain_of_conflicts_keeps_two_steps_in_their_order() -> None:
    order = StepOrder(LOST_UPDATE)

    assert order.must_precede(0, 3)
    assert not order.must_precede(0, 1)
    assert 0 not in order.direct_predecessors(3)


def test_the_worker_that_gets_a_lock_later_could_have_got_it_first() -> None:
    races = list(find_races(LOCKED, first_later=0))

    assert Race(0, ("B",)) in races


def test_a_worker_that_asks_for_a_lock_because_of_its_owner_cannot_get_it_first() -> None:
    asks_after_a_message = [
        turn("A1", {"lock": TAKE, "message": WRITE}),
        turn("A2", {"lock": WRITE}),
        turn("B1", {"message": READ}),
        turn("B2", {"lock": TAKE}),
    ]

    races = list(find_races(asks_after_a_message, first_later=3))

    assert Race(0, ("B",)) not in races


def test_a_step_that_does_not_depend_on_the_race_can_come_first() -> None:
    turns = [
        turn("A1", {"count": WRITE}),
        turn("B1", {"other": WRITE}),
        turn("B2", {"count": READ}),
        turn("C1", {"other": READ}),
    ]

    assert list(find_races(turns, first_later=2)) == [Race(0, ("B",)), Race(1, ("C",))]


def test_steps_without_conflicts_are_sorted_by_worker() -> None:
    turns = [turn(token, {token[0]: WRITE}) for token in ("A1", "B1", "A2", "B2")]

    assert with_fewest_switches(turns) == ["A1", "A2", "B1", "B2"]


def test_steps_with_conflicts_keep_their_order() -> None:
    assert with_fewest_switches(LOST_UPDATE) in (
        ["A1", "B1", "A2", "B2"],
        ["B1", "A1", "A2", "B2"],
    )
    assert count_switches(with_fewest_switches(LOST_UPDATE)) == 2
