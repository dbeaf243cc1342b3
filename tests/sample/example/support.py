"""Run the programs of the example in a workspace with outputs."""

import json
import subprocess
import sys
from pathlib import Path

import sampletool.sample

EXAMPLE = Path(sampletool.sample.__file__).parent / "example"

SALES = "region,units,price_cents\nsouth,1,50\nnorth,2,100\nnorth,3,10\n"


Ran = subprocess.CompletedProcess[str]


def create_workspace(tmp_path: Path) -> Path:
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
