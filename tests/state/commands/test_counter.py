"""tool counter: what its commands promise."""

from tests.state.support.specs import wrong_promises


def test_each_command_about_counters_promises_what_the_table_says() -> None:
    assert wrong_promises("counter") == []
