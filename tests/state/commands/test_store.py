"""tool counter, tool state and tool task, as a user runs them. tests/state tests the verbs."""

import errno
import json
import signal
from fcntl import ioctl
from pathlib import Path
from termios import FIONREAD

import pytest

from sampletool.kit.places import state_directory
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Ran, Tool, describe_option
from tests.state.support.waiting import wait_until


def test_no_increment_of_10_processes_is_lost(tool: Tool, workspace: Path) -> None:
    rounds = scale(1, 10)
    for _ in range(rounds):
        ran = tool.together([["counter", "add", "hits"]] * 10)
        assert {one.status for one in ran} == {0}

    assert tool("counter", "get", "hits").data == {"name": "hits", "value": 10 * rounds}


def test_the_store_is_a_file_of_the_workspace_or_else_of_the_user(
    tool: Tool, workspace: Path, tmp_path: Path
) -> None:
    tool("counter", "add", "hits")
    tool("counter", "add", "hits", "--cwd", tmp_path)

    assert (workspace / ".tool" / "state.db").stat().st_mode & 0o777 == 0o600
    assert (state_directory() / "state.db").exists()
    assert (workspace / ".tool" / ".gitignore").read_text() == "*\n"


def test_reading_and_dry_runs_create_nothing(tool: Tool, workspace: Path) -> None:
    for call in (
        ["counter", "get", "hits"],
        ["counter", "list"],
        ["state", "list"],
        ["task", "list"],
        ["counter", "add", "hits", "--dry-run"],
        ["task", "add", "mail", "x", "--dry-run"],
    ):
        assert tool(*call).status == 0

    assert not (workspace / ".tool").exists()
    assert tool("counter", "add", "hits", "5", "--dry-run").meta["dry_run"] is True


def test_a_repetition_with_a_key_gets_the_first_response(tool: Tool, workspace: Path) -> None:
    first = tool("counter", "add", "hits", "2", "--idempotency-key", "k")
    again = tool("counter", "add", "hits", "2", "--idempotency-key", "k")

    assert again.data == first.data
    assert again.meta["replayed"] is True
    assert "replayed" not in first.meta
    assert (
        tool("counter", "add", "hits", "3", "--idempotency-key", "k").code
        == "IDEMPOTENCY_KEY_REUSED"
    )


def test_a_claim_with_a_key_is_replayed_in_another_session(tool: Tool, workspace: Path) -> None:
    tool("task", "add", "mail", "x", "y")
    first = tool("task", "claim", "mail", "--idempotency-key", "k")

    again = tool("task", "claim", "mail", "--idempotency-key", "k", "--session-id", "another")

    assert again.data == first.data
    assert again.meta["replayed"] is True


def test_a_value_is_changed_only_over_the_version_that_was_read(
    tool: Tool, workspace: Path
) -> None:
    assert tool("state", "set", "plan", '{"step": 1}').data["version"] == 1
    assert tool("state", "get", "plan").data == {"key": "plan", "value": {"step": 1}, "version": 1}
    assert tool("state", "set", "plan", "final", "--if-version", "1").data["effect"] == "updated"

    stale = tool("state", "set", "plan", "late", "--if-version", "1")

    assert (stale.status, stale.code) == (6, "VERSION_CONFLICT")
    assert stale.error["context"] == {"key": "plan", "expected": 1, "actual": 2}
    assert (
        "new does not exist"
        in tool("state", "set", "new", "x", "--if-version", "1").error["message"]
    )
    assert tool("state", "get", "plan").data["value"] == "final"
    assert tool("state", "unset", "plan").data["effect"] == "deleted"
    assert tool("state", "get", "plan").code == "KEY_NOT_FOUND"


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("1", 1),
        ("1.10", "1.10"),
        ("true", True),
        ("[1, 2]", [1, 2]),
        ("a b", "a b"),
        ("NaN", "NaN"),
        ("[NaN]", "[NaN]"),
    ],
)
def test_a_value_is_json_where_it_prints_back_as_typed(
    tool: Tool, workspace: Path, typed: str, value: object
) -> None:
    assert tool("state", "set", "key", typed).data["value"] == value
    assert tool("state", "set", "key", typed, "--string").data["value"] == typed
    assert tool("state", "set", "key", "-", stdin=typed.encode()).data["value"] == value


