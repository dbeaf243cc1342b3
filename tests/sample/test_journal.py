"""sampletool/sample/journal.py: records survive, and no line that is damaged counts."""

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.testing.failing import failure_of
from sampletool.sample.journal import BuildRecord, Journal

RECORD = BuildRecord(
    run=["make", "it"],
    wanted=["report.txt"],
    inputs={"data.csv": "digest of data"},
    needs={"other": "digest of other"},
    version="report-1",
    outputs={"report.txt": "digest of report"},
    env={"LEVEL": "3"},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "built.jsonl"


def lines_of(path: Path) -> list[Any]:
    """Return the names and records in the lines of the journal."""
    return [json.loads(line) for line in path.read_text().split("\n") if line]


def test_a_record_that_was_appended_is_read_by_the_next_command(path: Path) -> None:
    failure = failure_of(lambda: Journal(path).append("report", RECORD))

    assert failure is None
    assert Journal(path).records == {"report": RECORD}


def test_a_record_is_a_short_line_that_begins_with_a_newline(path: Path) -> None:
    """The line before it may have been cut off."""
    record = BuildRecord(run=["make"], wanted=["x"], inputs={"in": "1"}, needs={})

    Journal(path).append("report", record)

    assert path.read_text() == (
        '\n["report",{"run":["make"],"wanted":["x"],"inputs":{"in":"1"},"needs":{},'
        '"version":"","outputs":{},"env":{}}]'
    )


def test_a_workspace_without_a_journal_has_no_records(path: Path) -> None:
    assert Journal(path).records == {}


def test_the_last_record_of_a_target_counts(path: Path) -> None:
    journal = Journal(path)
    newer = replace(RECORD, version="report-2")

    journal.append("report", RECORD)
    journal.append("other", RECORD)
    journal.append("report", newer)

    assert journal.records == {"report": newer, "other": RECORD}
    assert Journal(path).records == journal.records


def test_flushing_leaves_only_the_last_record_of_each_target(path: Path) -> None:
    journal = Journal(path)
    newer = replace(RECORD, version="report-2")
    journal.append("report", RECORD)
    journal.append("report", newer)

    journal.flush()

    assert lines_of(path) == [["report", asdict(newer)]]


def test_flushing_without_a_new_record_does_not_write_the_file(path: Path) -> None:
    Journal(path).append("report", RECORD)
    before = path.stat()

    Journal(path).flush()

    assert path.stat().st_ino == before.st_ino


def test_flushing_a_journal_that_does_not_exist_creates_none(path: Path) -> None:
    Journal(path).flush()

    assert not path.exists()


def test_a_record_after_a_line_that_was_cut_off_is_read(path: Path) -> None:
    Journal(path).append("report", RECORD)
    path.write_bytes(path.read_bytes()[:-10])

    failure = failure_of(lambda: Journal(path).append("other", RECORD))

    assert failure is None
    assert Journal(path).records == {"other": RECORD}


@pytest.mark.parametrize(
    ("member", "wrong_value"),
    [
        ("run", "make it"),
        ("wanted", {"report.txt": ""}),
        ("inputs", ["data.csv"]),
        ("needs", None),
        ("version", 1),
        ("outputs", ["report.txt"]),
        ("env", "LEVEL=3"),
        ("unknown", "of a later version"),
    ],
)
def test_a_record_with_a_wrong_member_is_ignored(
    path: Path,
    member: str,
    wrong_value: object,
) -> None:
    members = {**asdict(RECORD), member: wrong_value}
    path.write_text(json.dumps(["report", members]))

    assert Journal(path).records == {}


@pytest.mark.parametrize("line", ["null", "[]", '["report"]', '["report", []]', "7", "[" * 100_000])
def test_a_line_that_is_no_record_is_ignored(path: Path, line: str) -> None:
    path.write_text(f"{line}\n{json.dumps(['report', asdict(RECORD)])}\n")

    assert Journal(path).records == {"report": RECORD}


def test_a_journal_with_a_second_name_becomes_a_file_of_its_own(path: Path) -> None:
    file_of_user = path.with_name("file of the user")
    file_of_user.write_text("text of the user")
    os.link(file_of_user, path)

    Journal(path).append("report", RECORD)

    assert file_of_user.read_text() == "text of the user"
    assert Journal(path).records == {"report": RECORD}


def test_a_journal_that_is_a_link_is_not_written(path: Path) -> None:
    elsewhere = path.with_name("elsewhere")
    path.symlink_to(elsewhere)

    with pytest.raises(OSError, match="symbolic link"):
        Journal(path)

    assert not elsewhere.exists()
