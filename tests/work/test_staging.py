"""work/staging.py: only what was declared goes in and comes out, and all of it can be removed again."""

import os
import stat
from pathlib import Path

import pytest

from sampletool.work.staging import collect, remove


@pytest.fixture
def made(tmp_path: Path) -> Path:
    directory = tmp_path / "made"
    directory.mkdir()
    return directory


def test_a_hard_link_becomes_a_file_of_its_own(made: Path) -> None:
    source = made.parent / "source"
    source.write_text("somebody's")
    os.link(source, made / "x")

    collect(made, ["x"])

    assert (made / "x").read_text() == "somebody's"
    assert (made / "x").stat().st_ino != source.stat().st_ino
    assert os.listdir(made) == ["x"]


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
