"""ledger import"""

import json
import os
import signal
import tomllib
from pathlib import Path

import pytest

from ledger.kit.testing.tool import Tool, ended


def write_files(directory: Path, count: int) -> list[str]:
    """Write some files with one booking each, and return their names."""
    names = [f"{number}.csv" for number in range(count)]
    for name in names:
        (directory / name).write_text(f"{name},2026-01-31,cash,-350,Tea\n")
    return names


def test_importing_again_adds_only_new_bookings(tool: Tool, workspace: Path) -> None:
    tool("import", *write_files(workspace, 3))

    imported = tool("import", *write_files(workspace, 9)).data

    assert imported == {"effect": "updated", "bookings": 9, "new": 6}
    assert len(tomllib.loads((workspace / "bookings.toml").read_text())) == 9


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("tea-1,2026-01-31,cash,3.50,Tea", "INVALID_LINE"),
        ("tea-1,today,cash,350,Tea", "INVALID_LINE"),
        ("tea-1", "INVALID_LINE"),
        ("0.csv,2026-01-31,cash,999,Not tea", "DUPLICATE_BOOKING"),
    ],
)
def test_one_wrong_line_imports_nothing(
    tool: Tool,
    workspace: Path,
    line: str,
    code: str,
) -> None:
    names = write_files(workspace, 3)
    (workspace / "1.csv").write_text(f"good,2026-01-31,cash,1,Good\n{line}\n")

    error = tool("import", *names).error

    assert error["code"] == code
    assert not (workspace / "bookings.toml").exists()


def test_the_response_of_a_wrong_line_has_its_number(tool: Tool, workspace: Path) -> None:
    (workspace / "wrong.csv").write_text("good,2026-01-31,cash,1,Good\nwrong\n")

    context = tool("import", "wrong.csv").error["context"]

    assert (context["path"], context["line"]) == (str(workspace / "wrong.csv"), 2)


def test_each_file_is_an_event(tool: Tool, workspace: Path) -> None:
    ran = tool("import", *write_files(workspace, 2), "--format", "jsonl")

    *events, response = [json.loads(line) for line in ran.stdout.splitlines()]
    done = [event["name"] for event in events if event["event"] == "file_done"]
    assert done == [str(workspace / "0.csv"), str(workspace / "1.csv")]
    assert response["ok"]


def test_ctrl_c_imports_nothing(tool: Tool, workspace: Path) -> None:
    os.mkfifo(workspace / "slow.csv")
    process = tool.start("import", "slow.csv")

    # Opening the FIFO waits until the worker has opened it, too.
    with (workspace / "slow.csv").open("wb"):
        process.send_signal(signal.SIGINT)
        ran = ended(process)

    assert (ran.status, ran.code) == (-signal.SIGINT, "INTERRUPTED")
    assert not (workspace / "bookings.toml").exists()
