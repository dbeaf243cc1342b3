"""What the commands of the kit show to a person."""

import re
from pathlib import Path

import pytest

from sampletool.kit.commands.session.list import Listing as Sessions
from sampletool.kit.contract.table import laid_out
from sampletool.kit.safety.session import SessionState
from sampletool.kit.testing.tool import Tool


@pytest.mark.parametrize(
    ("arguments", "pattern"),
    [
        ("config get level", r"1\n"),
        ("config list", r"KEY +VALUE +SOURCE\n(.+\n)*level +1 +project\n(.+\n)*"),
        ("config explain level", r"level = 1\n-> project: 1  \(/.+/tool.toml\)\n"),
        ("config explain jobs", r"jobs = auto\nHow many .+\n-> default: auto  \(default\)\n"),
        ("config path", r"/.+/tool.toml\n"),
        ("config set level 2", r"level: updated \(project settings, /.+\)\n"),
        (
            "config unset level --dry-run",
            r"Dry run, nothing was changed\. The result would be:\n"
            r"level: deleted \(project settings, /.+\)\n",
        ),
        ("lock list", r"No lock is held\.\n"),
        ("session list", r"There is no session\.\n"),
        ("session clean", r"No session has been unused for 7d \(session_ttl\)\.\n"),
        ("log", r"The log has no matching command\.\n"),
        (
            "manifest",
            r"COMMAND +EFFECT +WHAT IT DOES\n(.+\n)*"
            r"config get +nothing +Show the value of a key\.\n(.+\n)*",
        ),
        ("manifest --skill", r"---\nname: (.*\n)+\| `config get` \| nothing \| .+ \|\n(.+\n)*"),
        (
            "manifest config get",
            r'\{\n(.+\n)* +"summary": "Show the value of a key.",\n(.+\n)*\}\n',
        ),
        ("doctor", r"\S+ +\S+\npython +3\..+\n(.*\n)+/.+\n(.*\n)*  ok +writable\n(.*\n)+"),
    ],
)
def test_each_command_shows_its_result_as_text(
    tool: Tool,
    workspace: Path,
    arguments: str,
    pattern: str,
) -> None:
    (workspace / "tool.toml").write_text("[settings]\nlevel = 1\n")

    ran = tool(*arguments.split(), "--format", "text")

    assert ran.status == 0
    assert re.fullmatch(pattern, ran.text), ran.text


def test_sessions_are_a_table() -> None:
    session = SessionState(
        session_id="mine",
        last_used_at="2026-11-19T00:00:00Z",
        in_use_by=[7, 8],
        path="/tmp/mine",
    )

    lines = laid_out(Sessions([session], next_cursor=None).lines(), None, colour=False)

    assert lines == [
        "SESSION  LAST USED             USED BY  PATH",
        "mine     2026-11-19T00:00:00Z  7, 8     /tmp/mine",
    ]
