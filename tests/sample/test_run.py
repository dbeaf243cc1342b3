"""A command sees what was declared and nothing else; only what was declared comes out, and all can be removed."""

import os
import stat
from pathlib import Path

import pytest

from sampletool.kit.safety.children import Ended
from sampletool.sample.publish import remove
from sampletool.sample.run import _done, collect, stage


@pytest.fixture
def made(tmp_path: Path) -> Path:
    directory = tmp_path / "made"
    directory.mkdir()
    return directory


def test_a_hard_link_becomes_a_file_of_its_own(made: Path) -> None:
    source = made.parent / "source"
    source.write_text("somebody's")
    os.link(source, made / "x")

    clean, _ = collect(made, ["x"])

    assert (clean / "x").read_text() == "somebody's"
    assert (clean / "x").stat().st_ino != source.stat().st_ino
    assert os.listdir(clean) == ["x"]


def test_what_a_command_made_read_only_can_be_kept(made: Path) -> None:
    (made / "x").mkdir()
    (made / "x" / "y").touch()
    (made / "junk").touch()
    (made / "x").chmod(0o555)
    made.chmod(0o555)

    clean, files = collect(made, ["x"])

    assert (clean, files) == (made.parent / ".made", ["x/y"])
    assert stat.S_IMODE((clean / "x").stat().st_mode) == 0o755


def test_an_output_that_lies_too_deep_is_refused(made: Path) -> None:
    (made / Path(*"x" * 150)).mkdir(parents=True)

    with pytest.raises(ValueError, match="100 directories deep"):
        collect(made, ["x"])


def test_what_is_deep_or_closed_is_removed(made: Path) -> None:
    outside = made.parent / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (made / "link").symlink_to(outside)
    here = os.getcwd()
    os.chdir(made)
    for _ in range(3000):
        os.mkdir("d")
        os.chdir("d")
    os.chdir(here)
    (made / "d" / "closed" / "in").mkdir(parents=True)
    (made / "d" / "closed" / "in" / "file").touch()
    (made / "d" / "closed").chmod(0)

    remove(made)

    assert not made.exists()
    assert (outside / "kept").exists()


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

    with pytest.raises((ValueError, OSError)) as refused:
        collect(directory, ["x"])

    assert "'x" in str(refused.value)


def test_what_was_made_read_only_is_removed_and_what_links_lead_to_stays(tmp_path: Path, directory: Path) -> None:
    write(tmp_path, "elsewhere/file")
    write(directory, "d/x")
    (directory / "link").symlink_to(tmp_path / "elsewhere")
    (directory / "d").chmod(0o500)

    remove(directory)

    assert not directory.exists()
    assert (tmp_path / "elsewhere" / "file").exists()


def test_a_link_in_the_place_of_the_directory_is_removed_and_what_it_leads_to_stays(
    tmp_path: Path, directory: Path
) -> None:
    write(tmp_path, "elsewhere/file")
    (tmp_path / "elsewhere").chmod(0o755)
    directory.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ValueError, match="its directory"):
        collect(directory, ["file"])
    remove(directory)

    assert not directory.is_symlink()
    assert (tmp_path / "elsewhere" / "file").read_text() == "elsewhere/file"
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o755


def test_no_link_that_a_command_left_is_written_through(made: Path) -> None:
    source, precious = made.parent / "source", made.parent / "precious"
    source.write_text("source")
    precious.write_text("precious")
    os.link(source, made / "x")
    (made / f"x.{os.getpid()}").symlink_to(precious)

    collect(made, ["x"])

    assert precious.read_text() == "precious"


def test_a_job_that_left_a_survivor_has_failed() -> None:
    alone, survived = (_done(Ended("a", 0, "", None, left)) for left in ((), (123,)))

    assert (alone.status, survived.status, survived.note) == ("passed", "failed", "still running: 123")
