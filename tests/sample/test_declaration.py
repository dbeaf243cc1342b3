"""sampletool/sample/declaration.py: one table is read, and all of its problems are found."""

from typing import Any

import pytest

from sampletool.sample.declaration import read_job
from sampletool.sample.job import Job, Kind

TARGETS = ("report", "totals")


def read(kind: Kind, name: str, table: object) -> tuple[Job, list[str]]:
    """Return the job in a table, and its problems. No table raises an error."""
    try:
        job, problems = read_job(kind, name, table, TARGETS)
    except Exception as error:
        pytest.fail(f"the table raises {error!r}")
    return job, problems


def problems_of(kind: Kind, name: str = "t", **members: Any) -> list[str]:
    """Return what is wrong with a table that has these members besides those that are required."""
    table: dict[str, Any] = {"run": ["make"]}
    if kind == "target":
        table["outputs"] = ["x"]
    _job, problems = read(kind, name, {**table, **members})
    return problems


def test_all_members_of_a_table_are_in_the_job() -> None:
    table = {
        "run": ["make", "it"],
        "inputs": ["data/*.csv"],
        "outputs": ["x", "y"],
        "needs": ["report"],
        "env": {"LEVEL": "3"},
    }

    job, problems = read("target", "t", table)

    assert problems == []
    assert job == Job(
        name="t",
        run=("make", "it"),
        inputs=("data/*.csv",),
        outputs=("x", "y"),
        needs=("report",),
        env={"LEVEL": "3"},
    )


def test_a_check_needs_no_outputs() -> None:
    job, problems = read("check", "c", {"run": ["test"]})

    assert problems == []
    assert job == Job(name="c", run=("test",))


def test_everything_else_than_a_table_is_refused() -> None:
    assert read("target", "t", ["run"]) == (Job("t"), ["it is not a table"])


@pytest.mark.parametrize("table", [{}, {"run": [], "outputs": []}])
def test_a_target_without_a_command_or_outputs_is_refused(table: dict[str, Any]) -> None:
    _job, problems = read("target", "t", table)

    assert problems == [
        "run is missing: the command as a list, such as ['python3', 'make.py']",
        "outputs is missing: the files that the command writes",
    ]


@pytest.mark.parametrize("kind", ["target", "check"])
def test_an_unknown_member_is_refused_with_a_similar_name(kind: Kind) -> None:
    assert problems_of(kind, input=["a"]) == ["unknown member 'input' (Did you mean 'inputs'?)"]
    assert problems_of(kind, colour="red") == ["unknown member 'colour'"]


def test_a_check_cannot_have_outputs() -> None:
    assert problems_of("check", outputs=["x"]) == [
        "unknown member 'outputs' (Did you mean 'inputs'?)"
    ]


@pytest.mark.parametrize("member", ["run", "inputs", "outputs", "needs"])
@pytest.mark.parametrize("value", ["a", [1], [""], ["a\0b"], {"a": "b"}])
def test_a_member_that_is_no_list_of_texts_is_refused(member: str, value: object) -> None:
    members: dict[str, Any] = {member: value}

    assert problems_of("target", **members) == [f"{member} must be a list of strings"]


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        ("LEVEL=3", "env must be a table, such as { LEVEL = '3' }"),
        ({"A-B": "1"}, "env: 'A-B' is not the name of a variable"),
        ({"1A": "1"}, "env: '1A' is not the name of a variable"),
        ({"Ä": "1"}, "env: 'Ä' is not the name of a variable"),
        ({"TOOL_JOBS": "1"}, "env: TOOL_JOBS belongs to the tool"),
        ({"LEVEL": 3}, "env: LEVEL must be a string"),
        ({"LEVEL": "\0"}, "env: LEVEL must be a string"),
    ],
)
def test_a_wrong_environment_is_refused(env: object, problem: str) -> None:
    job, problems = read("check", "c", {"run": ["test"], "env": env})

    assert problems == [problem]
    assert job.env == {}


