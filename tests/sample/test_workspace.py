"""What a tool.toml declares, and everything that is wrong with it at once."""

import os
import re
from pathlib import Path

import pytest

from sampletool.kit.context import Context
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.failing import outcome_of
from sampletool.sample.errors import InvalidWorkspace, TargetNotFound
from sampletool.sample.job import Job
from sampletool.sample.workspace import Declarations, choose, read_again, read_workspace

_GOOD = """
[target.a]
run = ["true"]
outputs = ["x"]
[target.b]
run = ["true"]
outputs = ["y"]
needs = ["a"]
[check.c]
run = ["true"]
needs = ["b"]
"""


@pytest.fixture(autouse=True)
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(text: str) -> Declarations:
    Path("tool.toml").write_text(text)
    return read_workspace(Context(Signals()))


def mistakes(text: str) -> list[str]:
    """Each without its line."""
    with pytest.raises(InvalidWorkspace) as caught:
        read(text)
    return [re.sub(r"^line \d+, ", "", problem) for problem in caught.value.context["problems"]]


def test_targets_and_checks_are_read() -> None:
    jobs = outcome_of(lambda: read(_GOOD))

    assert isinstance(jobs, Declarations), repr(jobs)
    assert jobs.targets == {
        "a": Job(name="a", run=("true",), outputs=("x",)),
        "b": Job(name="b", run=("true",), outputs=("y",), needs=("a",)),
    }
    assert jobs.checks == {"c": Job(name="c", run=("true",), needs=("b",))}


def test_a_file_that_was_changed_meanwhile_is_read_again() -> None:
    context = Context(Signals())
    before = read(_GOOD)

    unchanged = read_again(context, before)
    Path("tool.toml").write_text(target("new"))
    changed = read_again(context, before)

    assert unchanged is before
    assert list(changed.targets) == ["new"]


def test_a_target_comes_after_its_needs() -> None:
    assert [job.name for job in read(_GOOD).with_needs(["b"])] == ["a", "b"]


def test_all_mistakes_are_reported_together() -> None:
    found = mistakes(
        """
        [target.a]
        run = "true"
        outputs = ["../x", "/etc/x", ".tool/x", "out/x"]
        [target.b]
        run = ["true"]
        outputs = ["y"]
        needs = ["aa", "d"]
        imputs = ["z"]
        [target.d]
        run = ["true"]
        [chekc.f]
        [check.e]
        run = ["true"]
        outputs = ["z"]
        """
    )

    for part in (
        "target.a: run must be a list",
        "'../x' is not inside the workspace",
        "'/etc/x' is not inside the workspace",
        "'.tool/x' is in '.tool', which belongs to the tool",
        "'out/x' is in 'out', which belongs to the tool",
        "target.b: unknown member 'imputs' (Did you mean 'inputs'",
        "chekc: it is not known here (Did you mean 'check'?)",
        "target.d: outputs is missing",
        "check.e: unknown member 'outputs'",
    ):
        assert any(part in message for message in found), (part, found)


def test_every_problem_is_one_of_a_list_with_the_line_of_its_table(workspace: Path) -> None:
    with pytest.raises(InvalidWorkspace) as caught:
        read(
            "# first\n"
            + _GOOD.replace('[target.b]\nrun = ["true"]', '[ target . "b" ]')
            + "[check.d]\n[chekc.e]\n"
        )

    missing = "run is missing: the command as a list, such as ['python3', 'make.py']"
    unknown = "line 13, chekc: it is not known here (Did you mean 'check'?)"
    problems = [unknown, f"line 6, target.b: {missing}", f"line 12, check.d: {missing}"]
    described = caught.value.describe()
    assert described["context"] == {"path": f"{workspace}/tool.toml", "problems": problems}
    assert [(error.param, error.message) for error in described["errors"]] == [
        ("chekc", problems[0]),
        ("target.b", problems[1]),
        ("check.d", problems[2]),
    ]
    assert described["message"] == f"{workspace}/tool.toml has 3 problems. No command was run."


