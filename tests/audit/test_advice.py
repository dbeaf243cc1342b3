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

    rules = {}
    for score, blocked in ((1, False), (1, True), (0, False), (0, True)):
        advice = advise(score, command, blocked_after_kill=blocked)
        assert advice is not None
        rules[score, blocked] = [rule.split(".")[0] for rule in advice.rules]

    always = [
        "Run one at a time",
        f"`{PROGRAM} run-safely` waits for its turn, and gives up after 30 s",
    ]
    unsafe = "Exit code 0 proves nothing while a caller without this lock may be running"
    kill = "Do not kill it"
    assert rules == {
        (1, False): always,
        (1, True): [*always, kill],
        (0, False): [*always, unsafe],
        (0, True): [*always, unsafe, kill],
    }


def test_the_loop_runs_the_command_for_each_line_of_its_input() -> None:
    advice = advise(0, CommandLine.parse("git config {key} {value}", ()), blocked_after_kill=False)

    assert advice is not None
    assert advice.loop == [
        "while read -r key value; do",
        f"  {PROGRAM} run-safely -q --lock-timeout 30s -- "
        'git config "$key" "$value" </dev/null || exit',
        "done",
    ]


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
