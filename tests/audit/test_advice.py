"""sampletool/audit/advice.py"""

import os
import subprocess
import sys
from pathlib import Path

from sampletool.audit.advice import advise
from sampletool.audit.command_line import CommandLine
from sampletool.kit.program import PACKAGE, PROGRAM
from tests.audit.support import script

_LOOPS, _LINES = 2, 3
"""Each line is a call in an interpreter of its own, as a shell makes it: 100 ms of a processor."""


def test_who_may_run_in_parallel_needs_no_advice() -> None:
    command = CommandLine.parse("git config {key} {value}", ())

    assert advise(2, command, blocked_after_kill=False) is None
    assert advise(3, command, blocked_after_kill=False) is None


def test_the_advice_fits_what_was_found() -> None:
    command = CommandLine.parse("git config {key} {value}", ())

    harmless, losing = (
        advise(1, command, blocked_after_kill=False),
        advise(0, command, blocked_after_kill=True),
    )

    assert harmless is not None
    assert losing is not None
    assert len(losing.rules) == len(harmless.rules) + 2


def test_the_loop_makes_even_the_naive_script_keep_everything(tmp_path: Path) -> None:
    advice = advise(0, CommandLine.parse(script("naive", "set"), ()), blocked_after_kill=False)
    assert advice is not None
    (tmp_path / PROGRAM).write_text(f'#!/bin/sh\nexec {sys.executable} -m {PACKAGE} "$@"\n')
    (tmp_path / PROGRAM).chmod(0o755)
    environ = {**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for number in range(_LOOPS):
        lines = "".join(f"k{number}-{line} a value with $(spaces)\n" for line in range(_LINES))
        (tmp_path / f"input-{number}").write_text(lines)

    words = ["/bin/sh", "-c", "\n".join(advice.loop)]
    inputs = [(tmp_path / f"input-{number}").open() for number in range(_LOOPS)]
    loops = [subprocess.Popen(words, env=environ, stdin=file) for file in inputs]

    assert [loop.wait(60) for loop in loops] == [0] * _LOOPS
    for file in inputs:
        file.close()
    kept = (tmp_path / "settings.json").read_text()
    assert all(
        f'"k{number}-{line}": "a value with $(spaces)"' in kept
        for number in range(_LOOPS)
        for line in range(_LINES)
    )