@pytest.mark.parametrize("typed", ['{"a": 1', '{"a": 1, "a": 2}', "[1, 2", "[1e999]"])
def test_broken_json_is_refused_unless_it_is_passed_as_text(
    tool: Tool, workspace: Path, typed: str
) -> None:
    ran = tool("task", "add", "mail", "x", typed, typed)

    assert (ran.code, len(ran.error["errors"])) == ("VALIDATION_ERROR", 2)
    assert tool("task", "list").data["tasks"] == []
    assert tool("state", "set", "key", typed).status == 2
    assert tool("state", "set", "key", typed, "--string").data["value"] == typed
    assert tool("state", "set", "key", json.dumps(typed)).data["value"] == typed


@pytest.mark.parametrize("typed", ["[urgent] call ann", "{name}"])
def test_a_text_with_brackets_is_accepted_with_a_warning(
    tool: Tool, workspace: Path, typed: str
) -> None:
    ran = tool("state", "set", "key", typed)

    assert ran.data["value"] == typed
    assert [warning["code"] for warning in ran.response["warnings"]] == ["NOT_JSON"]


@pytest.mark.parametrize(
    "call",
    [
        ["counter", "add", "undefined"],
        ["state", "set", "a%20b", "1"],
        ["task", "add", "mail\n", "x"],
        ["task", "add", "mail", "x", "--id", '{"id": 1}'],
        ["counter", "add", "hits", "--idempotency-key", "null"],
    ],
)
def test_an_argument_that_is_probably_no_name_changes_nothing(
    tool: Tool, workspace: Path, call: list[str]
) -> None:
    ran = tool(*call)

    assert ran.status == 2
    assert ran.error["errors"][0]["suggestion"]
    assert not (workspace / ".tool").exists()


def test_a_dry_run_shows_no_random_id(tool: Tool, workspace: Path) -> None:
    first, second = (tool("task", "add", "mail", "x", "--dry-run").data for _ in range(2))

    assert first == second
    assert first["tasks"] == [{"effect": "created"}]
    named = tool("task", "add", "mail", "x", "--id", "a", "--dry-run").data["tasks"]
    assert named == [{"id": "a", "effect": "created"}]


def test_an_empty_stdin_is_refused_unless_it_is_allowed(tool: Tool, workspace: Path) -> None:
    refused = tool("state", "set", "key", "-")

    assert (refused.status, refused.code) == (2, "VALIDATION_ERROR")
    assert tool("state", "get", "key").code == "KEY_NOT_FOUND"
    assert tool("state", "set", "key", "-", "--allow-empty").data["value"] == ""
    assert workspace


def test_a_task_is_claimed_renewed_released_and_finished(tool: Tool, workspace: Path) -> None:
    tool("task", "add", "mail", "to: ann", "to: bob", "--id", "a", "--id", "b")
    (task,) = tool("task", "claim", "mail", "--worker", "w1").data["tasks"]
    assert (task["id"], task["generation"], task["body"]) == ("a", 1, "to: ann")

    listed = tool("task", "list", "mail").data
    assert [(one["id"], one["status"]) for one in listed["tasks"]] == [
        ("a", "claimed"),
        ("b", "free"),
    ]
    assert listed["tasks"][0]["claimed_by"] == "w1"
    assert listed["left"] == 2

    assert tool("counter", "add", "sent", "--fence", "a:1").data["value"] == 1
    assert tool("counter", "add", "sent", "--fence", "a:2").code == "LEASE_LOST"
    assert tool("task", "renew", "a:1", "--lease", "5m").data["effect"] == "updated"
    assert tool("task", "finish", "a:1").data["effect"] == "updated"
    assert tool("task", "finish", "a:1").data["effect"] == "unchanged"
    assert tool("task", "finish", "none:1").code == "TASK_NOT_FOUND"
    assert tool("task", "claim", "mail", "--count", "5").data["tasks"][0]["id"] == "b"
    assert tool("task", "release", "b:1").data["effect"] == "updated"


