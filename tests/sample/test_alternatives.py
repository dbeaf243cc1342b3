"""Every member of an alternation has an effect of its own: modes of inputs and outputs."""

import stat
from pathlib import Path

import pytest

from sampletool.sample.digests import compute_digest
from sampletool.sample.trees import keep_outputs


@pytest.mark.parametrize("bit", [0o100, 0o010, 0o001], ids=oct)
def test_each_bit_that_lets_somebody_execute_a_file_counts_into_its_digest(
    tmp_path: Path, bit: int
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x")
    path.chmod(0o600)
    plain = compute_digest(path, lambda: None)

    path.chmod(0o600 | bit)

    assert compute_digest(path, lambda: None) == f"{plain}x"


@pytest.mark.parametrize(
    ("mode", "kept"), [(0o777, 0o555), (0o666, 0o444), (0o000, 0o400), (0o222, 0o400)], ids=oct
)
def test_an_output_keeps_who_may_read_and_execute_it_and_nobody_may_write(
    tmp_path: Path, mode: int, kept: int
) -> None:
    (tmp_path / "made").touch()
    (tmp_path / "made").chmod(mode)

    assert keep_outputs(tmp_path, ["made"]) == ["made"]

    assert stat.S_IMODE((tmp_path / "made").stat().st_mode) == kept
