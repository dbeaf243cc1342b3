"""The probes of `tool doctor` find what is wrong, not only what is right."""

import os
from pathlib import Path

import pytest

from sampletool.kit.commands import _probes as probes
from sampletool.kit.commands._probes import probe_directory


def failed(directory: Path) -> set[str]:
    return {probe.name for probe in probe_directory(directory) if not probe.ok}


def test_this_machine_keeps_the_promises(tmp_path: Path) -> None:
    assert failed(tmp_path) == set()


def test_locks_that_do_not_exclude_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "_TAKE", probes._TAKE.replace("LOCK_EX", "LOCK_SH"))

    assert "lock excludes another process" in failed(tmp_path)


def test_a_rename_that_is_seen_by_an_open_reader_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "replace", lambda path, content: path.write_bytes(content))

    assert "rename over an open file" in failed(tmp_path)


def test_an_fsync_that_fails_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)

    assert {"fsync of a directory"} <= failed(tmp_path)