@pytest.mark.parametrize(
    ("command", "flag", "described"),
    [
        ("task claim", "--lease", {"type": "duration", "default": "60s"}),
        ("task claim", "--count", {"type": "integer", "minimum": 1, "maximum": 1000, "default": 1}),
        (
            "task list",
            "--limit",
            {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 100},
        ),
        (
            "task list",
            "--status",
            {
                "type": "choice",
                "choices": ["free", "claimed", "expired", "done", "failed", "cancelled"],
            },
        ),
        ("task add", "--from-file", {"type": "path"}),
        ("counter add", "--fence", {"type": "string", "metavar": "TASK:GENERATION"}),
    ],
)
def test_the_manifest_has_defaults_choices_and_limits(
    tool: Tool, command: str, flag: str, described: dict[str, object]
) -> None:
    assert describe_option(tool, command, flag).items() >= described.items()


def test_a_claim_can_be_passed_as_it_is_printed(tool: Tool, workspace: Path) -> None:
    tool("task", "add", "mail", "x", "y", "--id", "a:b", "--id", "c")
    printed = tool("task", "claim", "mail", "--count", "2", "--format", "text").text.splitlines()
    first, second = (line.split()[0] for line in printed)
    assert (first, second) == ("a:b:1", "c:1")

    assert tool("task", "renew", first).data["generation"] == 1
    assert tool("task", "release", second).data == {"id": "c", "generation": 1, "effect": "updated"}
    assert tool("task", "finish", first).data == {"id": "a:b", "generation": 1, "effect": "updated"}
    assert "not a claim, such as ann:1" in tool("task", "finish", "c").error["message"]


@pytest.mark.parametrize("group", ["counter", "state", "task"])
@pytest.mark.parametrize("cursor", ["garbage", "", "after"])
def test_a_wrong_cursor_is_refused(tool: Tool, workspace: Path, group: str, cursor: str) -> None:
    ran = tool(group, "list", "--after", cursor)

    assert ran.code == "USAGE_ERROR"
    assert f"{cursor!r} is not a valid cursor" in ran.error["message"]


def test_a_file_of_tasks_is_added_wholly_or_not_at_all(tool: Tool, workspace: Path) -> None:
    lines = [json.dumps({"id": str(number), "body": {"n": number}}) for number in range(250)]
    (workspace / "tasks.jsonl").write_text("\n".join(lines) + "\n")
    (workspace / "bad.jsonl").write_text(
        '{"body": 1}\n{"no": 1}\n{"body": 1, "x": 1}\nnot json\n'
        '{"body": 1, "id": 5}\n{"body": NaN}\n{"body": 1e999}\n'
    )

    refused = tool("task", "add", "mail", "--from-file", "bad.jsonl")
    added = tool("task", "add", "mail", "--from-file", "tasks.jsonl")

    assert (refused.status, len(refused.error["errors"])) == (2, 6)
    assert len(added.data["tasks"]) == 250
    pages = [tool("task", "list", "mail", "--limit", "100")]
    while "next_cursor" in pages[-1].meta:
        pages.append(
            tool("task", "list", "mail", "--limit", "100", "--after", pages[-1].meta["next_cursor"])
        )
    assert [task["id"] for page in pages for task in page.data["tasks"]] == [
        str(number) for number in range(250)
    ]


def test_lists_of_counters_and_values_have_pages(tool: Tool, workspace: Path) -> None:
    for name in "abc":
        tool("counter", "add", name)
        tool("state", "set", name, name)

    for group, members in (("counter", "counters"), ("state", "values")):
        first = tool(group, "list", "--limit", "2")
        second = tool(group, "list", "--limit", "2", "--after", first.meta["next_cursor"])
        assert [len(page.data[members]) for page in (first, second)] == [2, 1]
        assert "next_cursor" not in second.meta


def test_the_text_of_a_page_shows_how_to_get_the_next_one(tool: Tool, workspace: Path) -> None:
    tool("task", "add", "mail", "x", "y")

    first = tool("task", "list", "--limit", "1", "--format", "text").text

    cursor = first.splitlines()[-1].removeprefix("There is more. To continue, pass --after ")
    assert "There is more" not in tool("task", "list", "--after", cursor, "--format", "text").text


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("redis://:sekret@127.0.0.1/0", "VALIDATION_ERROR"),
        ("redis://:sek/ret@127.0.0.1/0", "VALIDATION_ERROR"),
        ("postgresql://127.0.0.1/db?password=sekret", "VALIDATION_ERROR"),
        ("redis://127.0.0.1?auth=x", "VALIDATION_ERROR"),
        ("redis://127.0.0.1/zero?db=x", "VALIDATION_ERROR"),
        ("memory://", "VALIDATION_ERROR"),
        ("mysql://127.0.0.1", "VALIDATION_ERROR"),
        ("sqlite://state.db", "VALIDATION_ERROR"),
    ],
)
def test_a_wrong_store_url_is_refused(tool: Tool, workspace: Path, url: str, code: str) -> None:
    ran = tool("counter", "add", "hits", "--store", url)

    assert (ran.status, ran.code) == (2, code)
    assert b"sek" not in ran.stdout + ran.stderr


