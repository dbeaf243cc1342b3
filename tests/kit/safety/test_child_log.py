"""sampletool/kit/safety/child_log.py: a log keeps its first and last part."""

import os
import re
from pathlib import Path

import pytest

from sampletool.kit.safety import child_log as module
from sampletool.kit.safety.child_log import MAX_LOG_BYTES, ChildLog
from sampletool.kit.safety.children import Children
from sampletool.kit.safety.signals import Signals

_LONGEST_NOTICE_BYTES = 100


def missing_bytes_in(content: bytes) -> int:
    """Return how much is missing, according to the only notice in a log."""
    (count,) = re.findall(rb"\n\[(\d+) bytes of output are missing here\]\n", content)
    return int(count)


def without_notice(content: bytes) -> bytes:
    return re.sub(rb"\n\[\d+ bytes of output are missing here\]\n", b"", content)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a log have 64 KiB instead of 64 MiB."""
    monkeypatch.setattr(module, "MAX_LOG_BYTES", 64 * 1024)
    monkeypatch.setattr(module, "_FIRST_PART_BYTES", 32 * 1024)
    monkeypatch.setattr(module, "_LAST_PART_BYTES", 16 * 1024)
    monkeypatch.setattr(module, "_COPIED_BYTES", 1000)


@pytest.mark.usefixtures("small_limits")
def test_a_log_up_to_the_limit_is_whole(tmp_path: Path) -> None:
    content = b"0123456\n" * 8 * 1024
    log = ChildLog(lambda: tmp_path / "log")

    log.append(content)
    log.close()

    assert (tmp_path / "log").read_bytes() == content
    assert log.dropped_bytes == 0


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("line_count", [8200, 12_000, 100_000])
@pytest.mark.parametrize("chunk_bytes", [7, 1000, 16_000])
def test_a_longer_log_has_its_first_and_last_part_and_the_number_of_bytes_between_them(
    tmp_path: Path, line_count: int, chunk_bytes: int
) -> None:
    content = b"".join(b"%07d\n" % number for number in range(line_count))
    log = ChildLog(lambda: tmp_path / "log")

    for offset in range(0, len(content), chunk_bytes):
        log.append(content[offset : offset + chunk_bytes])
    log.close()

    logged = (tmp_path / "log").read_bytes()
    kept = without_notice(logged)
    assert log.failure is None
    assert len(logged) <= 64 * 1024 + _LONGEST_NOTICE_BYTES
    assert kept[: 32 * 1024] == content[: 32 * 1024]
    assert kept[32 * 1024 :] == content[32 * 1024 + log.dropped_bytes :]
    assert len(kept) >= 48 * 1024
    assert missing_bytes_in(logged) == log.dropped_bytes == len(content) - len(kept)


@pytest.mark.usefixtures("small_limits")
def test_what_was_in_the_file_before_counts(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"before\n" * 9000)
    log = ChildLog(lambda: tmp_path / "log")

    log.append(b"after\n" * 1000)
    log.close()

    logged = (tmp_path / "log").read_bytes()
    assert logged.startswith(b"before\n")
    assert logged.endswith(b"before\n" + b"after\n" * 1000)
    assert missing_bytes_in(logged) == log.dropped_bytes > 0


def test_a_child_that_prints_more_than_the_limit_has_a_log_with_its_beginning_and_its_end(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log"
    last_number = 10_000_000
    printed_bytes = sum(9 * 10 ** (digits - 1) * (digits + 1) for digits in range(1, 8)) + 9

    with Children(Signals()) as children:
        children.start(
            "seq",
            ["seq", "1", str(last_number)],
            cwd=tmp_path,
            env=dict(os.environ),
            make_log_path=lambda: path,
        )
        child_exit = children.next_exit()

    assert child_exit is not None
    with path.open("rb") as file:
        assert file.read(6) == b"1\n2\n3\n"
        file.seek(-20, os.SEEK_END)
        assert file.read().endswith(b"\n10000000\n")
    size = path.stat().st_size
    assert MAX_LOG_BYTES // 2 < size <= MAX_LOG_BYTES + _LONGEST_NOTICE_BYTES
    assert child_exit.dropped_bytes == pytest.approx(
        printed_bytes - size, abs=_LONGEST_NOTICE_BYTES
    )


def test_a_child_that_prints_without_end_is_bounded_while_it_runs(tmp_path: Path) -> None:
    path = tmp_path / "log"

    with Children(Signals()) as children:
        children.start(
            "yes", ["yes"], cwd=tmp_path, env=dict(os.environ), make_log_path=lambda: path
        )
        sizes = set()
        log = children._running["yes"].output.log
        while log.dropped_bytes < 2 * MAX_LOG_BYTES:
            assert children.next_exit(0.1) is None
            if path.exists():
                sizes.add(path.stat().st_size)

    assert max(sizes) <= MAX_LOG_BYTES + _LONGEST_NOTICE_BYTES
