"""Exploring: complete, without repetition, the same every time."""

from dataclasses import replace
from functools import partial
from itertools import combinations, islice

from sampletool.kit.testing.scale import scale
from sampletool.lab.explore import Exploration, run_every_schedule
from sampletool.lab.play import play
from sampletool.lab.recording import PlayedRun, Recording
from sampletool.lab.scenario import find_scenario

from .conftest import Lab
from .test_draw import RUN


def test_two_workers_with_two_steps_have_the_six_schedules_there_are(lab: Lab) -> None:
    expected = set()
    for own in combinations(range(4), 2):
        letters = ["A" if place in own else "B" for place in range(4)]
        expected.add(
            " ".join(
                f"{letter}{letters[: i + 1].count(letter)}" for i, letter in enumerate(letters)
            )
        )

    explored = lab.explore("lost-config-update", "naive")

    assert {recording.schedule for recording in explored.recordings} == expected
    serial = {"A1 A2 B1 B2", "B1 B2 A1 A2"}
    assert {recording.schedule for recording in explored.broken} == expected - serial


def test_of_the_ninety_schedules_of_three_workers_only_the_serial_ones_are_good(lab: Lab) -> None:
    follow = partial(
        play,
        find_scenario("lost-config-update"),
        "naive",
        fork_server=lab.fork_server,
        worker_count=3,
    )
    runs = [*islice(run_every_schedule(follow), scale(8, 100))]

    assert len({run.schedule for run in runs}) == len(runs) == scale(8, 90)
    good = {run.schedule for run in runs if not run.is_broken}
    assert good == {run.schedule for run in runs if is_serial(run.schedule)}
    assert len(good) == scale(2, 6)


def is_serial(schedule: str) -> bool:
    """Whether each worker takes its two steps without another between."""
    letters = [token[0] for token in schedule.split()]
    return letters[0::2] == letters[1::2]


def test_exploring_again_finds_the_same_in_the_same_order(lab: Lab) -> None:
    assert lab.explore("torn-write", "naive") == lab.explore("torn-write", "naive")


def test_a_worker_that_waits_goes_on_as_soon_as_it_can(lab: Lab) -> None:
    events = lab.play("lost-config-update", "fixed", "A1 B1").events

    outcomes = [(event.worker, event.step, event.outcome) for event in events]

    assert ("B", "lock", "blocked") in outcomes
    assert outcomes.index(("B", "lock", "resumed")) == outcomes.index(("A", "rename", "done")) + 1
    assert not any(len(event.holds) > 1 for event in events)


def test_a_worker_that_was_killed_while_it_waited_is_not_waiting(lab: Lab) -> None:
    struck = lab.play("stale-lock", "fixed", "B1 A1 A!").events[2]

    assert (struck.step, struck.waiting, struck.holds) == ("kill -9 while it waits", (), ("B",))


def test_where_there_are_many_schedules_it_says_how_many_are_left_at_least() -> None:
    def follow(schedule: str) -> PlayedRun:
        """Ten turns of A or B."""
        taken = [*schedule.split(), *["A"] * 10][:10]
        return PlayedRun(replace(RUN, schedule=" ".join(taken)), [["A", "B"]] * 10)

    lines: list[str] = []
    runs = list(run_every_schedule(follow, lines.append))

    assert len({run.schedule for run in runs}) == len(runs) == 2**10
    assert lines[0].endswith(" more schedules, at least.")
    assert 100 < int(lines[0].split()[0]) < 2**10


def test_a_right_way_that_breaks_and_a_wrong_one_that_does_not_are_surprises() -> None:
    holds = replace(RUN, verdict="holds", reason=None)

    def surprise(variant: str, *runs: Recording) -> str | None:
        return Exploration(tuple(replace(run, variant=variant) for run in runs)).surprise

    assert (surprise("naive", RUN, holds), surprise("fixed", holds, holds)) == (None, None)
    assert surprise("naive", holds, holds) == "lost, naive breaks on 0 of 2 schedules"
    count = "lost, fixed breaks on 1 of 2 schedules although it is fixed"
    expected = f"{count}, such as A1 B1 A2 B2: A is lost"
    assert surprise("fixed", holds, RUN) == expected