def test_a_password_in_the_environment_is_never_shown(tool: Tool, workspace: Path) -> None:
    """A call gives a server 2 s to answer, and no argument changes that."""
    for url in ("redis://:sek/r@et@127.0.0.1:1/0", "postgresql://u:sekret@127.0.0.1:1/db"):
        ran = tool("counter", "add", "hits", "--lock-timeout", "0", TOOL_STORE=url)

        assert ran.code in ("STORE_UNAVAILABLE", "VALIDATION_ERROR")
        assert b"sek" not in ran.stdout + ran.stderr


def test_a_failed_task_is_tried_again_and_old_ones_are_removed(tool: Tool, workspace: Path) -> None:
    tool("task", "add", "mail", "x", "--id", "a")
    tool("task", "work", "mail", "--until-empty", "--max-attempts", "1", "--", "false")
    assert (
        tool("task", "retry", "a", "--dry-run").data
        == tool("task", "retry", "a").data
        == {"id": "a", "retried": 1, "effect": "updated"}
    )
    assert (
        tool("task", "clean", "--older-than", "0", "--status", "done,failed").data["removed"] == 0
    )
    tool("task", "work", "mail", "--until-empty", "--", "true")

    assert tool("task", "retry", "a").code == "TASK_NOT_FAILED"
    assert tool("task", "clean", "--older-than", "1h").data == {"removed": 0, "effect": "unchanged"}
    assert tool("task", "clean", "--older-than", "0", "--dry-run").data["removed"] == 1
    assert tool("task", "clean", "--older-than", "0").data == {"removed": 1, "effect": "deleted"}
    assert tool("task", "clean", "--older-than", "0", "--status", "free").status == 2
    assert tool("task", "list").data["tasks"] == []


def test_a_task_can_be_added_with_a_delay(tool: Tool, workspace: Path) -> None:
    tool("task", "add", "mail", "x", "--delay", "1h")

    assert tool("task", "claim", "mail").data["tasks"] == []
    assert "free_at" in tool("task", "list").data["tasks"][0]


def test_half_of_a_value_from_an_interrupted_producer_is_not_stored(
    tool: Tool, workspace: Path
) -> None:
    process = tool.start("state", "set", "k", "-")
    pipe = process.stdin
    assert pipe is not None
    pipe.write(b"first half of a long")
    pipe.flush()
    wait_until(
        lambda: ioctl(pipe, FIONREAD, bytes(4)) == bytes(4)
    )  # it has read that, and waits for more
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=30)

    assert json.loads(stdout)["error"]["code"] == "INTERRUPTED"
    assert tool("state", "get", "k").status == 5


def test_doctor_checks_the_store(tool: Tool, workspace: Path) -> None:
    tool("counter", "add", "hits")
    where = {probe["name"]: probe["where"] for probe in tool("doctor").data["probes"]}
    assert {
        "store is reachable",
        "store keeps what it acknowledges",
        "store and clock agree",
    } <= set(where)
    assert where["store is reachable"].endswith(f"({workspace}/.tool/state.db)")

    broken = tool("doctor", TOOL_STORE=f"sqlite://{workspace}/tool.toml")

    assert broken.code == "CHECKS_FAILED"
    assert "store is reachable" in broken.error["context"]["failed"]


def test_doctor_reports_that_a_store_does_not_exist_yet(tool: Tool, workspace: Path) -> None:
    def kept() -> dict[str, str]:
        (probe,) = [
            one
            for one in tool("doctor").data["probes"]
            if one["name"] == "store keeps what it acknowledges"
        ]
        return dict(probe)

    assert "does not exist yet" in kept()["detail"]
    tool("counter", "add", "hits")
    assert "does not exist yet" not in kept()["detail"]

    broken = tool("doctor", TOOL_STORE="sqlite:///proc/self/state.db")
    assert "store keeps what it acknowledges" in broken.error["context"]["failed"]


