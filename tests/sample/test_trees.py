"""sampletool/sample/trees.py: what stays of a tree, and how long it takes to remove one."""

import os
import time
from pathlib import Path

import pytest

from sampletool.kit.testing.failing import outcome_of
from sampletool.sample.trees import force_remove, keep_outputs


def create_deep_tree(top: Path, depth: int) -> None:
    """Create directories in each other. Their path is longer than any path may be."""
    os.mkdir(top)
    descriptor = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=descriptor)
        inner = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)


def seconds_to_remove(top: Path, depth: int) -> float:
    """Return the processor time for one tree. Other processes do not count."""
    create_deep_tree(top, depth)
    started_at = time.process_time()
    force_remove(top)
    seconds = time.process_time() - started_at
    assert not top.exists()
    return seconds


def test_the_time_to_remove_a_deep_tree_grows_with_its_depth_and_not_faster(tmp_path: Path) -> None:
    seconds_to_remove(tmp_path / "warm", 100)

    short = seconds_to_remove(tmp_path / "short", 250)
    long = seconds_to_remove(tmp_path / "long", 2000)

    # 8 times as deep. If the time grew with the square of the depth, this would be 64.
    assert long / short < 24


# Keep the wanted outputs


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory to which a command has written."""
    directory = tmp_path / "made"
    (directory / "data" / "deep").mkdir(parents=True)
    for name in ("report", "other", "data/a", "data/b", "data/deep/c"):
        (directory / name).write_text(name)
    return directory


def files_in(directory: Path) -> set[str]:
    found = set()
    for path in directory.rglob("*"):
        if not path.is_dir() or path.is_symlink():
            found.add(str(path.relative_to(directory)))
    return found


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        (["report"], {"report"}),
        (["data"], {"data/a", "data/b", "data/deep/c"}),
        (["data/a"], {"data/a"}),
        (["data/deep"], {"data/deep/c"}),
        (["report", "data/deep/c"], {"report", "data/deep/c"}),
    ],
)
def test_only_wanted_outputs_stay_and_they_are_read_only(
    directory: Path,
    wanted: list[str],
    kept: set[str],
) -> None:
    found = outcome_of(lambda: set(keep_outputs(directory, wanted)))

    assert found == kept
    assert files_in(directory) == kept
    for name in kept:
        assert (directory / name).stat().st_mode & 0o222 == 0


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ("missing", "it did not write its output 'missing'"),
        ("data/missing", "it did not write its output 'data/missing'"),
        ("link", "its output 'link' is a link"),
        ("pipe", "its output 'pipe' is not a regular file"),
    ],
)
def test_an_output_that_is_missing_or_no_file_is_refused(
    directory: Path,
    wanted: str,
    problem: str,
) -> None:
    (directory / "link").symlink_to("report")
    os.mkfifo(directory / "pipe")

    failure = outcome_of(lambda: keep_outputs(directory, ["report", wanted]))

    assert isinstance(failure, ValueError)
    assert str(failure) == problem


def test_a_directory_that_was_replaced_with_a_link_is_refused(directory: Path) -> None:
    link = directory.with_name("link")
    link.symlink_to(directory)

    failure = outcome_of(lambda: keep_outputs(link, ["report"]))

    assert str(failure) == "its directory was replaced with a link"
    assert (directory / "other").exists()


@pytest.mark.parametrize(("depth", "is_refused"), [(100, False), (101, True)])
def test_an_output_can_be_up_to_100_directories_deep(
    directory: Path,
    depth: int,
    is_refused: bool,
) -> None:
    create_deep_tree(directory / "tree", depth)

    failure = outcome_of(lambda: keep_outputs(directory, ["tree"]))

    assert isinstance(failure, ValueError) is is_refused


def test_a_file_with_a_second_name_stays_writable_there(directory: Path) -> None:
    file_of_user = directory.with_name("file of the user")
    os.link(directory / "report", file_of_user)
    file_of_user.chmod(0o644)

    keep_outputs(directory, ["report"])

    assert file_of_user.stat().st_mode & 0o777 == 0o644
    assert (directory / "report").stat().st_mode & 0o222 == 0
    assert (directory / "report").read_text() == "report"
