"""Runs that nobody arranges."""

from sampletool.lab.luck import try_luck
from sampletool.lab.scenario import find_scenario


def test_a_promise_about_moments_is_judged_by_the_ends_alone() -> None:
    assert (
        try_luck(
            find_scenario("zombie-worker"),
            find_scenario("zombie-worker").variants["fixed"],
            1,
            "AB",
            lambda: None,
        )
        == 0
    )
