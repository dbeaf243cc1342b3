"""kit/folder_exchange.py: at every instant, each of two names leads to one of two folders."""

import ctypes
import errno
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sampletool.kit import folder_exchange
from sampletool.kit.folder_exchange import ExchangeUnsupported, exchange

MANY_TIMES = 3000
"""With two renames, the reader found a missing folder within 100 times, also on a busy machine."""


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Return two folders, each with one file."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    return tmp_path / "first", tmp_path / "second"


def exchange_or_skip(first: Path, second: Path) -> None:
    try:
        exchange(str(first), str(second))
    except ExchangeUnsupported as error:
        pytest.skip(f"two folders cannot be exchanged here: {error}")


def test_each_folder_gets_the_name_of_the_other(folders: tuple[Path, Path]) -> None:
    first, second = folders

    exchange_or_skip(first, second)

    assert (first / "file").read_text() == "second"
    assert (second / "file").read_text() == "first"


def two_renames(first: Path, second: Path) -> None:
    """Exchange two folders as a program does that cannot do it in one step."""
    away = first.with_name("away")
    first.rename(away)
    second.rename(first)
    away.rename(second)


def was_missing_during(exchange_folders: Callable[[], None], file: Path) -> bool:
    """Return whether a reader finds the file missing while the folders are exchanged many times."""
    was_missing = threading.Event()
    is_over = threading.Event()

    def read_until_it_is_over() -> None:
        while not is_over.is_set():
            try:
                file.read_text()
            except FileNotFoundError:
                was_missing.set()

    reader = threading.Thread(target=read_until_it_is_over)
    reader.start()
    try:
        for _ in range(MANY_TIMES):
            exchange_folders()
            if was_missing.is_set():
                break
    finally:
        is_over.set()
        reader.join()
    return was_missing.is_set()


def test_with_two_renames_a_reader_finds_no_folder(folders: tuple[Path, Path]) -> None:
    first, second = folders

    assert was_missing_during(lambda: two_renames(first, second), first / "file")


def test_if_folders_are_exchanged_a_reader_always_finds_one(folders: tuple[Path, Path]) -> None:
    first, second = folders
    exchange_or_skip(first, second)

    assert not was_missing_during(lambda: exchange(str(first), str(second)), first / "file")


def test_a_missing_folder_is_an_error_that_names_both(folders: tuple[Path, Path]) -> None:
    first, _ = folders

    with pytest.raises(OSError, match="No such file") as caught:
        exchange(str(first), str(first.with_name("missing")))

    assert caught.value.filename == str(first)
    assert caught.value.filename2 == str(first.with_name("missing"))


@pytest.mark.parametrize("error_number", [errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_this_function_is_reported_as_such(
    folders: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    error_number: int,
) -> None:
    def fail(*_args: object) -> int:
        ctypes.set_errno(error_number)
        return -1

    monkeypatch.setattr(folder_exchange, "_find_rename_function", lambda: (fail, 2))

    with pytest.raises(ExchangeUnsupported):
        exchange(*map(str, folders))


def test_a_c_library_without_this_function_is_reported_as_such(
    folders: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda *_args, **_options: object())

    name = "renamex_np" if sys.platform == "darwin" else "renameat2"
    with pytest.raises(ExchangeUnsupported, match=f"The C library has no {name}"):
        exchange(*map(str, folders))
