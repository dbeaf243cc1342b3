"""sampletool/state/commands/_store.py: results as lines, and the specs of all commands."""

from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool
from sampletool.state.commands import _store
from sampletool.state.errors import ERRORS_OF_READS, ERRORS_OF_WRITES
from tests.state.support.specs import CHANGING_ERRORS, PROMISES, READING_ERRORS, wrong_promises


@pytest.mark.parametrize("group", ["counter", "state", "task"])
def test_each_command_promises_what_the_table_says(group: str) -> None:
    assert wrong_promises(group) == []


def test_the_table_has_every_command() -> None:
    commands = set()
    for file in Path(_store.__file__).parent.glob("*/*.py"):
        if file.name != "__init__.py":
            commands.add(f"{file.parent.name} {file.stem}")

    assert set(PROMISES) == commands


def test_every_command_names_the_errors_of_its_kind() -> None:
    assert {error.code for error in ERRORS_OF_READS} == READING_ERRORS
    assert {error.code for error in ERRORS_OF_WRITES} == CHANGING_ERRORS


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        (_store.TaskChanged("ann", "updated"), "ann updated"),
        (_store.TaskChanged("ann", "updated", 3), "ann:3 updated"),
        (_store.TaskChanged("ann", "updated", 3, "9:30"), "ann:3 until 9:30"),
    ],
)
def test_a_changed_task_is_shown_with_its_claim_and_lease(
    changed: _store.TaskChanged, line: str
) -> None:
    assert changed.lines() == [line]


def test_a_counter_is_shown_with_its_name_after_a_change() -> None:
    assert _store.Counter("hits", 3).lines() == ["3"]
    assert _store.Counter("hits", 3, "updated").lines() == ["hits = 3"]


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize(
    ("args", "param"),
    [
        (["state", "set", "key", "x\udcff"], "VALUE"),
        (["state", "set", "x\udcff", "value"], "KEY"),
        (["task", "add", "mail", "good", "x\udcff"], "[BODY...]"),
        (["task", "add", "x\udcff", "good"], "QUEUE"),
        (["task", "finish", "ann:1", "--result", "x\udcff"], "--result"),
        (["counter", "add", "x\udcff"], "NAME"),
    ],
)
def test_text_that_is_not_utf8_is_refused_as_on_stdin(
    tool: Tool, args: list[str], param: str
) -> None:
    refused = tool(*args)

    assert (refused.status, refused.code) == (2, "USAGE_ERROR")
    (mistake,) = refused.error["errors"]
    assert mistake["param"] == param
    assert mistake["message"].endswith("'x\\xff' is not UTF-8 text")


@pytest.mark.usefixtures("workspace")
def test_names_in_lists_are_marked_because_others_may_have_chosen_them(tool: Tool) -> None:
    def untrusted_members(*args: str) -> set[str]:
        return set(tool(*args).meta["untrusted"])

    assert untrusted_members("state", "list") == {"values.key", "values.value"}
    assert untrusted_members("counter", "list") == {"counters.name"}
    assert untrusted_members("task", "stats") == {"queues.queue"}
    assert untrusted_members("task", "list") == {
        "tasks.id",
        "tasks.queue",
        "tasks.body",
        "tasks.claimed_by",
    }
