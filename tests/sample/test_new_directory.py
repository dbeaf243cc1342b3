"""sampletool/sample/new_directory.py: where no workspace can or should be created."""

import errno
from pathlib import Path

import pytest

from sampletool.kit.contract.errors import ToolError
from sampletool.kit.testing.failing import failure_of
from sampletool.sample.new_directory import check_writable, refuse_wide_directory


def test_the_root_directory_is_refused_with_a_hint() -> None:
    with pytest.raises(ToolError) as refused:
        refuse_wide_directory(Path("/"))

    assert refused.value.code == "UNSAFE_PATH"
    assert "it is the root directory" in refused.value.message
    assert "--force" in str(refused.value.suggestion)


@pytest.mark.parametrize("spelling", [".", "link", "sub/.."])
def test_the_home_directory_is_refused_however_it_is_spelled(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spelling: str,
) -> None:
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True, exist_ok=True)
    (home / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(home))

    with pytest.raises(ToolError, match="it is your home directory"):
        refuse_wide_directory(home / spelling)


@pytest.mark.parametrize("name", ["home/sub", "elsewhere", "missing/too"])
def test_other_directories_are_accepted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    assert failure_of(lambda: refuse_wide_directory(tmp_path / name)) is None


def test_a_directory_that_can_be_created_is_writable(tmp_path: Path) -> None:
    new_directory = tmp_path / "new" / "deep" / ("a" * 255)

    assert failure_of(lambda: check_writable(tmp_path)) is None
    assert failure_of(lambda: check_writable(new_directory)) is None

    assert not (tmp_path / "new").exists()


def test_a_name_that_is_too_long_is_an_error(tmp_path: Path) -> None:
    too_long = tmp_path / "new" / ("a" * 256)

    with pytest.raises(OSError, match="File name too long") as raised:
        check_writable(too_long)

    assert (raised.value.errno, raised.value.filename) == (errno.ENAMETOOLONG, str(too_long))


def test_a_directory_below_a_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(NotADirectoryError):
        check_writable(tmp_path / "file" / "new")
