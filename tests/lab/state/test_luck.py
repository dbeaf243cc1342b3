"""Runs that nobody arranges."""

from sampletool.lab.luck import try_luck


def test_where_the_promise_is_about_moments_luck_says_that_only_the_ends_were_judged() -> None:
    assert try_luck("zombie-worker", "fixed", 1, "AB", lambda: None) == (0, True)
