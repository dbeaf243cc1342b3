"""Where a run takes place: a private directory and an environment in which nothing of the user's is seen."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sampletool.lab.scenario import PACKAGE, STORE_VARIABLE, Way

_KEPT = ("PATH", STORE_VARIABLE, "LD_LIBRARY_PATH", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG")


@contextmanager
def scratch(way: Way) -> Iterator[tuple[Path, dict[str, str]]]:
    """A private directory, prepared, with an environment in which nothing of the user's is seen; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="tool-lab-") as made:
        root = Path(os.path.realpath(made))
        directory, home = root / "here", root / "home"
        directory.mkdir()
        home.mkdir(mode=0o700)
        way.prepare(directory)
        yield directory, private_environ(home)


def private_environ(home: Path) -> dict[str, str]:
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environ |= {"HOME": str(home), "TMPDIR": str(home), "LC_ALL": "C.UTF-8", "TZ": "UTC", "CI": "1"}
    environ |= {"TOOL_CALL_LOG": "off"}  # what it does is no step of any scenario
    return environ | {"PYTHONPATH": str(PACKAGE.parent), "PYTHONSAFEPATH": "1"}
