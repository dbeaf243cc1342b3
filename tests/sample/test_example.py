"""sampletool/sample/example: the check that `tool init` writes finds a mistake in the report."""

import json
import subprocess
import sys
from pathlib import Path

import sampletool.sample

CHECK = Path(sampletool.sample.__file__).parent / "example" / "checks"


def run_check(
    directory: Path, totals: dict[str, int], report: str
) -> "subprocess.CompletedProcess[str]":
    """Run the check on these outputs."""
    for target in ("totals", "report"):
        (directory / "out" / target).mkdir(parents=True)
    (directory / "out" / "totals" / "totals.json").write_text(json.dumps(totals))
    (directory / "out" / "report" / "report.txt").write_text(report)
    return subprocess.run(
        [sys.executable, str(CHECK / "report_names_every_region.py")],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_report_that_names_every_region_passes(tmp_path: Path) -> None:
    ran = run_check(tmp_path, {"north": 1, "south": 2}, "north 1\nsouth 2\n")

    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_report_without_a_region_fails_and_the_region_is_named(tmp_path: Path) -> None:
    ran = run_check(tmp_path, {"north": 1, "south": 2, "east": 3}, "north 1\n")

    assert (ran.returncode, ran.stderr) == (1, "missing from the report: east, south\n")