def test_doctor_finds_a_store_that_cannot_be_written(tool: Tool, workspace: Path) -> None:
    tool("counter", "add", "hits")
    with tool.stepped("doctor", watch=workspace) as stepped:
        stepped.run_until(lambda event: event.name == "open" and event.path.endswith("state.db"))
        stepped.fail(errno.EACCES)
        ended = stepped.finish()

    assert Ran(ended.status, ended.stdout, ended.stderr).error["context"]["failed"] == [
        "store is reachable"
    ]


def test_several_tasks_are_cancelled_and_each_has_a_result(tool: Tool, workspace: Path) -> None:
    tool("task", "add", "mail", "x", "y", "z", "--id", "a", "--id", "b", "--id", "c")
    tool("task", "claim", "mail")
    tool("task", "finish", "a:1")

    ran = tool("task", "cancel", "b", "a", "nope", "c", "b")

    assert (ran.status, ran.code) == (3, "NOT_ALL_CANCELLED")
    assert ran.error["message"] == "These tasks could not be cancelled: a, nope. The others were."
    done = ran.response["data"]
    assert done["effect"] == "updated"
    assert done["tasks"] == [
        {"id": "b", "ok": True, "effect": "updated"},
        {"id": "a", "ok": False, "code": "TASK_ENDED"},
        {"id": "nope", "ok": False, "code": "TASK_NOT_FOUND"},
        {"id": "c", "ok": True, "effect": "updated"},
    ]
    assert [task["status"] for task in tool("task", "list").data["tasks"]] == [
        "done",
        "cancelled",
        "cancelled",
    ]


def test_if_no_task_is_cancelled_the_error_is_the_reason_for_the_first_one(
    tool: Tool, workspace: Path
) -> None:
    tool("task", "add", "mail", "x", "--id", "a")
    tool("task", "claim", "mail")
    tool("task", "finish", "a:1")

    ran = tool("task", "cancel", "nope", "a")

    assert (ran.status, ran.code) == (5, "TASK_NOT_FOUND")
    assert [task["ok"] for task in ran.response["data"]["tasks"]] == [False, False]


def test_a_task_is_cancelled_shown_and_counted(tool: Tool, workspace: Path) -> None:
    tool("task", "add", "mail", "x", "y", "--id", "a", "--id", "b", "--max-attempts", "3")
    tool("task", "claim", "mail")

    finished = tool("task", "finish", "a:1", "--result", '{"sent": 3}')
    cancelled = tool("task", "cancel", "b")

    assert (finished.data["effect"], cancelled.data["effect"]) == ("updated", "updated")
    shown = tool("task", "show", "a").data
    assert (shown["task"]["status"], shown["result"], shown["max_attempts"]) == (
        "done",
        {"sent": 3},
        3,
    )
    assert cancelled.data["tasks"] == [{"id": "b", "ok": True, "effect": "updated"}]
    assert tool("task", "cancel", "a").code == "TASK_ENDED"
    (stats,) = tool("task", "stats").data["queues"]
    assert (stats["queue"], stats["done"], stats["cancelled"], stats["free"]) == ("mail", 1, 1, 0)
    assert [task["id"] for task in tool("task", "list", "--newest").data["tasks"]] == ["b", "a"]
    assert "result:   {" in tool("task", "show", "a", "--format", "text").text


def test_all_failed_tasks_of_a_queue_are_retried_by_one_command(
    tool: Tool, workspace: Path
) -> None:
    tool("task", "add", "mail", "x", "y")
    worked = tool(
        "task",
        "work",
        "mail",
        "--until-empty",
        "--max-attempts",
        "1",
        "--",
        "sh",
        "-c",
        "echo why; exit 3",
    )
    assert worked.code == "TASKS_FAILED"
    (failed, _) = tool("task", "list", "mail", "--status", "failed").data["tasks"]
    shown = tool("task", "show", failed["id"]).data
    assert (shown["exit_codes"], shown["failure_tail"]) == ([3], "why\n")

    forecast = tool("task", "retry", "--all", "mail", "--dry-run")
    retried = tool("task", "retry", "--all", "mail")

    assert (forecast.data["retried"], retried.data["retried"]) == (2, 2)
    assert tool("task", "retry", "--all", "mail").data == {"retried": 0, "effect": "unchanged"}
    assert tool("task", "retry").code == "VALIDATION_ERROR"
