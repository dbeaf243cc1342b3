"""sampletool/sample/example/checks: what is wrong with outputs, in one line."""

from pathlib import Path

import pytest

from tests.sample.example.support import create_workspace, run, write_outputs


@pytest.mark.parametrize(
    ("totals", "message"),
    [
        ({"north": 230, "south": 50}, ""),
        ({"north": 230}, "the totals add up to 230, the rows to 280\n"),
    ],
)
def test_totals_that_do_not_add_up_are_found(
    tmp_path: Path,
    totals: dict[str, int],
    message: str,
) -> None:
    workspace = create_workspace(tmp_path)
    write_outputs(workspace, totals)

    ran = run(workspace, "checks/totals_add_up.py")

    assert ran.stderr == message
    assert ran.returncode == (0 if message == "" else 1)


@pytest.mark.parametrize(
    ("report", "message"),
    [
        ("north 1\nsouth 2\neast 3\n", ""),
        ("north 1\n", "missing from the report: east, south\n"),
    ],
)
def test_regions_that_are_missing_from_the_report_are_named(
    tmp_path: Path,
    report: str,
    message: str,
) -> None:
    workspace = create_workspace(tmp_path)
    write_outputs(workspace, {"north": 1, "south": 2, "east": 3}, report)

    ran = run(workspace, "checks/report_names_every_region.py")

    assert ran.stderr == message
    assert ran.returncode == (0 if message == "" else 1)
