"""Workers that write their letters into a log, each when it is its turn: of several scenarios about locks."""

import os
from pathlib import Path

from ..scenario import Step

WORK = Step("work", "os.write", "log")


def work(worker: str) -> None:
    log = os.open("log", os.O_APPEND | os.O_WRONLY)
    os.write(log, worker.encode())


def prepare(directory: Path) -> None:
    (directory / "log").touch()


def look(directory: Path) -> str:
    return f"{' '.join((directory / 'log').read_text()) or 'nobody'} worked"
