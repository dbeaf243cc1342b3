"""Every member of an alternation has an effect of its own: faults of inputs, modes of outputs, line ends."""

import os
import stat
from contextlib import ExitStack
from pathlib import Path

import pytest

from sampletool.kit.contract.errors import ToolError
from sampletool.kit.safety.signals import Signals
from sampletool.sample import csv_file
from sampletool.sample.csv_file import _UNUSABLE, Part, open_inputs, read_header, read_rows
from sampletool.sample.publish import _settle, digest


def test_the_faults_of_one_input_that_are_reported_with_the_others_are_these() -> None:
    assert {kind.__name__ for kind in _UNUSABLE} == {
        "FileNotFoundError",
        "NotADirectoryError",
        "PermissionError",
        "UnsafePath",
    }


@pytest.mark.parametrize("kind", _UNUSABLE, ids=lambda kind: kind.__name__)
def test_each_fault_of_an_input_is_reported_with_those_of_the_others(
    kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, _stack: ExitStack) -> int:
        if issubclass(kind, OSError):
            raise kind(2, "why", path)
        raise kind(path, "why")

    monkeypatch.setattr(csv_file, "_open", refuse)

    with pytest.raises(ToolError) as refused, ExitStack() as stack:
        open_inputs([str(tmp_path / "a"), str(tmp_path / "b")], ",", Signals(), stack)

    assert refused.value.message == "2 of 2 inputs cannot be used; nothing was done."
    assert len(refused.value.context["problems"]) == 2


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), MemoryError()])
def test_any_other_failure_to_open_an_input_ends_the_call(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_path: str, _stack: ExitStack) -> int:
        raise error

    monkeypatch.setattr(csv_file, "_open", fail)

    with pytest.raises(type(error)), ExitStack() as stack:
        open_inputs([str(tmp_path / "a")], ",", Signals(), stack)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"], ids=repr)
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "byte order mark"])
def test_each_line_end_separates_rows_with_and_without_a_byte_order_mark(tmp_path: Path, end: str, mark: str) -> None:
    path = tmp_path / "file.csv"
    path.write_bytes(f"{mark}a,b{end}1,2{end}3,4{end}".encode())
    descriptor = os.open(path, os.O_RDONLY)

    header = read_header(descriptor, path.stat().st_size, ",")
    batches = [*read_rows(descriptor, Part(0, path.stat().st_size), ",", 2)]

    os.close(descriptor)
    assert header == ["a", "b"]
    assert [row for rows, _ in batches for row in rows] == [["1", "2"], ["3", "4"]]


@pytest.mark.parametrize("bit", [0o100, 0o010, 0o001], ids=oct)
def test_each_bit_that_lets_somebody_execute_a_file_counts_into_its_digest(tmp_path: Path, bit: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    path.chmod(0o600)
    plain = digest(path)

    path.chmod(0o600 | bit)

    assert digest(path) == f"{plain}x"


@pytest.mark.parametrize(("mode", "kept"), [(0o777, 0o555), (0o666, 0o444), (0o000, 0o400), (0o222, 0o400)], ids=oct)
def test_an_output_keeps_who_may_read_and_execute_it_and_nobody_may_write(tmp_path: Path, mode: int, kept: int) -> None:
    (tmp_path / "made").touch()
    (tmp_path / "made").chmod(mode)

    assert [*_settle(tmp_path, "made", ["made"])] == ["made"]

    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == kept