@pytest.mark.parametrize(
    ("needs", "ring"),
    [({"a": "a"}, "a -> a"), ({"a": "b", "b": "c", "c": "a"}, "a -> b -> c -> a")],
)
def test_targets_that_need_each_other_are_reported_as_a_ring(
    needs: dict[str, str], ring: str
) -> None:
    text = "".join(
        f'[target.{n}]\nrun = ["true"]\noutputs = ["x"]\nneeds = ["{need}"]\n'
        for n, need in needs.items()
    )

    assert mistakes(text) == [f"target.a: these targets need each other: {ring}"]


def test_a_misspelt_need_has_a_hint() -> None:
    assert mistakes(_GOOD.replace('needs = ["a"]', 'needs = ["aa"]')) == [
        "target.b: it needs 'aa', which is not a target (Did you mean 'a'?)"
    ]


def test_a_long_chain_of_needs_is_as_good_as_a_short_one() -> None:
    links = [
        f'[target.t{n}]\nrun = ["true"]\noutputs = ["x"]\nneeds = ["t{n + 1}"]\n'
        for n in range(2000)
    ]
    end = '[target.t2000]\nrun = ["true"]\noutputs = ["x"]\n'

    jobs = read("".join(links) + end)

    assert [job.name for job in jobs.with_needs(["t0"])][:2] == ["t2000", "t1999"]


def test_unknown_names_are_reported() -> None:
    jobs = read(_GOOD)

    assert choose("target", [], jobs.targets) == ["a", "b"]
    with pytest.raises(TargetNotFound) as caught:
        choose("target", ["bb", "zzz"], jobs.targets)
    assert caught.value.context["names"] == ["bb", "zzz"]


def target(
    name: str = '"j"', *, run: str = "'true'", inputs: str = "", outputs: str = "'x'"
) -> str:
    return f"[target.{name}]\nrun = [{run}]\ninputs = [{inputs}]\noutputs = [{outputs}]\n"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (target('"../j"'), "a name is"),
        (target('"j/k"'), "a name is"),
        (target('""'), "a name is"),
        (target(run=""), "run is missing"),
        (target(inputs="'../x'"), "inputs: '../x' is not inside"),
        (target(outputs="'a/../../x'"), "outputs: 'a/../../x' is not inside"),
        (target(outputs="'/x'"), "outputs: '/x' is not inside"),
        (
            target(outputs="'out/x'"),
            "outputs: 'out/x' is in 'out', which belongs to the tool: outputs are put there",
        ),
        (
            target(outputs="'a/../out'"),
            "outputs: 'a/../out' is in 'out', which belongs to the tool",
        ),
        (
            target(inputs="'out/b/x'"),
            "inputs: 'out/b/x' is in 'out', which belongs to the tool: name the target in",
        ),
        (
            target(inputs="'./.tool/x'"),
            "inputs: './.tool/x' is in '.tool', which belongs to the tool",
        ),
        (
            target(inputs="'./a.txt'"),
            "inputs: './a.txt' has an empty, '.' or '..' part: write 'a.txt'",
        ),
        (
            target(inputs="'d/../a//b'"),
            "inputs: 'd/../a//b' has an empty, '.' or '..' part: write 'a/b'",
        ),
        (target(inputs="'src/'"), "inputs: 'src/' has an empty, '.' or '..' part: write 'src/**'"),
        (target(outputs="'d/'"), "outputs: 'd/' has an empty, '.' or '..' part: write 'd'"),
        (target(inputs="'.'"), "inputs: '.' is not inside the workspace"),
        (target(outputs="'d', 'd/x'"), "outputs: 'd/x' is inside 'd', which is an output too"),
        (target(outputs="'x', 'x'"), "outputs: 'x' is declared 2 times"),
    ],
)
def test_a_wrong_name_or_path_is_refused(wrong: str, said: str) -> None:
    (problem,) = mistakes(wrong)

    assert said in problem