@pytest.mark.parametrize("env", [{"A": ""}, {"_a1": "x"}, {"TOOLS": "x"}])
def test_other_variables_are_accepted(env: dict[str, str]) -> None:
    assert problems_of("check", env=env) == []


@pytest.mark.parametrize("name", ["a", "A1", "1.2_3-4", "a" * 64])
def test_a_name_can_have_letters_digits_and_some_signs(name: str) -> None:
    assert problems_of("check", name) == []


@pytest.mark.parametrize("name", ["", ".a", "-a", "_a", "a b", "a/b", "ä", "a\n", "a" * 65])
def test_other_names_are_refused(name: str) -> None:
    assert problems_of("check", name) == ["a name is 1 to 64 letters, digits, '.', '_' or '-'"]


@pytest.mark.parametrize("path", ["a", "a/b.txt", "..a", "a..", ".hidden", "outer", ".tools/x"])
def test_a_path_inside_the_workspace_is_accepted(path: str) -> None:
    assert problems_of("target", inputs=[path]) == []
    assert problems_of("target", outputs=[path]) == []


@pytest.mark.parametrize("path", [".", "..", "../x", "/etc/x", "a/../../x", "a/..", "./"])
def test_a_path_outside_of_the_workspace_is_refused(path: str) -> None:
    problem = f"{path!r} is not inside the workspace"

    assert problems_of("target", inputs=[path]) == [f"inputs: {problem}"]
    assert problems_of("target", outputs=[path]) == [f"outputs: {problem}"]


@pytest.mark.parametrize(
    ("path", "place"), [("out/a", "out"), (".tool", ".tool"), ("./out", "out")]
)
def test_a_path_in_a_directory_of_the_tool_is_refused(path: str, place: str) -> None:
    assert problems_of("target", inputs=[path]) == [
        f"inputs: {path!r} is in {place!r}, which belongs to the tool: name the target in needs"
    ]
    assert problems_of("target", outputs=[path]) == [
        f"outputs: {path!r} is in {place!r}, which belongs to the tool: "
        "outputs are put there automatically"
    ]


@pytest.mark.parametrize(
    ("member", "path", "better"),
    [
        ("inputs", "./a", "a"),
        ("inputs", "a//b", "a/b"),
        ("inputs", "a/../b", "b"),
        ("inputs", "data/", "data/**"),
        ("outputs", "data/", "data"),
        ("outputs", "./x", "x"),
    ],
)
def test_a_path_that_is_not_normal_is_refused_with_the_normal_one(
    member: str,
    path: str,
    better: str,
) -> None:
    members: dict[str, Any] = {member: [path]}

    assert problems_of("target", **members) == [
        f"{member}: {path!r} has an empty, '.' or '..' part: write {better!r}"
    ]


def test_outputs_must_not_overlap() -> None:
    assert problems_of("target", outputs=["a", "b", "a", "a"]) == [
        "outputs: 'a' is declared 3 times"
    ]
    assert problems_of("target", outputs=["a/b/c", "a", "ab"]) == [
        "outputs: 'a/b/c' is inside 'a', which is an output too"
    ]
    assert problems_of("target", outputs=["a", "ab", "b/a"]) == []


def test_a_job_can_only_need_targets() -> None:
    assert problems_of("check", needs=["report", "totals"]) == []
    assert problems_of("check", needs=["reports"]) == [
        "it needs 'reports', which is not a target (Did you mean 'report'?)"
    ]
    assert problems_of("check", needs=["zzz"]) == ["it needs 'zzz', which is not a target"]


def test_all_problems_of_a_table_are_found_together() -> None:
    problems = problems_of("target", "-", inputs=["../x"], needs="report", env={"1": "a"}, more=1)

    assert problems == [
        "unknown member 'more'",
        "needs must be a list of strings",
        "env: '1' is not the name of a variable",
        "a name is 1 to 64 letters, digits, '.', '_' or '-'",
        "inputs: '../x' is not inside the workspace",
    ]
