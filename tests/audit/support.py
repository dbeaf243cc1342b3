"""Candidates to audit, and functions to look for their processes."""

import os
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path

from sampletool.audit.command_line import CommandLine
from sampletool.audit.trial import Candidate

_CANDIDATES = Path(__file__).parent / "candidates"
_PATIENCE_SECONDS = 60


def script(name: str, verb: str) -> str:
    """Return the command line of one of the scripts in the folder candidates.

    All of them keep their settings in one file. Reading it with `cat` takes 2 ms instead of 12.
    """
    if verb == "get":
        return "sh -c 'exec cat \"$HOME\"/settings* # $1' sh {key}"
    # These options let Python start in a few milliseconds.
    words = [sys.executable, "-I", "-S", str(_CANDIDATES / f"{name}.py")]
    return f"{shlex.join(words)} {{key}} {{value}}"


def candidate(name: str, deadline_seconds: float = 10.0) -> Candidate:
    set_command, get_command = (
        CommandLine.parse(script(name, verb), ()).find_program(f"--{verb}", Path.cwd())
        for verb in ("set", "get")
    )
    return Candidate(set_command, get_command, deadline_seconds)


def candidate_of(set_text: str, get_text: str, deadline_seconds: float = 10.0) -> Candidate:
    """Return a candidate with these commands, which are not looked up."""
    return Candidate(
        CommandLine.parse(set_text, ()), CommandLine.parse(get_text, ()), deadline_seconds
    )


def eventually(claim: Callable[[], bool]) -> bool:
    """Return whether the claim becomes true within a minute."""
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while not claim():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.01)
    return True


def is_gone(pid: int) -> bool:
    """Return whether a process has exited, even if its parent has not reaped it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def processes_of(directory: Path) -> list[int]:
    """Return every running process with this directory in its environment."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                environ = Path(entry.path, "environ").read_bytes()
            except OSError:
                continue
            if os.fsencode(directory) in environ:
                found.append(int(entry.name))
    return found
