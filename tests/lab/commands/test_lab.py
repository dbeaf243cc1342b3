"""tool lab list, run, check and prove"""

import json
import os
import re
import shlex
from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool
from sampletool.lab.commands.lab.check import Check, Explored, VariantReport
from sampletool.lab.levels import names_by_level, names_in_order
from sampletool.lab.scenario import find_scenario, scenario_names


def test_the_list_names_every_scenario_with_its_rule(tool: Tool) -> None:
    listed = tool("lab", "list").data["scenarios"]

    assert [scenario["name"] for scenario in listed] == names_in_order()
    assert sorted(names_in_order()) == scenario_names()
    assert listed[0]["level"] == "start here"
    assert all(scenario["rule"].endswith(".") for scenario in listed)


def test_the_pages_of_the_list_follow_one_another(tool: Tool) -> None:
    first = tool("lab", "list", "--limit", "3")
    cursor = first.response["meta"]["next_cursor"]
    second = tool("lab", "list", "--after", cursor)

    listed = [*first.data["scenarios"], *second.data["scenarios"]]
    assert [scenario["name"] for scenario in listed] == names_in_order()
    assert tool("lab", "list", "--after", "lab.list:x").code == "VALIDATION_ERROR"


def test_at_a_terminal_the_list_is_a_table_that_is_not_cut_at_80_columns(tool: Tool) -> None:
    lines = tool("lab", "list", "--format", "text", COLUMNS="80").text.splitlines()

    column = lines[0].index("RACE")
    levels = [f"{level}:" for level in names_by_level()]
    rows = lines[1 : len(scenario_names()) + len(levels) + 1]
    shown_names = [row[:column].strip() for row in rows if row not in levels]
    assert shown_names == names_in_order()
    assert [row for row in rows if row in levels] == levels
    assert max(map(len, lines)) <= 80
    assert not any("…" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("lab run lost-config-update --variant wrong", ["wrong-rename", "wrong-two-locks"]),
        ("lab run lost-config-update --variant nai", ["naive"]),
        ("lab run --variant nai", []),
        ("lab run nosuch --variant nai", []),
    ],
)
def test_the_ways_of_the_scenario_that_is_named_are_offered(
    tool: Tool, words: str, offered: list[str]
) -> None:
    position = str(len(words.split()))

    ran = tool(_TOOL_COMPLETE="complete_bash", COMP_WORDS=f"tool {words}", COMP_CWORD=position)

    assert (ran.status, ran.stderr, sorted(ran.text.split())) == (0, b"", offered)


def test_a_run_shows_what_went_wrong_and_what_the_fix_is(tool: Tool) -> None:
    said = tool("lab", "run", "lost-config-update", "--format", "text").text

    assert "4              write   jobs B   <== broken" in said
    assert "BROKEN  schedule A1 B1 A2 B2" in said
    assert "B wrote back the text that it had read before A wrote" in " ".join(said.split())
    assert "one lock from the read to the write" in " ".join(said.split())
    assert "HOLDS  schedule A1 B1 A2 A3 B2 B3" in said


def test_an_answer_carries_the_events_and_is_the_same_every_time(tool: Tool) -> None:
    one, other = (tool("lab", "run", "lost-config-update").data for _ in range(2))

    assert one == other
    broken, held = one["runs"]
    assert (broken["verdict"], held["verdict"]) == ("broken", "holds")
    assert [event["worker"] + str(event["number"]) for event in broken["events"]] == broken[
        "schedule"
    ].split()
    assert json.dumps(one).find("/tmp") == -1


def test_without_a_name_a_few_are_shown_in_short_and_fit_the_terminal(tool: Tool) -> None:
    said = tool("lab", "run", "--format", "text", COLUMNS="60").text

    assert "BROKEN  naive: reads the file, adds the key" in said
    assert "HOLDS  fixed: runs `tool config set`" in said
    assert "Rule: An atomic write is not an atomic update" in said
    assert f"{len(scenario_names())}, in two minutes" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 60


def test_a_story_fits_the_terminal_and_has_a_legend(tool: Tool) -> None:
    said = tool("lab", "run", "lost-config-update", "--format", "text", COLUMNS="80").text

    links = [line for line in said.splitlines() if line.startswith("https://")]
    assert max(len(line) for line in said.splitlines() if line not in links) <= 80
    assert "Signs: A1 is A's first step" in said


def test_a_good_schedule_of_the_naive_way_holds(tool: Tool) -> None:
    (run,) = tool("lab", "run", "lost-config-update", "--schedule", "A1 A2 B1 B2").data["runs"]

    assert (run["variant"], run["schedule"], run["verdict"]) == ("naive", "A1 A2 B1 B2", "holds")


def test_three_take_part_if_asked_to(tool: Tool) -> None:
    (run,) = tool("lab", "run", "lost-config-update", "--variant", "fixed", "--workers", "3").data[
        "runs"
    ]

    assert run["workers"] == ["A", "B", "C"]
    assert run["verdict"] == "holds"


def test_a_check_counts_the_schedules_and_the_broken_ones(tool: Tool) -> None:
    check = tool("lab", "check", "reused-pid").data

    counts = {}
    for each in check["variants"]:
        counts[each["variant"]] = (each["named_steps"]["schedules"], each["named_steps"]["broken"])
    assert counts == {"fixed": (3, 0), "naive": (6, 1), "wrong-same-name": (4, 1)}
    assert check["is_as_expected"]


