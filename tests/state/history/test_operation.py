"""The log of a client contains every call that began, also if the client was killed in it."""

from pathlib import Path

from tests.state.history.operation import Log, describe, read_history, read_log
from tests.state.history.written import add, put


def test_a_log_has_the_calls_with_their_responses_and_times(tmp_path: Path) -> None:
    with Log(tmp_path / "ann.log") as log:
        first = log.invoke("add", "hits", {"amount": 1})
        log.respond(first, {"value": 1}, None)
        second = log.invoke("get", "color", {})
        log.respond(second, {}, "KEY_NOT_FOUND")

    added, read = read_log(tmp_path / "ann.log")
    assert (added.client, added.verb, added.target) == ("ann", "add", "hits")
    assert added.succeeded
    assert added.response == {"value": 1}
    assert read.refusal == "KEY_NOT_FOUND"
    assert not read.succeeded
    assert added.is_before(read)


def test_a_call_without_a_response_may_have_happened(tmp_path: Path) -> None:
    with Log(tmp_path / "ann.log") as log:
        log.invoke("add", "hits", {"amount": 1})

    (added,) = read_log(tmp_path / "ann.log")

    assert added.may_have_happened
    assert not added.succeeded
    assert not added.is_before(added)


def test_a_line_that_is_not_complete_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "ann.log"
    with Log(path) as log:
        log.respond(log.invoke("add", "hits", {"amount": 1}), {"value": 1}, None)
    complete = path.read_bytes()

    path.write_bytes(complete[:-5])

    (added,) = read_log(path)
    assert added.may_have_happened


def test_a_history_has_the_calls_of_all_clients_in_the_order_in_which_they_began(
    tmp_path: Path,
) -> None:
    with Log(tmp_path / "ann.log") as ann, Log(tmp_path / "bob.log") as bob:
        ann.invoke("add", "hits", {})
        bob.invoke("add", "hits", {})
        ann.invoke("count", "hits", {})

    history = read_history(tmp_path)
    assert [operation.client for operation in history] == ["ann", "bob", "ann"]


def test_calls_are_shown_in_the_order_in_which_they_began() -> None:
    calls = [put(3, 4, "red", 1), add(1, None)]

    shown = describe(calls, start_ns=0)

    assert shown.splitlines() == [
        "       1.00 ...           ms  ann     "
        "add hits (amount 1) -> no response: may have happened",
        '       3.00 to      4.00 ms  ann     set color (value "red") -> version 1',
    ]