def test_paths_inside_the_workspace_are_accepted() -> None:
    assert read(target(inputs="'*.txt', 'd/x'", outputs="'x', 'd/x', 'd.x'")).targets[
        "j"
    ].inputs == ("*.txt", "d/x")


def make(*names: str) -> None:
    for name in names:
        os.makedirs(os.path.dirname(name) or ".", exist_ok=True)
        Path(name).touch()


def test_inputs_are_searched_by_pattern_and_never_in_places_of_the_tool(workspace: Path) -> None:
    make("a.txt", "d/b.txt", "out/c.txt", ".tool/d.txt", "e.md")

    assert Job("j", inputs=("**/*.txt",)).find_inputs(workspace) == {"a.txt", "d/b.txt"}
    with pytest.raises(ValueError, match="matches no file"):
        Job("j", inputs=("*.xyz",)).find_inputs(workspace)


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("src/**", ["src/.hidden", "src/a", "src/d/b"]),
        ("**", ["b1.txt", "b[1].txt", "src/.hidden", "src/a", "src/d/b"]),
        ("src/**/b", ["src/d/b"]),
        ("src/*", ["src/.hidden", "src/a"]),
        ("b[1].txt", ["b[1].txt"]),
        ("b[0-9].txt", ["b1.txt"]),
    ],
)
def test_a_pattern_means_the_same_on_every_python_and_a_file_of_that_name_goes_first(
    workspace: Path, pattern: str, meant: list[str]
) -> None:
    make("src/a", "src/.hidden", "src/d/b", "b1.txt", "b[1].txt", "out/x")

    assert Job("j", inputs=(pattern,)).find_inputs(workspace) == {*meant}


def test_a_directory_as_an_input_has_a_hint_how_to_write_it(workspace: Path) -> None:
    make("src/a")

    with pytest.raises(
        ValueError, match=re.escape("the input 'src' is a directory: write 'src/**'")
    ):
        Job("j", inputs=("src",)).find_inputs(workspace)


def test_a_name_that_is_like_no_other_has_all_names_as_its_hint() -> None:
    jobs = read(_GOOD)

    with pytest.raises(TargetNotFound) as unlike:
        choose("target", ["zzz"], jobs.targets)
    with pytest.raises(TargetNotFound) as none_declared:
        choose("check", ["zzz"], {})
    with pytest.raises(TargetNotFound) as alike:
        choose("target", ["zzz", "aa"], jobs.targets)

    assert unlike.value.suggestion == "The targets are a, b."
    assert none_declared.value.suggestion == "There are no checks."
    assert alike.value.suggestion == "Did you mean 'a'?"


def test_names_are_chosen_once_each_in_their_order() -> None:
    jobs = read(_GOOD)

    assert choose("target", ["b", "a", "b"], jobs.targets) == ["b", "a"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("setting", "settings"), ("targets", "target"), ("chek", "check")],
)
def test_a_misspelt_table_has_a_hint(written: str, meant: str) -> None:
    assert mistakes(f"[{written}.a]\nx = 1\n") == [
        f"{written}: it is not known here (Did you mean {meant!r}?)"
    ]


def test_tables_of_other_programs_are_ignored() -> None:
    declared = read("[project]\nname = 'x'\n[settings]\njobs = 1\n" + _GOOD)

    assert list(declared.targets) == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[target]\na = 5\n", "target.a: it is not a table"),
        ("check = 5\n", "check: it is not a table"),
        (target(run="1"), "target.j: run must be a list of strings"),
        (target(run="''"), "target.j: run must be a list of strings"),
        (target(outputs="'x', 'y', 'x'"), "target.j: outputs: 'x' is declared 2 times"),
        (
            target(outputs="'a/b/c', 'a'"),
            "target.j: outputs: 'a/b/c' is inside 'a', which is an output too",
        ),
    ],
)
def test_each_kind_of_mistake_is_reported_once(text: str, problem: str) -> None:
    assert mistakes(text) == [problem]
