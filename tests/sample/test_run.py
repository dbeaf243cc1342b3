"""sampletool/sample/run.py: the result of a command that has exited."""

from dataclasses import replace
from pathlib import Path

from sampletool.kit.safety.children import ChildExit
from sampletool.sample.job_result import JobResult
from sampletool.sample.run import result_of


def test_a_job_that_left_a_survivor_has_failed() -> None:
    child = ChildExit(name="a", exit_code=0, output_tail="", log_path=None, survivors=())

    alone = result_of(child)
    survived = result_of(replace(child, survivors=(123,)))

    assert (alone.status, survived.status, survived.note) == (
        "passed",
        "failed",
        "still running: 123",
    )


def test_a_result_says_what_the_child_has_left() -> None:
    child = ChildExit(
        name="a",
        exit_code=3,
        output_tail="why\n",
        log_path=Path("/log"),
        survivors=(),
        dropped_bytes=5,
    )

    failed = result_of(child)
    silent = result_of(replace(child, exit_code=0, output_tail="", log_path=None, dropped_bytes=0))

    assert (failed.status, failed.note, failed.exit_status) == ("failed", "exit code 3", 3)
    assert (failed.tail, failed.log, failed.log_missing_bytes) == ("why\n", "/log", 5)
    assert silent == JobResult("a", "passed")
