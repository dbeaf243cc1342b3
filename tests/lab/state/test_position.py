"""The position of a suspended coroutine."""

from tests.lab.conftest import Lab
from tests.lab.test_position import seen


def test_a_coroutine_stands_where_it_awaits(lab: Lab) -> None:
    events = seen(lab, "in-process-queue", "naive", "A1 B1 A2")

    assert events[2] == ("take", "await asyncio.sleep(0)", {"item": "the item"})
