"""work/job.py: what a job may be, and which files it sees."""

import re
from pathlib import Path

import pytest

from sampletool.sample.job import Job


def job(name: str = "j", run: str = "true", *, inputs: str = "", outputs: str = "", env: str = "A") -> Job:
    return Job(name, tuple(run.split()), tuple(inputs.split()), tuple(outputs.split()), (), {env: ""})


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (job("../j"), "a name is"),
        (job("j/k"), "a name is"),
        (job(""), "a name is"),
        (job(run=""), "run is missing"),
        (job(env="A=B"), "a name with '='"),
        (job(inputs="../x"), "inputs: '../x' leaves"),
        (job(outputs="a/../../x"), "outputs: 'a/../../x' leaves"),
        (job(outputs="/x"), "outputs: '/x' leaves"),
        (job(outputs="out/x"), "outputs: 'out/x' is in a place of the tool's own: what is written gets there"),
        (job(outputs="a/../out"), "outputs: 'a/../out' is in a place of the tool's own"),
        (job(inputs="out/b/x"), "inputs: 'out/b/x' is in a place of the tool's own: name the target in needs"),
        (job(inputs="./.tool/x"), "inputs: './.tool/x' is in a place of the tool's own"),
        (job(inputs="./a.txt"), "inputs: './a.txt' has an empty, '.' or '..' part: write 'a.txt'"),
        (job(inputs="d/../a//b"), "inputs: 'd/../a//b' has an empty, '.' or '..' part: write 'a/b'"),
        (job(inputs="src/"), "inputs: 'src/' has an empty, '.' or '..' part: write 'src/**'"),
        (job(outputs="d/"), "outputs: 'd/' has an empty, '.' or '..' part: write 'd'"),
        (job(inputs="."), "inputs: '.' is the workspace itself"),
        (Job("j", ("true",), (), ("x\n",), (), {}), r"outputs: 'x\n' has a character that cannot be shown"),
        (job(outputs="d d/x"), "outputs: 'd/x' is inside another"),
        (job(outputs="x x"), "outputs: 'x' is inside another, or the same"),
    ],
)
def test_what_would_reach_outside_is_told(wrong: Job, said: str) -> None:
    (problem,) = wrong.problems()

    assert said in problem


def test_nothing_is_wrong_with_what_stays_inside() -> None:
    assert job(inputs="*.txt d/x", outputs="x d/x d.x").problems() == []


def test_inputs_are_found_by_pattern_and_never_in_our_own_places(tmp_path: Path) -> None:
    for name in ("a.txt", "d/b.txt", "out/c.txt", ".tool/d.txt", "e.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    assert Job("j", (), ("**/*.txt",), (), (), {}).find_inputs(tmp_path) == ["a.txt", "d/b.txt"]
    with pytest.raises(ValueError, match="matches no file"):
        Job("j", (), ("*.xyz",), (), (), {}).find_inputs(tmp_path)


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
    tmp_path: Path, pattern: str, meant: list[str]
) -> None:
    for name in ("src/a", "src/.hidden", "src/d/b", "b1.txt", "b[1].txt", "out/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    assert Job("j", (), (pattern,), (), (), {}).find_inputs(tmp_path) == meant


def test_a_directory_as_an_input_is_told_how_to_be_written(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()

    with pytest.raises(ValueError, match=re.escape("the input 'src' is a directory: write 'src/**'")):
        Job("j", (), ("src",), (), (), {}).find_inputs(tmp_path)
