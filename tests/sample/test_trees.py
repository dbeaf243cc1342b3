"""sampletool/sample/trees.py: how long it takes to remove a tree."""

import os
import time
from pathlib import Path

from sampletool.sample.trees import remove


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
    remove(top)
    seconds = time.process_time() - started_at
    assert not top.exists()
    return seconds


def test_the_time_to_remove_a_deep_tree_grows_with_its_depth_and_not_faster(tmp_path: Path) -> None:
    seconds_to_remove(tmp_path / "warm", 100)

    short = seconds_to_remove(tmp_path / "short", 250)
    long = seconds_to_remove(tmp_path / "long", 2000)

    # 8 times as deep. If the time grew with the square of the depth, this would be 64.
    assert long / short < 24
