"""The pytest plugin of all tests: each test has a home directory of its own.

A test fails if it starts a process that has another home directory, or if it leaves something
behind (see leaks.py). The plugin has the fixtures that most tests need.
"""

import gc
import os
import random
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from ..program import WORKSPACE_FILE, env_variable
from ..project import ROOT
from ..safety.processes import pids
from ..safety.signals import HANDLED, Signals
from . import leaks
from .forked import end_processes
from .scale import SOAK
from .timing import Timing
from .tool import Tool

_KEPT_VARIABLES = (
    "PATH",
    "COVERAGE_PROCESS_START",
    "COVERAGE_PROCESS_CONFIG",
    "KIT_PACKAGE",
    env_variable("TEST_REQUIRE"),
    env_variable("TEST_SCALE"),
)
_EXISTING_DIRECTORIES = ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")
_MISSING_DIRECTORIES = ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
"""Variables that name directories which do not exist yet, as for a new user."""


_MARKERS = (
    "homeless: the test starts a process with another HOME on purpose",
    "leaves_litter: the test leaves temporary files on purpose, for example by kill -9",
)

_WORKSPACE = """# A workspace.

[settings]
# how careful
level = 1  # not more
"""

_RULES = Path(__file__).with_name("rules")

_ORDER_SEED = os.environ.get(env_variable("TEST_ORDER"), "")


@dataclass
class _CurrentTest:
    """What the hooks and the fixtures below have to know about the test that is running."""

    directory: str | None = None
    """The directory of the test, or None between two tests."""
    has_failed: bool = False
    trespasses: list[str] = field(default_factory=list)
    """The processes that the test has started with a home directory that is not its own."""


_current_test = _CurrentTest()


def _obey_signals() -> None:
    """Handle signals as usual, however the suite was started.

    If it was started with `&` or nohup, it ignores some signals. The processes that it starts would
    ignore them as well.
    """
    for number in HANDLED:
        if signal.getsignal(number) is signal.SIG_IGN:
            # SIG_DFL would end the suite. A handler is not inherited by a program that it starts.
            signal.signal(number, _do_nothing)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    pass


_obey_signals()


