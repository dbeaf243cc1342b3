"""tool init"""

import os
import shlex
import tomllib

import pytest

from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Tool
from sampletool.sample.commands import build, init, test


def test_it_makes_a_workspace_in_which_the_examples_of_build_and_test_work(tool: Tool) -> None:
    """It starts Python 7 times, 40 ms each: targets and checks of the workspace are scripts for it."""
    init_demo, *examples = (call for command in (init, build, test) for call in command.spec.examples)

    ran = tool(*shlex.split(init_demo), "--format", "text")

    assert "tool build" in ran.text
    assert tomllib.loads((tool.cwd / "demo" / "tool.toml").read_text())["target"]
    demo = Tool(tool.environ, tool.cwd / "demo")
    assert {call: demo(*shlex.split(call)).status for call in examples} == dict.fromkeys(examples, 0)


def test_it_never_overwrites_and_says_what_is_in_the_way(tool: Tool) -> None:
    (tool.cwd / "tool.toml").write_text("mine")

    ran = tool("init")

    assert (ran.status, ran.code) == (6, "OUTPUT_EXISTS")
    assert "tool.toml" in ran.error["message"]
    assert os.listdir(tool.cwd) == ["tool.toml"]
    assert (tool.cwd / "tool.toml").read_text() == "mine"


@pytest.mark.parametrize("place", ["demo/data", "demo"])
@pytest.mark.parametrize("kind", ["file", "dangling link"])
def test_what_is_in_the_place_of_a_directory_is_reported_and_nothing_is_made(tool: Tool, place: str, kind: str) -> None:
    path = tool.cwd / place
    path.parent.mkdir(exist_ok=True)
    path.touch() if kind == "file" else path.symlink_to("nowhere")

    ran = tool("init", "demo")

    assert (ran.status, ran.code) == (6, "OUTPUT_EXISTS")
    assert "is in the way" in ran.error["message"]
    assert len(list(tool.cwd.rglob("*"))) == len(path.relative_to(tool.cwd).parts)


@pytest.mark.parametrize("name", ["", "-x", "a\nb"])
def test_what_is_no_name_for_a_directory_is_refused(tool: Tool, name: str) -> None:
    assert tool("init", "--", name).code == "UNSAFE_PATH"
    assert os.listdir(tool.cwd) == []


def test_many_at_once_make_one_workspace(tool: Tool) -> None:
    results = tool.together([["init", "demo"]] * scale(2, 20))

    assert {ran.status for ran in results} == {0}
    assert not [path for path in tool.cwd.rglob("*") if path.name.endswith(".tmp")]
    assert Tool(tool.environ, tool.cwd / "demo")("build", "--dry-run").status == 0


def test_nobody_writes_beside_another_who_makes_the_workspace(tool: Tool) -> None:
    with tool.stepped("init", "demo", watch=tool.cwd / "demo") as first:
        first.run_until("os.link")
        second = tool("init", "demo", "--lock-timeout", "0")
        made = first.finish()

    assert second.code == "LOCK_HELD"
    assert made.status == 0


def test_a_forecast_makes_nothing(tool: Tool) -> None:
    ran = tool("init", "demo", "--dry-run")

    assert "tool.toml" in ran.data["files"]
    assert os.listdir(tool.cwd) == []


def test_a_second_init_changes_nothing(tool: Tool) -> None:
    tool("init")
    before = {path: path.stat().st_mtime_ns for path in tool.cwd.rglob("*") if path.is_file()}

    assert tool("init").data["effect"] == "unchanged"

    assert {path: path.stat().st_mtime_ns for path in tool.cwd.rglob("*") if path.is_file()} == before


def test_init_that_was_killed_anywhere_can_be_run_again(tool: Tool) -> None:
    place, kills = 0, 0
    while True:
        directory = tool.cwd / f"demo-{place}"
        with tool.stepped("init", directory, watch=directory) as stepped:
            steps = 0
            while stepped.at is not None and steps < place:
                stepped.step()
                steps += 1
            has_ended = stepped.at is None

        ran = tool("init", directory)

        assert ran.data["effect"] in ("created", "unchanged")
        assert not [path for path in directory.rglob("*") if path.name.endswith(".tmp")]
        assert Tool(tool.environ, directory)("build", "--dry-run").status == 0
        if has_ended:
            break
        place, kills = place + scale(5, 1), kills + 1
    assert kills > 5
