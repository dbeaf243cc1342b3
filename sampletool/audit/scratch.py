"""A directory of its own for one probe, a private HOME in it, and every process that was started there.

Used as `with`: leaving it kills every run, and every process that came from one, and removes the directory. Of the
caller's environment only what is needed to find and run programs gets in, because anything else (GIT_CONFIG_GLOBAL,
TOOL_CONFIG_DIR, ...) may lead to files that are not ours to touch.
"""

import errno
import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Self

from sampletool.audit.errors import FailsAlone
from sampletool.audit.failure import shown
from sampletool.audit.run import Run
from sampletool.kit.safety.orphans import end_all
from sampletool.kit.safety.processes import pids
from sampletool.kit.safety.signals import Signals

_PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "JAVA_HOME")
_PLACES = {"HOME": "home", "XDG_RUNTIME_DIR": "run", "TMPDIR": "tmp"}
"""XDG's other directories are below HOME where no variable names them."""
_LONGEST_NAP_SECONDS = 0.02


class Scratch:
    def __init__(self, signals: Signals) -> None:
        self._signals = signals
        self.runs: list[Run] = []

    def __enter__(self) -> Self:
        self.directory = Path(tempfile.mkdtemp(prefix="tool-audit-"))
        try:
            for place in ("work", "output", *_PLACES.values()):
                (self.directory / place).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            self._clear()
            raise
        self._environ = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        self._environ |= {name: str(self.directory / place) for name, place in _PLACES.items()}
        return self

    def __exit__(self, *error: object) -> None:
        self._clear()

    def launch(self, words: list[str]) -> Run:
        """Begin a run; what it prints is kept beside its directories, where it does not see it."""
        self._signals.check()
        try:
            run = Run(words, self._environ, self.directory / "work", self.directory / "output" / os.urandom(8).hex())
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOEXEC, errno.EACCES):
                raise
            raise FailsAlone(shlex.join(words), f"cannot be started ({os.strerror(error.errno).lower()})", "") from None
        self.runs.append(run)
        return run

    def all_end(self, runs: list[Run], deadline_seconds: float) -> bool:
        """False when the deadline passes first. Looked at often in the beginning, when short runs meet."""
        began = time.monotonic()
        while sum(run.is_over() for run in runs) < len(runs):
            self._signals.check()
            elapsed = time.monotonic() - began
            if elapsed >= deadline_seconds:
                return False
            left = deadline_seconds - elapsed
            self._signals.wait(min(max(0.0005, elapsed / 20), _LONGEST_NAP_SECONDS, left))
        return True

    def snapshot(self) -> dict[str, tuple[int, int, int]]:
        """Every file that the runs can have left, with what shows that it was changed."""
        found = {}
        for path in _below(self.directory, leave_out="output"):
            with suppress(OSError):
                state = os.lstat(path)
                found[path] = state.st_ino, state.st_mtime_ns, state.st_size
        return found

    def shown(self, run: Run) -> str:
        """What it printed, without the name of this directory."""
        return shown((run.stderr.strip() or run.stdout).replace(str(self.directory), "SCRATCH"))

    def _clear(self) -> None:
        """Nothing stays: no process, no file. Safe twice, and in the middle of anything else."""
        for run in self.runs:
            run.end()
        end_all(self._strays, self._signals)
        for path in _below(self.directory):
            if os.path.isdir(path) and not os.path.islink(path):
                with suppress(OSError):
                    os.chmod(path, 0o700)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _strays(self) -> list[int]:
        """What left the group of its run, known by its environment: it names a directory that nobody could guess."""
        return [pid for pid in pids() if os.fsencode(self.directory) in _environ(pid)]


def _environ(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def _below(directory: Path, leave_out: str = "") -> Iterator[str]:
    """Everything in it, a directory before what is in that."""
    for folder, directories, files in os.walk(directory):
        directories[:] = [name for name in directories if name != leave_out]
        yield from (os.path.join(folder, name) for name in directories + files)
