"""sampletool/sample/job.py: the input files of a job."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from sampletool.kit.testing.failing import outcome_of
from sampletool.sample.job import Job


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a workspace with some files, two of which belong to the tool."""
    create(
        tmp_path,
        [
            "a.txt",
            "b.txt",
            "notes[1].txt",
            "data/c.txt",
            "data/deep/d.txt",
            ".tool/tool.txt",
            "out/target/built.txt",
            "outer/e.txt",
        ],
    )
    return tmp_path


def create(workspace: Path, names: Iterable[str]) -> None:
    for name in names:
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


@pytest.mark.parametrize(
    ("patterns", "files"),
    [
        ([], set()),
        (["a.txt"], {"a.txt"}),
        (["a.txt", "b.txt"], {"a.txt", "b.txt"}),
        (["a.txt", "*.txt"], {"a.txt", "b.txt", "notes[1].txt"}),
        (["notes[1].txt"], {"notes[1].txt"}),
        (["data/*"], {"data/c.txt"}),
        (["data/**"], {"data/c.txt", "data/deep/d.txt"}),
        (["data/**/d.txt"], {"data/deep/d.txt"}),
        (["o*/*"], {"outer/e.txt"}),
        (
            ["**/*.txt"],
            {"a.txt", "b.txt", "notes[1].txt", "data/c.txt", "data/deep/d.txt", "outer/e.txt"},
        ),
    ],
)
def test_patterns_match_files_that_do_not_belong_to_the_tool(
    workspace: Path,
    patterns: list[str],
    files: set[str],
) -> None:
    job = Job("t", inputs=tuple(patterns))

    assert outcome_of(lambda: job.find_inputs(workspace)) == files


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("missing.txt", "the input 'missing.txt' matches no file"),
        ("*.csv", "the input '*.csv' matches no file"),
        ("data", "the input 'data' is a directory: write 'data/**'"),
        (".tool/tool.txt", "the input '.tool/tool.txt' matches no file"),
        ("out/**", "the input 'out/**' matches no file"),
    ],
)
def test_a_pattern_that_matches_no_file_is_an_error(
    workspace: Path,
    pattern: str,
    problem: str,
) -> None:
    job = Job("t", inputs=("a.txt", pattern))

    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        job.find_inputs(workspace)