def test_a_check_states_its_bound_and_calls_nothing_proved(tool: Tool) -> None:
    check = tool("lab", "check", "reused-pid")
    text = tool("lab", "check", "reused-pid", "--format", "text").text

    assert (check.data["workers"], check.data["rounds"], check.data["strikes"]) == (2, 1, [])
    assert any("threads" in each for each in check.data["not_explored"])
    fixed = check.data["variants"][0]
    assert fixed["every_step"]["is_complete"]
    assert "Explored: 2 workers, 1 round each, no kills." in text
    assert (
        f"with every call as a step: {fixed['every_step']['schedules']} schedules: 0 broken" in text
    )
    assert "Not explored: " in text
    assert not re.search("prove|proof", text + json.dumps(check.data))


def test_the_old_name_of_check_does_the_same_and_has_a_warning(tool: Tool) -> None:
    old = tool("lab", "prove", "reused-pid")

    assert old.data == tool("lab", "check", "reused-pid").data
    message = "`tool lab prove` is deprecated. Use `tool lab check`."
    assert old.response["warnings"] == [{"code": "DEPRECATED", "message": message}]


@pytest.mark.parametrize("name", scenario_names())
def test_the_commands_that_a_check_prints_fit_80_columns_and_can_be_copied(name: str) -> None:
    longest = "A1 A2 A3!1 B1 B2 B3 B4 B5 B6"
    explored = Explored(schedules=1, broken=1, is_complete=True, reasons={}, example=longest)
    variants = [
        VariantReport(variant, explored, explored, 2) for variant in find_scenario(name).variants
    ]
    check = Check(
        scenario=name,
        is_as_expected=True,
        surprises=[],
        workers=2,
        rounds=1,
        strikes=[],
        not_explored=[],
        variants=variants,
    )

    lines = check.lines()

    # The program of another project may have a longer name.
    assert max(len(line.replace("tool lab", "a-long-program-name lab")) for line in lines) <= 80
    first = next(number for number, line in enumerate(lines) if "for example: " in line)
    copied = "\n".join(lines[first : first + 3]).partition(": ")[2].replace("\\\n", "")
    assert shlex.split(copied)[-2:] == ["--schedule", longest]


def test_a_check_that_is_interrupted_leaves_nothing_behind(tool: Tool) -> None:
    process = tool.start("lab", "check", "--all")
    assert process.stdin is not None
    scratch = Path(os.environ["TMPDIR"])
    while not list(scratch.glob("tool-lab-*")):
        assert process.poll() is None

    process.terminate()
    stdout, _ = process.communicate(timeout=60)

    assert json.loads(stdout)["error"]["code"] == "INTERRUPTED"
    assert list(scratch.glob("tool-lab-*")) == []


def test_luck_is_counted_and_not_judged(tool: Tool) -> None:
    lucky = tool("lab", "run", "interleaved-log", "--by-luck", "--runs", "3").data

    assert lucky["runs"] == 3
    assert 0 <= lucky["broken"] <= 3
    assert tool("lab", "run", "torn-write", "--by-luck").code == "VALIDATION_ERROR"


@pytest.mark.parametrize(
    ("arguments", "problems"),
    [
        (["--runs", "5"], ["--runs needs --by-luck"]),
        # The default is refused as well if somebody writes it.
        (["--runs", "60"], ["--runs needs --by-luck"]),
        (
            ["--runs", "5", "--every-step"],
            ["--every-step needs --schedule", "--runs needs --by-luck"],
        ),
        (
            ["--by-luck", "--schedule", "A1 B1", "--svg", "run.svg"],
            ["--schedule cannot be used with --by-luck", "--svg cannot be used with --by-luck"],
        ),
    ],
)
def test_all_options_that_would_have_no_effect_are_refused(
    tool: Tool, arguments: list[str], problems: list[str]
) -> None:
    ran = tool("lab", "run", "interleaved-log", *arguments)

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert [mistake["message"] for mistake in ran.error["errors"]] == problems
    assert list(tool.cwd.iterdir()) == []


def test_a_picture_is_written_where_asked(tool: Tool) -> None:
    tool("lab", "run", "lost-config-update", "--svg", "run.svg")

    assert (tool.cwd / "run.svg").read_text().startswith("<svg")


def test_nothing_is_left_behind(tool: Tool) -> None:
    before = sorted(os.walk(os.environ["TMPDIR"]))

    tool("lab", "run", "torn-write")  # with the disks that a power cut may leave
    tool("lab", "check", "reused-pid")

    assert sorted(os.walk(os.environ["TMPDIR"])) == before
    assert list(tool.cwd.iterdir()) == []


def test_mistakes_are_usage_errors(tool: Tool) -> None:
    assert tool("lab", "run", "lost-config-update", "--variant", "wrong").code == "VALIDATION_ERROR"
    assert (
        tool("lab", "run", "lost-config-update", "--schedule", "A1 A1").code == "VALIDATION_ERROR"
    )
    assert (
        tool("lab", "run", "--workers", "3").error["suggestion"]
        == "Name a scenario; `tool lab list` shows them."
    )
    unknown = tool("lab", "run", "lost-config-updat")
    assert (unknown.status, unknown.code) == (5, "SCENARIO_NOT_FOUND")
    assert "'lost-config-update'" in unknown.error["suggestion"]
    assert tool("lab", "run", "--all", "--workers", "3").code == "VALIDATION_ERROR"
    assert tool("lab", "check").code == "VALIDATION_ERROR"
