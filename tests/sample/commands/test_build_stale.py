"""What tool build builds again, and why."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool
from tests.sample.support import (
    PATIENCE_SECONDS,
    UNTIL_GO,
    declare,
    reason,
    start,
    statuses,
    target,
)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("input", "the input data/sales.csv changed"),
        ("command", "its command changed"),
        ("new input", "the input data/more.csv is new"),
        ("output", "the output totals.json was changed"),
        ("no link", "out/totals does not lead to the last build"),
        ("another link", "out/totals does not lead to the last build"),
    ],
)
def test_a_stale_target_is_built_again_and_the_response_says_why(
    tool: Tool, totals: Path, change: str, why: str
) -> None:
    toml = totals / "tool.toml"
    toml.write_text(toml.read_text().replace('"data/sales.csv"]', '"data/*.csv"]', 1))
    tool("build")
    if change == "input":
        with (totals / "data" / "sales.csv").open("a") as file:
            file.write("north,1\n")
    elif change == "new input":
        (totals / "data" / "more.csv").touch()
    elif change == "output":
        (totals / "out" / "totals" / "totals.json").chmod(0o644)
        os.truncate(totals / "out" / "totals" / "totals.json", 0)
    elif change == "no link":
        (totals / "out" / "totals").unlink()
    elif change == "another link":
        link = totals / "out" / "totals"
        version = link.readlink().name
        link.unlink()
        link.symlink_to(f"/nonexistent/{version}")
    else:
        toml.write_text(toml.read_text().replace("wc -l <", "wc -w <"))

    predicted, ran = tool("build", "--dry-run"), tool("build")

    assert reason(ran, "totals") == reason(predicted, "totals") == why
    assert statuses(ran.data)["totals"] == "built"
    assert json.loads((totals / "out" / "totals" / "totals.json").read_text())


def test_touching_a_file_without_changing_it_builds_nothing(tool: Tool, totals: Path) -> None:
    tool("build")
    os.utime(totals / "data" / "sales.csv")

    assert tool("build").data["effect"] == "unchanged"


def test_a_target_is_stale_when_what_it_needs_came_out_differently(tool: Tool) -> None:
    declare(tool, target("a", "date +%N > x") + target("b", "cp out/a/x x", needs="'a'"))
    tool("build")
    (tool.cwd / "out" / "a" / "x").unlink()

    tool("build", "a")
    ran = tool("build")

    assert statuses(ran.data) == {"a": "up_to_date", "b": "built"}
    assert (tool.cwd / "out" / "b" / "x").read_text() == (tool.cwd / "out" / "a" / "x").read_text()


def test_a_target_is_not_built_when_what_it_needs_came_out_the_same(tool: Tool) -> None:
    declare(
        tool,
        target("a", "sort in > x", inputs="'in'")
        + target("b", "cp out/a/x x", needs="'a'")
        + target("c", "cp out/b/x x", needs="'b'")
        + target("d", "cat out/a/x extra > x", needs="'a'", inputs="'extra'"),
    )
    (tool.cwd / "in").write_text("1\n2\n")
    (tool.cwd / "extra").write_text("one")
    tool("build")
    (tool.cwd / "in").write_text("2\n1\n")
    (tool.cwd / "extra").write_text("two")

    ran = tool("build")

    assert statuses(ran.data) == {"a": "built", "b": "up_to_date", "c": "up_to_date", "d": "built"}
    assert set(statuses(tool("build").data).values()) == {"up_to_date"}


def test_a_target_whose_input_changes_while_it_is_built_is_built_again(tool: Tool) -> None:
    (tool.cwd / "in").write_text("AAAA")
    declare(tool, target("a", f"{UNTIL_GO}; cp in x", inputs="'in'"))
    process = start(tool, "build")
    (tool.cwd / "in").write_text("BBBB")
    (tool.cwd / "go").touch()
    stdout, _ = process.communicate(timeout=PATIENCE_SECONDS)
    (tool.cwd / "in").write_text("AAAA")

    assert "changed while it ran" in json.loads(stdout)["data"]["targets"][0]["note"]
    assert statuses(tool("build").data) == {"a": "built"}
    assert (tool.cwd / "out" / "a" / "x").read_text() == "AAAA"
    assert statuses(tool("build").data) == {"a": "up_to_date"}


def test_a_target_whose_need_changes_while_it_is_built_is_built_again(tool: Tool) -> None:
    needy = target("b", f"{UNTIL_GO}; cat out/a/x in > x", needs="'a'", inputs="'in'")
    declare(tool, target("a", "echo good > x") + needy)
    (tool.cwd / "in").write_text("one")
    process = start(tool, "build", name="b")
    output = tool.cwd / "out" / "a" / "x"
    output.chmod(0o644)
    output.write_text("")
    (tool.cwd / "go").touch()
    process.communicate(timeout=PATIENCE_SECONDS)

    tool("build", "a")
    tool("build")

    assert (tool.cwd / "out" / "b" / "x").read_text() == "good\none"


def test_a_target_is_built_again_if_the_directory_of_its_input_was_exchanged(tool: Tool) -> None:
    for version in ("one", "two"):
        (tool.cwd / version).mkdir()
        (tool.cwd / version / "in").write_text(version)
    (tool.cwd / "now").symlink_to("one")
    declare(tool, target("a", f"{UNTIL_GO}; cat now/in > x", inputs="'now/in'"))
    process = start(tool, "build")
    for version in ("two", "one"):
        (tool.cwd / "now").unlink()
        (tool.cwd / "now").symlink_to(version)
        if version == "two":
            (tool.cwd / "go").touch()
            process.communicate(timeout=PATIENCE_SECONDS)

    tool("build")

    assert (tool.cwd / "out" / "a" / "x").read_text() == "one"


def test_an_output_that_is_no_longer_executable_has_changed(tool: Tool) -> None:
    (tool.cwd / "in").write_text("x")
    needy = "test -x out/a/x && echo yes > x || echo no > x"
    declare(
        tool,
        target("a", "touch x; test -s in && chmod +x x; true", inputs="'in'")
        + target("b", needy, needs="'a'"),
    )
    tool("build")
    (tool.cwd / "in").write_text("")

    ran = tool("build")

    assert statuses(ran.data) == {"a": "built", "b": "built"}
    assert (tool.cwd / "out" / "b" / "x").read_text() == "no\n"


def test_a_file_added_to_the_outputs_makes_the_target_stale(tool: Tool) -> None:
    meddling = target("b", "touch out/a/extra x", needs="'a'")
    declare(tool, target("a", "touch x") + meddling + target("c", "ls out/a > x", needs="'a', 'b'"))

    ran = tool("build")

    assert [told.get("note", "")[:22] for told in ran.data["targets"]] == [
        "",
        *["the needed target a ch"] * 2,
    ]
    assert (
        reason(tool("build", "--dry-run"), "a")
        == "a file was added to its outputs, or removed from them"
    )


@pytest.mark.parametrize(
    ("script", "change", "why"),
    [
        ("ls *.txt > x", "rm two.txt", "the input two.txt is gone"),
        ("mkdir x", "rmdir out/a/x", "the output x is missing"),
        (
            "mkdir x; echo > x/one",
            "touch out/a/x/two",
            "a file was added to its outputs, or removed from them",
        ),
    ],
)
def test_a_missing_or_additional_file_makes_its_target_stale(
    tool: Tool, script: str, change: str, why: str
) -> None:
    declare(tool, target("a", script, inputs="'*.txt'"))
    for name in ("one.txt", "two.txt"):
        (tool.cwd / name).touch()
    tool("build")
    subprocess.run(["sh", "-c", change], cwd=tool.cwd, check=True)

    assert reason(tool("build"), "a") == why
    assert (tool.cwd / "out" / "a" / "x").exists()
