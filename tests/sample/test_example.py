"""sampletool/sample/example: what the programs do that `tool init` writes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sampletool.sample

EXAMPLE = Path(sampletool.sample.__file__).parent / "example"

SALES = "region,units,price_cents\nsouth,1,50\nnorth,2,100\nnorth,3,10\n"


Ran = subprocess.CompletedProcess[str]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Return a workspace with the input, and with directories for outputs."""
    for name in ("data", "out/totals", "out/report"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "data" / "sales.csv").write_text(SALES)
    return tmp_path


def run(workspace: Path, script: str) -> Ran:
    """Run a program of the example."""
    return subprocess.run(
        [sys.executable, str(EXAMPLE / script)],
        cwd=workspace,
        capture_output=True,
        text=True,
        check=False,
    )


def write_outputs(workspace: Path, totals: dict[str, int], report: str = "") -> None:
    (workspace / "out" / "totals" / "totals.json").write_text(json.dumps(totals))
    (workspace / "out" / "report" / "report.txt").write_text(report)


def test_the_totals_are_units_times_price_for_each_region(workspace: Path) -> None:
    ran = run(workspace, "scripts/totals.py")

    assert ran.stderr == ""
    totals = json.loads((workspace / "totals.json").read_text())
    assert list(totals.items()) == [("north", 230), ("south", 50)]


def test_the_report_shows_amounts_in_columns(workspace: Path) -> None:
    write_outputs(workspace, {"north": 230, "south": 50})

    run(workspace, "scripts/report.py")

    assert (workspace / "report.txt").read_text() == ("north          2.30\nsouth          0.50\n")


@pytest.mark.parametrize(
    ("totals", "message"),
    [
        ({"north": 230, "south": 50}, ""),
        ({"north": 230}, "the totals add up to 230, the rows to 280\n"),
    ],
)
def test_totals_that_do_not_add_up_are_found(
    workspace: Path,
    totals: dict[str, int],
    message: str,
) -> None:
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
    workspace: Path,
    report: str,
    message: str,
) -> None:
    write_outputs(workspace, {"north": 1, "south": 2, "east": 3}, report)

    ran = run(workspace, "checks/report_names_every_region.py")

    assert ran.stderr == message
    assert ran.returncode == (0 if message == "" else 1)
