"""A command sees what was declared and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from sampletool.kit.safety.children import ChildExit
from sampletool.sample.job_directory import create_job_directory
from sampletool.sample.run import result_of


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "staged"


def write(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(name)


def test_inputs_and_needs_are_at_their_places_and_nothing_else(
    tmp_path: Path, directory: Path
) -> None:
    write(tmp_path, "workspace/data/a.csv", "workspace/data/b.csv", "version/x")

    create_job_directory(
        directory, tmp_path / "workspace", ["data/a.csv"], {"t": tmp_path / "version"}
    )

    assert (directory / "data" / "a.csv").read_text() == "workspace/data/a.csv"
    assert (directory / "out" / "t" / "x").read_text() == "version/x"
    assert sorted(path.name for path in directory.rglob("*")) == ["a.csv", "data", "out", "t"]


def test_a_job_that_left_a_survivor_has_failed() -> None:
    child = ChildExit(name="a", exit_code=0, output_tail="", log_path=None, survivors=())

    alone = result_of(child)
    survived = result_of(replace(child, survivors=(123,)))

    assert (alone.status, survived.status, survived.note) == (
        "passed",
        "failed",
        "still running: 123",
    )
