"""sampletool/audit/failure.py"""

import json

import pytest

from sampletool.audit.failure import Failure, group_failures, parse_failure

_OTHERS = {4242}


def _failure(stdout: str = "", stderr: str = "") -> Failure:
    return parse_failure(1, stdout, stderr, shown_output="what was printed", other_pids=_OTHERS)


def test_our_own_lock_held_is_understood() -> None:
    error = {
        "code": "LOCK_HELD",
        "message": "Busy.",
        "retry_after_ms": 250,
        "context": {"holder": {"pid": 7}},
    }

    failure = _failure(stdout=json.dumps({"ok": False, "error": error}) + "\n")

    assert failure.code == "LOCK_HELD"
    assert failure.retry_after_seconds == 0.25
    assert failure.names_holder
    assert failure.output == "LOCK_HELD: Busy."


@pytest.mark.parametrize(
    ("members", "seconds"),
    [
        ({"retry_after": 2}, 2.0),
        ({"retryAfterMs": 1500}, 1.5),
        ({"retry-after-seconds": 3}, 3.0),
        ({"retry_after_ms": 0}, None),
        ({"retry_after": True}, None),
        ({"retry_after": "soon"}, None),
        ({"retries": 3}, None),
    ],
)
def test_a_hint_is_a_positive_number_whatever_its_member_is_called(
    members: dict[str, object], seconds: float | None
) -> None:
    assert _failure(stderr=json.dumps({"code": "BUSY", **members})).retry_after_seconds == seconds


def test_json_among_other_lines_and_spread_over_lines_is_found() -> None:
    answer = {"error": {"code": "BUSY", "retry_after_ms": 5}}

    among = _failure(stderr=f"note: trying\n{json.dumps(answer)}\nbye\n")
    spread = _failure(stdout=json.dumps(answer, indent=2))

    assert (among.code, spread.code) == ("BUSY", "BUSY")


@pytest.mark.parametrize(
    "text",
    ["", "error: locked", "{not json}", "[1, 2]", '{"exit_code": 3}', '{"code": ""}', "{" * 9000],
)
def test_prose_and_json_without_a_code_are_not_structure(text: str) -> None:
    assert _failure(stderr=text).code is None


def test_prose_names_a_holder_only_by_the_pid_of_a_run_that_it_met() -> None:
    assert _failure(stderr="locked by process 4242").names_holder
    assert not _failure(stderr="locked by process 4243").names_holder
    assert not _failure(stderr="[Errno 4242] File exists").names_holder


@pytest.mark.parametrize("value", [None, False, True, 0, 1, "", [], {}])
def test_a_value_that_names_nothing_is_no_code_and_no_holder(value: object) -> None:
    failure = _failure(stdout=json.dumps({"code": value, "locked_by": value}))

    assert failure.code is None
    assert not failure.names_holder


def test_failures_of_one_kind_are_counted_and_the_first_one_is_shown() -> None:
    first, second = (
        parse_failure(1, "", "", shown_output="one", other_pids=()),
        parse_failure(1, "", "", shown_output="two", other_pids=()),
    )
    other = parse_failure(2, "", "", shown_output="three", other_pids=())

    kinds = group_failures([first, second, other])

    assert [(kind.exit_status, kind.output, kind.count) for kind in kinds] == [
        (1, "one", 2),
        (2, "three", 1),
    ]
