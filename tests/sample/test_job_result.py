"""sampletool/sample/job_result.py: what a person sees of each job, and of all of them."""

import pytest

from sampletool.sample.job_result import JobResult, Status, result_lines


def test_a_job_has_its_status_and_an_explanation_on_one_line() -> None:
    built = JobResult("a", "built", reason="its command changed")
    noted = JobResult("a", "built", reason="its command changed", note="the input x changed")

    assert JobResult("a", "up_to_date").lines() == ["a: up to date"]
    assert built.lines() == ["a: built (its command changed)"]
    assert noted.lines() == ["a: built (the input x changed)"]


def test_a_failure_has_the_last_ten_lines_of_the_output_and_the_path_of_the_log() -> None:
    output = "".join(f"line {number}\n" for number in range(12))
    failed = JobResult("a", "failed", note="exit code 3", tail=output, log="/log")

    lines = failed.lines()

    assert lines[0] == "a: exit code 3"
    assert lines[1:-1] == [f"    line {number}" for number in range(2, 12)]
    assert lines[-1] == "    whole output: /log"


def test_a_failure_without_output_is_one_line() -> None:
    assert JobResult("a", "failed", note="no such file").lines() == ["a: no such file"]


def test_a_failure_whose_log_is_not_whole_says_how_much_is_missing() -> None:
    failed = JobResult("a", "failed", note="exit code 3", log="/log", log_missing_bytes=7)

    assert failed.lines()[-1] == "    output without 7 bytes of it: /log"


@pytest.mark.parametrize(
    ("status", "is_shown"),
    [
        ("built", False),
        ("up_to_date", False),
        ("passed", False),
        ("stale", True),
        ("skipped", True),
        ("failed", True),
        ("stopped", True),
        ("not_started", True),
        ("would_run", True),
    ],
)
def test_at_the_end_only_jobs_that_need_attention_are_shown(status: Status, is_shown: bool) -> None:
    lines = result_lines([JobResult("a", status)], "target")

    assert any(line.startswith("a: ") for line in lines) is is_shown


def test_a_note_makes_a_job_worth_showing_again() -> None:
    lines = result_lines([JobResult("a", "built", note="the input x changed")], "target")

    assert lines == ["a: built (the input x changed)", "targets: 1 built"]


def test_the_summary_counts_each_status() -> None:
    results = [
        JobResult("a", "built"),
        JobResult("b", "up_to_date"),
        JobResult("c", "built"),
    ]

    assert result_lines(results, "target") == ["targets: 2 built, 1 up to date"]
    assert result_lines([JobResult("d", "passed")], "check") == ["checks: 1 passed"]


def test_if_a_job_has_failed_there_is_no_summary_because_the_error_is_one() -> None:
    results = [JobResult("a", "failed", note="exit code 1"), JobResult("b", "built")]

    assert result_lines(results, "target") == ["a: exit code 1"]


def test_without_jobs_the_summary_says_so() -> None:
    assert result_lines([], "check") == ["There are no checks in tool.toml."]
