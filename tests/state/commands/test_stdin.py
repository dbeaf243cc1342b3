"""Tasks and claims on stdin, as a script passes them on."""

import pytest

from sampletool.kit.testing.tool import Tool

pytestmark = pytest.mark.usefixtures("workspace")


@pytest.mark.parametrize("task", ["ann", "a:b", "-x"])
def test_what_claim_prints_with_raw_is_what_finish_reads(tool: Tool, task: str) -> None:
    tool("task", "add", "mail", "to: ann", f"--id={task}")

    claimed = tool("task", "claim", "mail", "--raw")
    finished = tool("task", "finish", "-", stdin=claimed.stdout)

    assert claimed.text == f"{task}:1\n"
    assert finished.data == {"id": task, "generation": 1, "effect": "updated"}
    assert tool("task", "show", "--", task).data["task"]["status"] == "done"


def test_several_claims_are_printed_in_a_line_each(tool: Tool) -> None:
    tool("task", "add", "mail", "to: ann", "to: bob", "--id", "ann", "--id", "bob")

    claimed = tool("task", "claim", "mail", "--count", "2", "--raw")

    assert claimed.text == "ann:1\nbob:1\n"
    for claim in claimed.text.splitlines():
        assert tool("task", "finish", claim).data["effect"] == "updated"


def test_if_there_is_nothing_to_claim_nothing_is_printed_or_finished(tool: Tool) -> None:
    claimed = tool("task", "claim", "mail", "--raw")
    finished = tool("task", "finish", "-", stdin=claimed.stdout)

    assert (claimed.status, claimed.text) == (0, "\n")
    assert (finished.status, finished.code) == (2, "VALIDATION_ERROR")
    assert finished.error["message"] == "stdin contains no claim."


@pytest.mark.parametrize(
    ("stdin", "problem"),
    [
        (b"", "stdin contains no claim."),
        (b"ann:1\nbob:1\n", "stdin contains 2 claims."),
        (
            "ann:\uff11\n".encode(),
            "'ann:\uff11' is not a claim, such as ann:1, as printed by `tool task claim`.",
        ),
        (b"ann\n", "'ann' is not a claim, such as ann:1, as printed by `tool task claim`."),
        (b"ann:\xff\n", "stdin is not UTF-8 text."),
    ],
)
def test_stdin_must_contain_exactly_one_claim(tool: Tool, stdin: bytes, problem: str) -> None:
    tool("task", "add", "mail", "to: ann", "--id", "ann")
    tool("task", "claim", "mail")

    finished = tool("task", "finish", "-", stdin=stdin)

    assert (finished.status, finished.code) == (2, "VALIDATION_ERROR")
    assert finished.error["message"] == problem
    assert finished.error["errors"][0]["param"] != "--stdin"
    # `tool task claim --raw` would fail without the name of a queue.
    assert "fix_command" not in finished.error
    assert tool("task", "show", "ann").data["task"]["status"] == "claimed"


def test_the_result_is_stored_also_if_the_claim_comes_from_stdin(tool: Tool) -> None:
    tool("task", "add", "mail", "to: ann", "--id", "ann")
    claim = tool("task", "claim", "mail", "--raw").stdout

    tool("task", "finish", "-", "--result", '{"sent": 3}', stdin=claim)

    assert tool("task", "show", "ann").data["result"] == {"sent": 3}


@pytest.mark.parametrize(
    "command",
    [
        ("counter", "get"),
        ("counter", "add"),
        ("state", "get"),
        ("task", "show"),
        ("task", "cancel"),
    ],
)
def test_where_stdin_is_not_read_a_dash_is_refused(tool: Tool, command: tuple[str, str]) -> None:
    """Otherwise, `counter get -` would say that the counter is 0."""
    ran = tool(*command, "-", stdin=b"ann\n")

    assert (ran.status, ran.code) == (2, "USAGE_ERROR")
    assert "'-' means stdin elsewhere" in ran.error["message"]


@pytest.mark.parametrize("stdin", [b"", b"\n\n"])
def test_a_stdin_without_tasks_is_refused_unless_it_is_allowed(tool: Tool, stdin: bytes) -> None:
    """Usually, the program that should have written the tasks has failed."""
    refused = tool("task", "add", "mail", "--from-file", "-", stdin=stdin)
    allowed = tool("task", "add", "mail", "--from-file", "-", "--allow-empty", stdin=stdin)

    assert (refused.status, refused.code) == (2, "VALIDATION_ERROR")
    assert refused.error["message"] == "stdin contains no tasks."
    assert allowed.data == {"queue": "mail", "tasks": [], "effect": "unchanged"}
