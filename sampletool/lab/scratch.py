"""Create the directory and the environment of a run, without any settings of the user."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..kit.stepping.fork_server import ForkServer
from .every_step import SCRATCH_PREFIX
from .scenario import PACKAGE, STORE_VARIABLE, Variant, module_of

_KEPT_VARIABLES = (
    "PATH",
    STORE_VARIABLE,
    "LD_LIBRARY_PATH",
    "COVERAGE_PROCESS_START",
    "COVERAGE_PROCESS_CONFIG",
)
"""The variables of the user that a worker gets. Others could change what the tool does."""
_OUR_CODE = {"PYTHONPATH": str(PACKAGE.parent), "PYTHONSAFEPATH": "1"}
"""The variables with which a worker finds this package, and no module in its own directory."""
_PRELOADED = (
    "sampletool.lab.worker",
    "sampletool.lab.learner",
    "sampletool.lab.learner_threads",
    "_pyio",
    "sampletool.kit.app",
    "sampletool.kit.commands.config.set",
)
"""The modules that many workers import, besides those of their scenario."""


def fork_server_for(*scenario_names: str) -> ForkServer:
    """Return a fork server that has imported the modules of these scenarios' workers.

    Otherwise each worker of each run would import them before its first step.
    """
    scenario_modules = [module_of(name).__name__ for name in scenario_names]
    return ForkServer([*_PRELOADED, *scenario_modules], {**os.environ, **_OUR_CODE})


@contextmanager
def scratch_directory(variant: Variant) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield a directory that the variant has prepared, and an environment. Then delete both."""
    with tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX) as temporary_directory:
        # On some systems, the directory for temporary files is a symbolic link.
        root = Path(os.path.realpath(temporary_directory))
        directory = root / "here"
        home = root / "home"
        directory.mkdir()
        home.mkdir(mode=0o700)
        variant.prepare(directory)
        yield directory, private_environ(home)


def private_environ(home: Path) -> dict[str, str]:
    """Return the environment of a worker, with this home directory."""
    environ = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    environ |= {"HOME": str(home), "TMPDIR": str(home)}
    environ |= {"LC_ALL": "C.UTF-8", "TZ": "UTC", "CI": "1"}
    # The workers must not find a workspace of the user above the scratch directory.
    environ["TOOL_CEILING_DIRECTORIES"] = str(home.parent)
    # Writing to the call log is no step of any scenario.
    environ["TOOL_CALL_LOG"] = "off"
    return environ | _OUR_CODE
