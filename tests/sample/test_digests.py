"""sampletool/sample/digests.py: an unchanged file is not read again, and any other file is."""

import json
import os
from pathlib import Path

import pytest

from sampletool.kit.testing.failing import failure_of, outcome_of
from sampletool.sample import digests as module
from sampletool.sample.digests import NOT_READ, DigestCache, compute_digest

_BOOT_ID = "boot-1"


def do_nothing() -> None:
    """Let a long read continue."""


class Reads:
    """The files that were read."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def digest(self, path: str, _check: object) -> str:
        self.names.append(path)
        return compute_digest(path, do_nothing)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    reads = Reads()
    monkeypatch.setattr(module, "compute_digest", reads.digest)
    return reads


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text("one")
    return path


def cache_of(
    file: Path,
    *,
    later_seconds: float = 10.0,
    boot_id: str = _BOOT_ID,
    reads_files: bool = True,
) -> DigestCache:
    """Return the cache at a time that is this long after the last change of the file."""
    changed_at = file.stat().st_ctime if file.exists() else 0.0
    return DigestCache(
        file.with_name("digests.json"),
        do_nothing,
        clock=lambda: changed_at + later_seconds,
        boot_id=boot_id,
        reads_files=reads_files,
    )


def remember(file: Path, *, later_seconds: float = 10.0) -> str:
    """Let the cache read the file, and save what it knows."""
    cache = cache_of(file, later_seconds=later_seconds)
    file_digest = digest_in(cache, file)
    failure = failure_of(cache.save)
    assert failure is None, repr(failure)
    return file_digest


def digest_in(cache: DigestCache, file: Path) -> str:
    """Return the digest of a file. A cache raises no errors."""
    found = outcome_of(lambda: cache.digest(file))
    assert isinstance(found, str), repr(found)
    return found


def test_an_unchanged_file_is_read_once(file: Path, reads: Reads) -> None:
    first = remember(file)
    second = digest_in(cache_of(file), file)

    assert first == second != ""
    assert reads.names == [str(file)]


@pytest.mark.parametrize("change", ["content", "same size", "mode", "inode", "time"])
def test_a_changed_file_is_read_again(file: Path, reads: Reads, change: str) -> None:
    remember(file)
    before = file.stat()

    if change == "content":
        file.write_text("another")
    elif change == "same size":
        file.write_text("two")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif change == "mode":
        file.chmod(0o755)
    elif change == "inode":
        file.with_name("new").write_text("two")
        os.replace(file.with_name("new"), file)
    else:
        os.utime(file, ns=(0, 0))

    assert cache_of(file).digest(file) == compute_digest(file, do_nothing)
    assert len(reads.names) == 2


def test_a_cache_that_must_not_read_files_knows_only_those_that_are_unchanged(
    file: Path, reads: Reads
) -> None:
    other = file.with_name("other.csv")
    other.write_text("other")
    file_digest = remember(file)

    cache = cache_of(file, reads_files=False)
    known = cache.digest(file)
    unknown = cache.digest(other)
    file.write_text("changed")
    changed = cache.digest(file)

    assert known == file_digest
    assert (unknown, changed) == (NOT_READ, NOT_READ)
    assert reads.names == [str(file)]


@pytest.mark.parametrize(("later_seconds", "read_count"), [(1.9, 2), (2.1, 1)])
def test_a_file_that_was_changed_a_moment_ago_is_read_again(
    file: Path, reads: Reads, later_seconds: float, read_count: int
) -> None:
    remember(file, later_seconds=later_seconds)

    cache_of(file).digest(file)

    assert len(reads.names) == read_count


def test_the_digest_of_a_file_that_changes_while_it_is_read_is_not_remembered(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change_after_reading(path: str, _check: object) -> str:
        file_digest = compute_digest(path, do_nothing)
        file.write_text("changed")
        return file_digest

    with monkeypatch.context() as patched:
        patched.setattr(module, "compute_digest", change_after_reading)
        remember(file)

    assert cache_of(file).digest(file) == compute_digest(file, do_nothing)


def test_after_a_reboot_everything_is_read_again(file: Path, reads: Reads) -> None:
    remember(file)

    cache_of(file, boot_id="boot-2").digest(file)

    assert len(reads.names) == 2


def test_without_a_boot_id_nothing_is_remembered(file: Path) -> None:
    cache = cache_of(file, boot_id="")

    cache.digest(file)
    cache.save()

    assert not file.with_name("digests.json").exists()


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "null",
        '{"boot_id": "boot-1"}',
        '{"boot_id": "boot-1", "files": [1]}',
        # Too deep for the parser.
        "[" * 100_000,
    ],
)
def test_a_cache_that_cannot_be_used_is_ignored(file: Path, content: str) -> None:
    file.with_name("digests.json").write_text(content)

    found = outcome_of(lambda: cache_of(file).digest(file))

    assert found == compute_digest(file, do_nothing)


def test_files_that_were_removed_are_forgotten(file: Path) -> None:
    remember(file)
    other = file.with_name("other.csv")
    other.write_text("other")
    file.unlink()

    remember(other)

    saved = json.loads(file.with_name("digests.json").read_text())
    assert list(saved["files"]) == [str(other)]


def test_a_cache_that_cannot_be_written_is_no_failure(file: Path) -> None:
    file.with_name("digests.json").mkdir()

    assert remember(file) == compute_digest(file, do_nothing)


def test_a_missing_file_has_no_digest(tmp_path: Path) -> None:
    assert cache_of(tmp_path / "missing").digest(tmp_path / "missing") == ""


def test_a_file_with_an_old_time_that_was_changed_a_moment_ago_is_read_again(
    file: Path, reads: Reads
) -> None:
    """A program that unpacks an archive can give a new file an old time of change."""
    os.utime(file, ns=(0, 0))
    remember(file, later_seconds=1.0)

    cache_of(file).digest(file)

    assert len(reads.names) == 2


def test_files_that_were_not_asked_for_again_stay_in_the_cache(file: Path, reads: Reads) -> None:
    remember(file)
    other = file.with_name("other.csv")
    other.write_text("other")
    remember(other)

    cache_of(file).digest(file)

    assert reads.names == [str(file), str(other)]


def test_a_long_read_can_be_interrupted(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BLOCK_BYTES", 2)
    calls: list[int] = []

    def check() -> None:
        calls.append(len(calls))
        if len(calls) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compute_digest(file, check)

    assert len(calls) == 2
