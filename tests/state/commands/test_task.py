"""tool task: the text that a person gets."""

from dataclasses import replace

import pytest

from sampletool.kit.testing.tool import Tool
from sampletool.state.commands.task.show import ShownTask
from sampletool.state.protocol import TaskState
from sampletool.state.report import FailedAttempt, WorkReport
from tests.state.support.specs import wrong_promises

pytestmark = pytest.mark.usefixtures("workspace")

FREE = TaskState(
    id="a",
    queue="mail",
    status="free",
    generation=0,
    attempts=0,
    body={"to": "ann"},
    claimed_by=None,
    claimed_at=None,
    lease_expires_at=None,
    free_at=None,
    position=1,
)

REPORT = WorkReport(queue="mail", finished=2, given_back=1, lost=3)


def text_of(tool: Tool, *args: str) -> str:
    """Run a command, and return its text."""
    ran = tool(*args, "--format", "text")
    assert ran.status == 0
    return ran.text


def rows_of(text: str) -> list[list[str]]:
    """Return the words in each line of a table."""
    return [line.split() for line in text.splitlines()]


def test_each_command_about_tasks_promises_what_the_table_says() -> None:
    assert wrong_promises("task") == []


def test_added_tasks_are_shown_with_their_ids(tool: Tool) -> None:
    assert text_of(tool, "task", "add", "mail", "x", "--id", "a") == "a: created\n"
    assert text_of(tool, "task", "add", "mail", "x", "--id", "a") == "a: unchanged\n"
    dry_run = text_of(tool, "task", "add", "mail", "x", "--dry-run")
    assert dry_run.splitlines()[-1] == "a new id: created"


def test_claimed_tasks_are_shown_with_claim_body_and_lease(tool: Tool) -> None:
    tool("task", "add", "mail", "hello", "--id", "a")

    claimed = text_of(tool, "task", "claim", "mail")
    nothing = text_of(tool, "task", "claim", "mail")

    assert claimed.startswith("a:1  hello  (until 20")
    assert nothing == "Nothing to claim in mail.\n"


def test_one_task_is_claimed_unless_more_are_requested(tool: Tool) -> None:
    tool("task", "add", "mail", "x", "y", "z")

    assert len(tool("task", "claim", "mail").data["tasks"]) == 1
    assert len(tool("task", "claim", "mail", "--count", "2").data["tasks"]) == 2


def test_a_list_of_tasks_shows_who_has_claimed_them(tool: Tool) -> None:
    tool("task", "add", "mail", "hello", "there", "--id", "a", "--id", "b")
    tool("task", "claim", "mail", "--session-id", "ann")

    rows = rows_of(text_of(tool, "task", "list", "mail"))

    assert rows[-3:] == [
        ["a", "mail", "claimed", "ann", "hello"],
        ["b", "mail", "free", "-", "there"],
        ["2", "left"],
    ]


def test_counts_of_tasks_are_a_table(tool: Tool) -> None:
    assert text_of(tool, "task", "stats") == "No tasks.\n"

    tool("task", "add", "mail", "x", "y")
    tool("task", "claim", "mail")

    assert rows_of(text_of(tool, "task", "stats"))[-1] == ["mail", "1", "1", "0", "0", "0", "0"]


def test_removed_and_retried_tasks_are_counted(tool: Tool) -> None:
    tool("task", "add", "mail", "x", "--id", "a", "--max-attempts", "1")
    tool("task", "claim", "mail")
    tool("task", "release", "a:1")

    assert text_of(tool, "task", "retry", "--all", "mail") == "1 free again\n"

    tool("task", "claim", "mail")
    tool("task", "finish", "a:3")

    assert text_of(tool, "task", "clean", "--older-than", "0s") == "1 removed\n"


def test_a_free_task_is_shown_without_the_facts_that_it_does_not_have() -> None:
    shown = ShownTask(FREE, max_attempts=0, result=None, exit_codes=[], failure_tail=None)

    assert shown.lines() == [
        "task:     a",
        "queue:    mail",
        "status:   free",
        "attempts: 0",
        'body:     {"to": "ann"}',
    ]


def test_a_task_is_shown_with_its_worker_result_and_failures() -> None:
    claimed = replace(FREE, status="claimed", attempts=3, claimed_by="ann", claimed_at="NOW")
    shown = ShownTask(
        claimed,
        max_attempts=5,
        result=[1],
        exit_codes=[1, 137],
        failure_tail="first line\nlast line\n",
    )

    assert shown.lines()[5:] == [
        "worker:   ann, since NOW",
        "result:   [1]",
        "failed with exit codes: 1, 137",
        "last output of a failed attempt:",
        "first line",
        "last line",
    ]


def test_a_report_of_a_worker_has_only_counts_that_are_known() -> None:
    everything = replace(REPORT, left=4, failed=5, logs="/logs")

    assert REPORT.lines() == ["mail: 2 finished, 1 given back, 3 lost"]
    assert replace(REPORT, failed=0).lines() == REPORT.lines()
    assert everything.lines() == [
        "mail: 2 finished, 1 given back, 3 lost, 4 left, 5 failed",
        "The output of the commands is in /logs",
    ]


def test_a_report_of_a_worker_has_a_line_for_each_failure() -> None:
    failure = FailedAttempt(
        id="a",
        attempts=1,
        exit_status=7,
        tail="why\n",
        output_bytes=None,
        log=None,
    )

    assert replace(REPORT, failures=[failure]).lines()[1:] == ["  a: exit code 7: why"]
