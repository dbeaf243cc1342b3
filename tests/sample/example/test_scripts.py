"""sampletool/sample/example/scripts: what the programs write that `tool init` creates."""

from pathlib import Path

from tests.sample.example.support import create_workspace, run, write_outputs


def test_the_totals_are_units_times_price_for_each_region(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path)

    ran = run(workspace, "scripts/totals.py")

    assert ran.stderr == ""
    totals = (workspace / "totals.json").read_text()
    assert totals == '{\n  "north": 230,\n  "south": 50\n}'


def test_the_report_shows_amounts_in_columns(tmp_path: Path) -> None:
    workspace = create_workspace(tmp_path)
    write_outputs(workspace, {"north": 230, "south": 50})

    ran = run(workspace, "scripts/report.py")

    assert ran.stderr == ""
    assert (workspace / "report.txt").read_text() == ("north          2.30\nsouth          0.50\n")
