"""sampletool/kit/testing/show: `make run` works whichever parts there are."""

import signal
import subprocess
import sys
from pathlib import Path

from sampletool.kit.program import KIT
from tests.kit.ledger import Ledger

_DEMONSTRATION = f"""
from {KIT}.testing.show.demonstration import heading, say


def show(scratch):
    heading("Two books")
    say(f"They are in {{scratch.is_dir()}}.")
"""


def test_a_project_without_pages_shows_what_the_kit_does(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    for file in (tmp_path / "docs").rglob("*.md"):
        file.unlink()

    # This takes two seconds, because it starts forty processes.
    shown = ledger.run_module(f"{KIT}.testing.show")

    assert "led-ger config set   20 of 20 keys were saved" in shown
    assert "docs/index.md" not in shown


def test_the_demonstration_of_a_part_is_shown_too(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.write({"docs/books/show.py": _DEMONSTRATION})

    shown = ledger.run_module(f"{KIT}.testing.show")

    assert "Two books\n---------\nThey are in True.\n" in shown
    assert "docs/index.md" in shown


def test_ctrl_c_stops_the_demonstrations_without_a_traceback(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    (tmp_path / "scratch").mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", f"{KIT}.testing.show"],
        cwd=ledger.directory,
        env={**ledger.environ, "TMPDIR": str(tmp_path / "scratch")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()

    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()

    assert (process.returncode, stderr) == (130, "")
    assert stdout.endswith("Stopped by Ctrl-C.\n")
    assert list((tmp_path / "scratch").iterdir()) == []
