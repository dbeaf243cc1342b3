"""What the commands of the kit say to a person."""

import re
from pathlib import Path

import pytest

from sampletool.kit.commands.lock.list import HeldLock
from sampletool.kit.commands.lock.list import Listing as Locks
from sampletool.kit.commands.lock.release import Released
from sampletool.kit.commands.session.list import Listing as Sessions
from sampletool.kit.contract.table import laid_out
from sampletool.kit.safety.holder import Holder
from sampletool.kit.safety.session import SessionState
from sampletool.kit.testing.tool import Tool


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("config get level", r"1\n"),
        ("config list", r"KEY +VALUE +SOURCE\n(.+\n)*level +1 +project\n(.+\n)*"),
        ("config explain level", r"level = 1\n-> project: 1  \(/.+/tool.toml\)\n"),
        ("config explain jobs", r"jobs = auto\nHow many .+\n-> default: auto  \(default\)\n"),
        ("config path", r"/.+/tool.toml\n"),
        ("config set level 2", r"level: updated \(project settings, /.+\)\n"),
        (
            "config unset level --dry-run",
            r"Dry run, nothing was changed\. The result would be:\nlevel: deleted \(project settings, /.+\)\n",
        ),
        ("lock list", r"No lock is held\.\n"),
        ("session list", r"No session has left anything\.\n"),
        ("session clean", r"Nothing has been unused for 7d \(session_ttl\)\.\n"),
        ("log", r"No such call is in the log\.\n"),
        ("manifest", r"COMMAND +EFFECT +WHAT IT DOES\n(.+\n)*config get +nothing +Show the value of a key\.\n(.+\n)*"),
        ("manifest --skill", r"---\nname: (.*\n)+\| `config get` \| nothing \| .+ \|\n(.+\n)*"),
        ("manifest config get", r'\{\n(.+\n)* +"summary": "Show the value of a key.",\n(.+\n)*\}\n'),
        ("doctor", r"/.+\n(.*\n)*  ok +writable\n(.*\n)+python +3\..+\n(.*\n)+"),
    ],
)
def test_each_command_says_its_answer_in_lines(tool: Tool, workspace: Path, words: str, said: str) -> None:
    (workspace / "tool.toml").write_text("[settings]\nlevel = 1\n")

    ran = tool(*words.split(), "--format", "text")

    assert ran.status == 0
    assert re.fullmatch(said, ran.text), ran.text


def test_calls_that_are_logged_are_a_table(tool: Tool, workspace: Path) -> None:
    tool("config", "get", "no_such_key")

    lines = tool("log", "--format", "text").text.splitlines()

    assert lines[0].split() == ["AT", "COMMAND", "ENDED", "TOOK", "ABOUT"]
    assert re.fullmatch(r"\S+Z +config\.get +KEY_NOT_FOUND +\S+ +no_such_key", lines[1]), lines


def test_held_locks_and_sessions_are_tables() -> None:
    holder = Holder(7, "running", True, command="build", age_ms=2000)
    session = SessionState(
        session_id="mine",
        last_used_at="2026-11-19T00:00:00Z",
        in_use_by=[7, 8],
        path="/tmp/mine",
    )

    assert laid_out(Locks([HeldLock("build", "/l", False, [holder])]).lines(), None, colour=False) == [
        "LOCK   STATE    COMMAND  BY",
        "build  running  build    process 7, started 2s ago",
    ]
    assert laid_out(Sessions([session]).lines(), None, colour=False) == [
        "SESSION  LAST USED             USED BY  PATH",
        "mine     2026-11-19T00:00:00Z  7, 8     /tmp/mine",
    ]


def test_a_released_lock_names_what_was_ended() -> None:
    assert Released("unchanged", "build", []).lines() == ["build: nothing was left behind."]
    assert Released("deleted", "build", [7]).lines() == ["build: ended 7, left behind by a holder that has ended."]
