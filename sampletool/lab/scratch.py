"""Where a run takes place: a private directory and an environment in which nothing of the user's is seen."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..kit.stepping.fork_server import ForkServer
from .every_step import SCRATCH_PREFIX
from .scenario import PACKAGE, STORE_VARIABLE, Way, module_of

_KEPT = (
    "PATH",
    STORE_VARIABLE,
    "LD_LIBRARY_PATH",
    "COVERAGE_PROCESS_START",
    "COVERAGE_PROCESS_CONFIG",
)
_OUR_CODE = {"PYTHONPATH": str(PACKAGE.parent), "PYTHONSAFEPATH": "1"}
_LOADED = ("sampletool.lab.worker", "sampletool.lab.learner", "_pyio")
_LOADED_OF_THE_TOOL = ("sampletool.kit.app", "sampletool.kit.commands.config.set")


def fork_server_for(*names: str) -> ForkServer:
    """Has loaded what the workers of these scenarios would load, each of them, before their first step."""
    modules = (module_of(name).__name__ for name in names)
    return ForkServer([*_LOADED, *_LOADED_OF_THE_TOOL, *modules], {**os.environ, **_OUR_CODE})


@contextmanager
def scratch(way: Way) -> Iterator[tuple[Path, dict[str, str]]]:
    """A private directory, prepared, with an environment in which nothing of the user's is seen; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX) as made:
        root = Path(os.path.realpath(made))
        directory, home = root / "here", root / "home"
        directory.mkdir()
        home.mkdir(mode=0o700)
        way.prepare(directory)
        yield directory, private_environ(home)


def private_environ(home: Path) -> dict[str, str]:
    environ = {name: os.environ[name] for name in _KEPT if name in os.environ}
    environ |= {"HOME": str(home), "TMPDIR": str(home), "LC_ALL": "C.UTF-8", "TZ": "UTC", "CI": "1"}
    # A workspace above the scratch directory, which is the parent of `home`, is not one of the scenario.
    environ["TOOL_CEILING_DIRECTORIES"] = str(home.parent)
    return environ | _OUR_CODE | {"TOOL_CALL_LOG": "off"}  # what it does is no step of any scenario
