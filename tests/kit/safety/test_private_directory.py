"""A private directory is created private, and refused if others could have changed it."""

import os
import stat
from pathlib import Path

import pytest

from sampletool.kit.safety.errors import UnsafeDirectory
from sampletool.kit.safety.private_directory import check_private, private_directory, refuse_unsafe
from sampletool.kit.testing.failing import failure_of, outcome_of

OTHERS_WRITE = (0o020, 0o002)
OTHERS_READ = (0o040, 0o010, 0o004, 0o001)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_directory_is_created_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        created = outcome_of(lambda: private_directory(tmp_path / "place"))
    finally:
        os.umask(before)

    assert created == tmp_path / "place"
    assert oct(mode_of(tmp_path / "place")) == oct(0o700)


def test_missing_parents_are_created(tmp_path: Path) -> None:
    created = outcome_of(lambda: private_directory(tmp_path / "a" / "b"))

    assert created == tmp_path / "a" / "b"
    assert oct(mode_of(tmp_path / "a" / "b")) == oct(0o700)


def test_a_directory_that_is_there_is_used_again(tmp_path: Path) -> None:
    private_directory(tmp_path / "place")
    (tmp_path / "place" / "file").touch()

    again = outcome_of(lambda: private_directory(tmp_path / "place"))

    assert again == tmp_path / "place"
    assert os.listdir(tmp_path / "place") == ["file"]


@pytest.mark.parametrize("trap", ["link", "dangling link", "file"])
def test_what_is_no_directory_is_refused(tmp_path: Path, trap: str) -> None:
    place = tmp_path / "place"
    if trap == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        place.symlink_to(tmp_path / "elsewhere")
    elif trap == "dangling link":
        place.symlink_to(tmp_path / "nowhere")
    else:
        place.touch()

    failure = failure_of(lambda: private_directory(place))

    assert isinstance(failure, UnsafeDirectory)
    assert failure.reason == "it is a link or a file, not a directory"
    assert failure.path == str(place)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("bit", OTHERS_WRITE, ids=oct)
def test_each_bit_that_lets_others_write_makes_a_directory_unsafe(tmp_path: Path, bit: int) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place").chmod(0o700 | bit)

    failure = failure_of(lambda: private_directory(tmp_path / "place"))

    assert isinstance(failure, UnsafeDirectory)
    assert failure.reason == f"others may write to it (mode 0{0o700 | bit:o})"


@pytest.mark.parametrize("bit", OTHERS_READ, ids=oct)
def test_no_bit_that_lets_others_look_makes_a_directory_unsafe(tmp_path: Path, bit: int) -> None:
    (tmp_path / "place").mkdir()
    (tmp_path / "place").chmod(0o700 | bit)

    found = outcome_of(lambda: private_directory(tmp_path / "place"))

    assert found == tmp_path / "place"


@needs_root
def test_the_directory_of_another_user_is_refused(tmp_path: Path) -> None:
    private_directory(tmp_path / "place")
    os.chown(tmp_path / "place", 12345, 12345)

    failure = failure_of(lambda: private_directory(tmp_path / "place"))

    assert isinstance(failure, UnsafeDirectory)
    assert failure.reason == "it belongs to another user (uid 12345)"


def test_a_directory_of_somebody_who_is_no_owner_is_refused(tmp_path: Path) -> None:
    status = private_directory(tmp_path / "place").lstat()
    others = {os.geteuid() + 1}

    failure = failure_of(lambda: refuse_unsafe(tmp_path / "place", status, owners=others))

    assert isinstance(failure, UnsafeDirectory)
    assert failure.reason == f"it belongs to another user (uid {os.geteuid()})"


def test_the_mode_of_a_link_does_not_make_it_unsafe(tmp_path: Path) -> None:
    """On Linux, the mode of every link is 0777."""
    (tmp_path / "link").symlink_to("anywhere")
    status = (tmp_path / "link").lstat()

    failure = failure_of(lambda: refuse_unsafe(tmp_path / "link", status, owners={os.geteuid()}))

    assert failure is None


def test_to_check_a_directory_does_not_create_it(tmp_path: Path) -> None:
    failure = failure_of(lambda: check_private(tmp_path / "place"))

    assert isinstance(failure, FileNotFoundError)
    assert not (tmp_path / "place").exists()


def test_a_directory_that_is_private_passes_the_check(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir(mode=0o700)

    found = outcome_of(lambda: check_private(tmp_path / "place"))

    assert found == tmp_path / "place"