def _watch(event: str, args: tuple[Any, ...]) -> None:
    """Note the processes that the test starts with another home. This is an audit hook."""
    # Python calls it for every event, so look at the name of the event first.
    if event in leaks.STARTS_PROCESS or event in leaks.CREATES_TEMPORARY_PATH:
        leaks.notice(event, args)
    if _current_test.directory is None:
        return
    if event == "subprocess.Popen":
        _, program, _, environ = args
    elif event == "fork_server.start":
        program, environ = args
    else:
        return
    if environ is None:
        environ = os.environ
    home = str(environ.get("HOME", ""))
    if not home.startswith(_current_test.directory):
        _current_test.trespasses.append(f"{program} was started with HOME={home!r}")


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def leaks_nothing(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a descriptor, a process, a thread or a temporary file (see leaks.py).

    `home` depends on this fixture. So it is set up before all other fixtures, and torn down after
    them: what they close, kill or remove is no leak.
    """
    before = leaks.begin_test()
    yield
    if _current_test.has_failed:
        leaks.kill_leaked_processes(before, tmp_path)
        return
    may_leave_litter = request.node.get_closest_marker("leaves_litter") is not None
    found = leaks.find_leaks(before, tmp_path, may_leave_litter=may_leave_litter)
    if found:
        leaks.kill_leaked_processes(before, tmp_path)
        kill_remaining_processes(tmp_path)
        listed = "\n".join(found)
        pytest.fail(f"{request.node.name} leaves something behind:\n{listed}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Any:
    """Let the objects of a fixture for several tests outlive the test that needed it first."""
    if fixturedef.scope == "function":
        return (yield)
    with leaks.outlives_the_test():
        return (yield)


@pytest.fixture(autouse=True)
def home(
    leaks_nothing: None,  # so that it is torn down after this fixture
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Path]:
    """Return the directory that has HOME, TMPDIR and the XDG directories of this test.

    The environment is that of the test itself, and of every process that it starts.
    """
    for name in list(os.environ):
        if name not in _KEPT_VARIABLES:
            monkeypatch.delenv(name)
    home = tmp_path / "home"
    home.mkdir()
    for name in _EXISTING_DIRECTORIES:
        directory = home / name.lower()
        directory.mkdir()
        monkeypatch.setenv(name, str(directory))
    for name in _MISSING_DIRECTORIES:
        monkeypatch.setenv(name, str(home / name.lower()))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # Without this, a workspace file above the temporary directory would belong to every test.
    monkeypatch.setenv(env_variable("CEILING_DIRECTORIES"), str(tmp_path.parent))
    # The module `tempfile` looks at TMPDIR only once, unless this is None.
    monkeypatch.setattr(tempfile, "tempdir", None)

    _current_test.directory = str(tmp_path)
    _current_test.has_failed = False
    _current_test.trespasses = []
    yield home
    _current_test.directory = None

    if _current_test.has_failed:
        end_processes()
        kill_remaining_processes(tmp_path)
    is_homeless = request.node.get_closest_marker("homeless") is not None
    if _current_test.trespasses and not is_homeless:
        listed = "; ".join(_current_test.trespasses)
        pytest.fail(f"{request.node.name} left its own directory: {listed}")


def kill_remaining_processes(directory: Path) -> None:
    """Kill the processes that a failed test has left, except the fork server.

    They are the processes whose HOME is below the directory of the test. Some may be stopped.
    """
    home_variable = f"HOME={directory}/".encode()
    for pid in pids():
        process = Path(f"/proc/{pid}")
        try:
            if home_variable not in (process / "environ").read_bytes():
                continue
            # The next test uses the same fork server.
            if b"fork_server" in (process / "cmdline").read_bytes():
                continue
            os.kill(pid, signal.SIGKILL)
        except OSError:
            # The process has exited meanwhile, or belongs to another user.
            continue


@pytest.fixture
def tool(home: Path, tmp_path: Path) -> Iterator[Tool]:
    """Return the tool as a user runs it, in an empty directory outside any workspace."""
    cwd = tmp_path / "work"
    cwd.mkdir()
    tool = Tool(dict(os.environ), cwd)
    try:
        yield tool
    finally:
        tool.end()


@pytest.fixture
def workspace(tool: Tool) -> Path:
    """Create a workspace where `tool` runs, and return its directory."""
    (tool.cwd / WORKSPACE_FILE).write_text(_WORKSPACE)
    return tool.cwd


@pytest.fixture
def signals() -> Signals:
    """Return signals that this process does not receive."""
    return Signals()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option --rules."""
    parser.addoption(
        "--rules",
        action="store_true",
        help="Check the rules about the project's own commands, and run no other test.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, measure the run, and set how many examples each property test tries.

    Raise UsageError for a path that does not exist: with xdist, pytest only says that no tests ran.
    """
    if config.getoption("--rules"):
        config.args[:] = [str(_RULES)]
    for argument in config.args:
        path = argument.partition("::")[0]
        if not Path(path).exists():
            raise pytest.UsageError(f"file or directory not found: {path}")
    for marker in _MARKERS:
        config.addinivalue_line("markers", marker)
    is_worker = hasattr(config, "workerinput")
    if not is_worker:
        config.pluginmanager.register(Timing(), "timing")
    has_hypothesis = config.pluginmanager.hasplugin("hypothesispytest")
    if has_hypothesis and config.getoption("--hypothesis-profile", None) is None:
        _choose_hypothesis_profile()


def _choose_hypothesis_profile() -> None:
    """Try a few examples of each property in a usual run, and many in `make soak`."""
    # Importing Hypothesis takes 110 ms. A suite without property tests saves them with
    # `-p no:hypothesispytest`.
    from hypothesis import settings

    # The other settings are those of Hypothesis: in CI, it tries the same examples in each run.
    settings.register_profile("usual", settings(), max_examples=25, deadline=None)
    settings.register_profile("soak", settings(), max_examples=5000, deadline=None)
    settings.load_profile("soak" if SOAK else "usual")


def pytest_report_header() -> str:
    scale_name = "soak" if SOAK else "usual"
    order_name = f"random, seed {_ORDER_SEED}" if _ORDER_SEED else "as written"
    return f"scale: {scale_name}; order: {order_name}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shuffle the tests if a seed is given.

    All workers have the same seed, so they agree on the order.
    """
    if _ORDER_SEED:
        random.Random(_ORDER_SEED).shuffle(items)


def pytest_collection_finish() -> None:
    """Exclude the collected tests from garbage collection. They stay until the end of the run."""
    gc.collect()
    gc.freeze()


def pytest_xdist_auto_num_workers() -> int:
    """Return one and a half times the number of processors.

    Tests wait for the processes that they start, so one worker for each processor leaves processors
    idle. With twice as many, the start of each worker (about 1 s of processor time) costs more than
    it saves.
    """
    processors = os.cpu_count() or 1
    return processors + processors // 2


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """Note whether the test has failed. Make a skip a failure if TOOL_TEST_REQUIRE is "all".

    CI sets this variable, because it has everything that is optional elsewhere.
    """
    report: pytest.TestReport = yield
    if report.failed:
        _current_test.has_failed = True
    is_everything_required = os.environ.get(env_variable("TEST_REQUIRE")) == "all"
    # A test that is expected to fail is reported as skipped too.
    is_skipped = report.skipped and not hasattr(report, "wasxfail")
    if is_skipped and is_everything_required:
        report.outcome = "failed"
        reason = report.longrepr
        report.longrepr = f"{item.nodeid} was skipped where everything is required: {reason}"
    return report
