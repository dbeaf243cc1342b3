"""sampletool/audit/failure.py"""

import json
from dataclasses import replace

import pytest

from sampletool.audit.failure import Failure, excerpt, group_failures, parse_failure
from sampletool.kit.testing.failing import outcome_of

_OTHERS = {4242}
_CODE_NAMES = ("code", "errorcode", "error_code")
_HOLDER_NAMES = (
    *("holder", "holders", "held_by", "lockedBy", "lock-holder", "lockOwner"),
    *("holder_pid", "lock_pid", "owner"),
)
_UNITS = {
    "": 1.0,
    "ms": 0.001,
    "millis": 0.001,
    "milliseconds": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "secs": 1.0,
    "seconds": 1.0,
}


def _failure(stdout: str = "", stderr: str = "") -> Failure:
    """Return what an output says. No output of a foreign program may raise an error."""
    try:
        return parse_failure(1, stdout, stderr, shown_output="what was printed", other_pids=_OTHERS)
    except Exception as error:
        pytest.fail(f"the output raises {error!r}")


def _understood(**members: object) -> Failure:
    return _failure(stdout=json.dumps(members))


@pytest.mark.parametrize("name", _CODE_NAMES)
def test_each_name_of_a_code_is_understood(name: str) -> None:
    assert _understood(**{name: "BUSY"}).code == "BUSY"


@pytest.mark.parametrize("name", _HOLDER_NAMES)
def test_each_name_of_a_holder_is_understood(name: str) -> None:
    assert _understood(**{name: "ann"}).names_holder
    assert not _understood(**{name: None}).names_holder


@pytest.mark.parametrize("name", ["message", "detail"])
def test_each_name_of_a_message_is_understood_if_there_is_a_code(name: str) -> None:
    assert _understood(code="BUSY", **{name: "Wait."}).output == "BUSY: Wait."
    assert _understood(code="BUSY", **{name: 5}).output == "what was printed"
    assert _understood(**{name: "Wait."}).output == "what was printed"


@pytest.mark.parametrize("unit", _UNITS)
@pytest.mark.parametrize("name", ["retryafter", "retry_in_", "retryDelay"])
def test_each_way_to_say_when_to_come_back_is_understood(name: str, unit: str) -> None:
    seconds = _understood(**{f"{name}{unit}": 1500}).retry_after_seconds

    assert seconds == pytest.approx(1500 * _UNITS[unit])


@pytest.mark.parametrize("word", ["pid", "process", "by"])
def test_each_word_before_a_number_makes_it_a_pid(word: str) -> None:
    assert _failure(f"held {word} 4242").names_holder
    assert not _failure("held 4242").names_holder


@pytest.mark.parametrize(("depth", "code"), [(1, None), (3, None), (4, "BUSY")])
def test_a_code_counts_only_up_to_the_depth(depth: int, code: str | None) -> None:
    response = json.dumps({"data": {"tasks": [{"code": "BUSY"}]}})

    failure = parse_failure(1, response, "", shown_output="", other_pids=(), max_depth=depth)

    assert failure.code == code


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (" text\n", "text"),
        ("x" * 400, "x" * 400),
        ("y" + "x" * 400, "..." + "x" * 400),
        ("password=hunter2", "password=***"),
    ],
)
def test_the_end_of_an_output_is_shown_without_passwords(output: str, shown: str) -> None:
    assert excerpt(output) == shown


def test_a_failure_is_one_line_with_its_exit_code() -> None:
    failure = Failure(3, None, None, names_holder=False, output="one\n  two\n")

    assert failure.summary() == "exit code 3: one two"


def test_our_own_lock_held_is_understood() -> None:
    error = {
        "code": "LOCK_HELD",
        "message": "Busy.",
        "retry_after_ms": 250,
        "context": {"holder": {"pid": 7}},
    }

    failure = _failure(stdout=json.dumps({"ok": False, "error": error}) + "\n")

    assert failure == Failure(
        exit_status=1,
        code="LOCK_HELD",
        retry_after_seconds=0.25,
        names_holder=True,
        output="LOCK_HELD: Busy.",
    )


@pytest.mark.parametrize(
    ("members", "seconds"),
    [
        ({"retry_after": 2}, 2.0),
        ({"retryAfterMs": 1500}, 1.5),
        ({"retry-after-seconds": 3}, 3.0),
        ({"retry_after_ms": 0}, None),
        ({"retry_after": -1}, None),
        ({"retry_after": 999_999_999}, 999_999_999.0),
        ({"retry_after": 1_000_000_000}, None),
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


def test_facts_beside_the_error_and_in_it_count_and_those_of_the_error_win() -> None:
    error = {"code": "BUSY", "message": "Wait."}

    failure = _understood(code="OTHER", holder="ann", retry_after=2, error=error)

    assert failure == Failure(
        exit_status=1,
        code="BUSY",
        retry_after_seconds=2.0,
        names_holder=True,
        output="BUSY: Wait.",
    )


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
    def failed(exit_code: int = 1, output: str = "", **members: object) -> Failure:
        text = json.dumps(members)
        return parse_failure(exit_code, text, "", shown_output=output, other_pids=())

    one = failed(output="one")
    coded = failed(code="BUSY")
    hinted = failed(retry_after=1)
    held = failed(holder="ann")
    other = failed(2)

    failures = [one, coded, failed(output="two"), hinted, failed(retry_after=2), held, other, other]

    kinds = outcome_of(lambda: group_failures(failures))

    assert kinds == [
        replace(one, count=2),
        coded,
        replace(hinted, count=2),
        held,
        replace(other, count=2),
    ]
