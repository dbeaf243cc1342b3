"""What another user planted in a workspace is neither followed nor emptied."""

import json
import os
from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool
from tests.sample.support import declare, target


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """Return a directory of a user, with things in it that must stay as they are."""
    place = tmp_path / "victim"
    (place / "project" / "deep").mkdir(parents=True)
    (place / "file").write_text("mine")
    (place / "project" / "deep" / "file").write_text("mine")
    return place


def contents(place: Path) -> set[str]:
    return {
        f"{path.relative_to(place)}: {path.read_text() if path.is_file() else ''}"
        for path in place.rglob("*")
    }


def plant(tool: Tool, name: str, leads_to: Path) -> None:
    path = tool.cwd / ".tool" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    for parent in (tool.cwd / ".tool", path.parent):
        parent.chmod(0o755)
    path.symlink_to(leads_to)


@pytest.mark.parametrize("name", ["tmp", "out", "locks", "locks/build.lock.readers", "built.jsonl"])
def test_a_link_in_the_place_of_something_of_ours_is_not_followed(
    tool: Tool, victim: Path, name: str
) -> None:
    declare(tool, target("a", "echo > x"))
    plant(tool, name, victim / "file" if name == "built.jsonl" else victim)
    if "/" in name:
        (tool.cwd / ".tool" / "locks" / "build.lock").touch(mode=0o600)
    before = contents(victim)

    for call in (["build"], ["lock", "list"], ["config", "set", "a", "1"], ["build"], ["test"]):
        assert tool(*call).response

    assert contents(victim) == before


def test_a_dangling_link_is_not_written_through(tool: Tool, tmp_path: Path) -> None:
    declare(tool, "")
    plant(tool, ".gitignore", tmp_path / "made")

    assert tool("config", "set", "a", "1").status == 0

    assert not (tmp_path / "made").exists()


def test_init_does_not_write_into_a_link(tool: Tool, victim: Path) -> None:
    (tool.cwd / "scripts").symlink_to(victim)
    before = contents(victim)

    assert tool("init").code == "OUTPUT_EXISTS"

    assert contents(victim) == before


def test_a_link_in_the_place_of_all_outputs_is_reported(tool: Tool, victim: Path) -> None:
    declare(tool, target("a", "echo > x"))
    (tool.cwd / "out").symlink_to(victim)

    ran = tool("build")

    assert ran.code == "VALIDATION_ERROR"
    assert "is not a directory of ours" in ran.error["context"]["problems"][0]


@pytest.mark.parametrize("place", ["out", ".tool/out"])
def test_what_is_in_the_way_of_all_outputs_is_reported_before_anything_runs(
    tool: Tool, place: str
) -> None:
    declare(tool, target("a", "touch $TOOL_WORKSPACE/ran; echo > x"))
    (tool.cwd / ".tool").mkdir(mode=0o700)
    (tool.cwd / place).touch()

    assert tool("build").status in (2, 7)
    assert not (tool.cwd / "ran").exists()


def test_an_output_below_a_link_is_not_taken_from_where_that_leads(
    tool: Tool, victim: Path
) -> None:
    before = contents(victim)
    declare(tool, target("a", f"ln -s {victim} sub", output="sub/file"))

    ran = tool("build")

    assert "did not write its output" in ran.response["data"]["targets"][0].get("note", "")
    assert contents(victim) == before


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '["a",{"inputs":1}]',
        '["a",{"inputs":{"in":[]}}]',
        '["a",{"version":"../../x"}]',
        "7",
    ],
)
def test_a_journal_that_makes_no_sense_is_as_if_it_were_not_there(tool: Tool, line: str) -> None:
    declare(tool, target("a", "echo > x"))
    tool("build")
    journal = tool.cwd / ".tool" / "built.jsonl"
    whole = json.loads(journal.read_text())
    told = json.loads(line) if line.startswith('["a"') else None
    journal.write_text(json.dumps(["a", whole[1] | told[1]]) if told else line)

    assert [target["status"] for target in tool("build").data["targets"]] == ["built"]
    assert [target["status"] for target in tool("build").data["targets"]] == ["up_to_date"]


def test_a_fifo_or_garbage_in_the_place_of_the_journal_is_no_wait_and_no_crash(tool: Tool) -> None:
    declare(tool, target("a", "echo > x"))
    tool("build")
    journal = tool.cwd / ".tool" / "built.jsonl"
    journal.write_text('[1,2]\n["a",{}]\n{"x":1}\n')
    assert tool("build").status == 0

    journal.unlink()
    os.mkfifo(journal)
    assert tool("build", "--timeout", "10s").code == "UNSAFE_PATH"


def test_stray_things_among_the_scratch_directories_do_no_harm(tool: Tool) -> None:
    declare(tool, target("a", "echo > x"))
    tool("build")
    (tool.cwd / ".tool" / "tmp" / ".DS_Store").touch()
    (tool.cwd / ".tool" / "tmp" / "loop").symlink_to("loop")
    declare(tool, target("a", "echo 2 > x"))

    assert tool("build").status == 0
