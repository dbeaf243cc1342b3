"""What `make run` shows of this part ends, whatever a fork has left of it."""

from pathlib import Path

import pytest

from docs.sample.show import build_running, show


def test_the_second_of_two_builds_is_answered_with_the_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show(tmp_path)

    assert "LOCK_HELD" in capsys.readouterr().out


def test_nobody_waits_for_a_build_that_has_ended(tmp_path: Path) -> None:
    (tmp_path / "tool.toml").write_text("this is no TOML")

    with build_running(tmp_path):
        pass
