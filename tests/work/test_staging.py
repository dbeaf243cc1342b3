"""A staged directory has what was declared and nothing else; only declared outputs leave it."""

import os
from pathlib import Path

import pytest

from sampletool.work.staging import collect, remove, stage


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "staged"


def write(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(name)


def test_inputs_and_needs_are_at_their_places_and_nothing_else(tmp_path: Path, directory: Path) -> None:
    write(tmp_path, "workspace/data/a.csv", "workspace/data/b.csv", "version/x")

    stage(directory, tmp_path / "workspace", ["data/a.csv"], {"t": tmp_path / "version"})

    assert (directory / "data" / "a.csv").read_text() == "workspace/data/a.csv"
    assert (directory / "out" / "t" / "x").read_text() == "version/x"
    assert sorted(path.name for path in directory.rglob("*")) == ["a.csv", "data", "out", "t"]


def test_only_the_declared_outputs_are_collected(directory: Path) -> None:
    write(directory, "x", "d/y", "left/over")

    made, files = collect(directory, ["x", "d"])

    assert files == ["d/y", "x"]
    assert sorted(os.listdir(made)) == ["d", "x"]
    assert (made / "d" / "y").read_text() == "d/y"


@pytest.mark.parametrize("kind", ["missing", "link", "pipe", "link inside"])
def test_an_output_that_is_no_file_is_told_by_name(tmp_path: Path, directory: Path, kind: str) -> None:
    write(directory, "left/over")
    write(tmp_path, "elsewhere")
    if kind == "link":
        (directory / "x").symlink_to(tmp_path / "elsewhere")
    elif kind == "link inside":
        (directory / "x").mkdir()
        (directory / "x" / "y").symlink_to(tmp_path / "elsewhere")
    elif kind == "pipe":
        os.mkfifo(directory / "x")

    with pytest.raises(ValueError, match="'x"):
        collect(directory, ["x"])


def test_what_was_made_read_only_is_removed_and_what_links_lead_to_stays(tmp_path: Path, directory: Path) -> None:
    write(tmp_path, "elsewhere/file")
    write(directory, "d/x")
    (directory / "link").symlink_to(tmp_path / "elsewhere")
    (directory / "d").chmod(0o500)

    remove(directory)

    assert not directory.exists()
    assert (tmp_path / "elsewhere" / "file").exists()
