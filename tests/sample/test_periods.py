"""Every period at its real length: what happens just before its end, and what just after."""

import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from sampletool.sample import output, publish
from sampletool.sample.journal import BuildRecord
from sampletool.sample.publish import Outputs

NOW = 1_800_000_000.0
HOUR = 3600
MOMENT = 0.001


@pytest.mark.parametrize(("unlinked_seconds", "is_kept"), [(HOUR, True), (HOUR + MOMENT, False)])
def test_a_version_that_is_no_longer_linked_is_kept_for_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unlinked_seconds: float, is_kept: bool
) -> None:
    outputs = Outputs(tmp_path)
    (tmp_path / ".tool").mkdir(mode=0o700)
    (tmp_path / ".tool" / "out").mkdir(mode=0o700)
    version = tmp_path / ".tool" / "out" / "t-old"
    version.mkdir()
    unlinked_at = version.stat().st_ctime
    monkeypatch.setattr(
        publish, "time", SimpleNamespace(time=lambda: unlinked_at + unlinked_seconds)
    )

    outputs.remove_old_versions()

    assert version.exists() is is_kept


def test_a_version_that_is_built_last_is_kept_however_old_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs = Outputs(tmp_path)
    version = tmp_path / ".tool" / "out" / "t-last"
    version.mkdir(mode=0o700, parents=True)
    outputs.records["t"] = BuildRecord([], [], {}, {}, "t-last")
    monkeypatch.setattr(publish, "time", SimpleNamespace(time=lambda: NOW + 1000 * HOUR))

    outputs.remove_old_versions()

    assert version.exists()


@pytest.mark.leaves_litter
@pytest.mark.parametrize(("age_seconds", "is_kept"), [(HOUR, True), (HOUR + 1, False)])
def test_a_temporary_file_beside_a_result_is_litter_after_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age_seconds: int, is_kept: bool
) -> None:
    temporary = tmp_path / ".result.json.12-0123abcd.tmp"
    temporary.touch()
    os.utime(temporary, (NOW - age_seconds, NOW - age_seconds))
    monkeypatch.setattr(time, "time", lambda: NOW)

    output.publish(tmp_path / "result.json", {"n": 1}, [])

    assert temporary.exists() is is_kept
