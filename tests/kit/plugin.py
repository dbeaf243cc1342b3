"""Every test has a home of its own, and one that reaches outside it fails by name."""

import gc
import os
import random
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.program import variable
from sampletool.kit.safety.processes import pids
from sampletool.kit.safety.signals import HANDLED, Signals
from sampletool.kit.testing.forked import end_processes
from sampletool.kit.testing.scale import SOAK
from sampletool.kit.testing.tool import Tool
from tests.kit import leaks
from tests.kit.timing import Timing

_KEPT = ("PATH", "COVERAGE_PROCESS_START", "COVERAGE_PROCESS_CONFIG", "TOOL_TEST_REQUIRE", "TOOL_TEST_SCALE")
_MADE = ("HOME", "TMPDIR", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR")
_NOT_MADE = ("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")
"""Who needs one makes it, as for a new user: for most tests nobody does."""

_MARKERS = (
    "homeless: the test starts a process with another HOME on purpose",
    "leaves_litter: the test leaves temporary files on purpose, for example by kill -9",
)

_ORDER_SEED = os.environ.get(variable("TEST_ORDER"), "")

_guard: dict[str, Any] = {"home": None, "trespasses": [], "failed": False}


def _obey_signals() -> None:
    """With `&` or nohup the suite ignores signals, and what it starts would do the same. A handler is not inherited."""
    for number in HANDLED:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


_obey_signals()


def _watch(event: str, args: tuple[Any, ...]) -> None:
    """An audit hook: a child process without the test's own home is a test that forgot."""
    if event in leaks.STARTS_PROCESS or event in leaks.CREATES_TEMPORARY_PATH:
        leaks.notice(event, args)
    if _guard["home"] is None:
        return
    if event == "subprocess.Popen":
        _, program, _, environ = args
    elif event == "fork_server.start":
        program, environ = args
    else:
        return
    if environ is None:
        environ = os.environ
    home = environ.get("HOME", "")
    if not str(home).startswith(_guard["home"]):
        _guard["trespasses"].append(f"{program} was started with HOME={home!r}")


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def leaks_nothing(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a descriptor, a process, a thread or a temporary file (see leaks.py).

    `home` needs it, so that it is set up first of all fixtures of the test and torn down last: what they close, kill
    or remove is no leak.
    """
    before = leaks.begin_test()
    yield
    if _guard["failed"]:
        leaks.kill_leaked_processes(before, tmp_path)
        return
    may_leave_litter = request.node.get_closest_marker("leaves_litter") is not None
    found = leaks.find_leaks(before, tmp_path, may_leave_litter=may_leave_litter)
    if found:
        leaks.kill_leaked_processes(before, tmp_path)
        end_what_is_left(tmp_path)
        pytest.fail(f"{request.node.name} leaves something behind:\n" + "\n".join(found), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Any:
    """Expect what a fixture makes for more than one test to outlive the test that needed it first."""
    if fixturedef.scope == "function":
        return (yield)
    with leaks.outlives_the_test():
        return (yield)


@pytest.fixture(autouse=True)
def home(
    leaks_nothing: None,  # torn down after all others
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Iterator[Path]:
    """HOME, XDG and TMPDIR of this test, for the test itself and for every process it starts."""
    for name in [name for name in os.environ if name not in _KEPT]:
        monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    for name in (*_MADE, *_NOT_MADE):
        directory = tmp_path / "home" / name.lower()
        if name in _MADE:
            directory.mkdir()
        monkeypatch.setenv(name, str(directory))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    # A workspace file above the temporary directory belongs to somebody else.
    monkeypatch.setenv(variable("CEILING_DIRECTORIES"), str(tmp_path.parent))
    monkeypatch.setattr(tempfile, "tempdir", None)
    _guard.update(home=str(tmp_path), trespasses=[], failed=False)
    yield tmp_path / "home"
    _guard["home"] = None
    if _guard["failed"]:
        end_processes()
        end_what_is_left(tmp_path)
    if _guard["trespasses"] and not request.node.get_closest_marker("homeless"):
        pytest.fail(f"{request.node.name} left its own directory: {'; '.join(_guard['trespasses'])}")


def end_what_is_left(directory: Path) -> None:
    """A test that failed may have left processes, perhaps stopped ones. The fork server is used by the next test."""
    for pid in pids():
        with suppress(OSError):
            is_its_own = f"HOME={directory}/".encode() in Path(f"/proc/{pid}/environ").read_bytes()
            if is_its_own and b"fork_server" not in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def tool(home: Path, tmp_path: Path) -> Iterator[Tool]:
    """The tool as a user runs it, in an empty directory outside any workspace."""
    cwd = tmp_path / "work"
    cwd.mkdir()
    tool = Tool(dict(os.environ), cwd)
    try:
        yield tool
    finally:
        tool.end()


@pytest.fixture
def workspace(tool: Tool) -> Path:
    """A directory with a tool.toml, in which `tool` runs."""
    (tool.cwd / "tool.toml").write_text("# A workspace.\n\n[settings]\n# how careful\nlevel = 1  # not more\n")
    return tool.cwd


@pytest.fixture
def signals() -> Signals:
    """Signals that nobody sends."""
    return Signals()


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, measure the run, and set how many examples each property test tries.

    Raise UsageError for a path that does not exist: with xdist, pytest only says that no tests ran.
    """
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
    # Importing Hypothesis takes 110 ms, which a suite without property tests saves by `-p no:hypothesispytest`.
    from hypothesis import settings

    # Everything else stays as Hypothesis has chosen it: in CI, it tries the same examples in each run.
    settings.register_profile("usual", settings(), max_examples=25, deadline=None)
    settings.register_profile("soak", settings(), max_examples=5000, deadline=None)
    settings.load_profile("soak" if SOAK else "usual")


def pytest_report_header() -> str:
    scale_name = "soak" if SOAK else "usual"
    order_name = f"random, seed {_ORDER_SEED}" if _ORDER_SEED else "as written"
    return f"scale: {scale_name}; order: {order_name}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shuffle the tests if a seed is given. All workers have the same seed, so they agree on the order."""
    if _ORDER_SEED:
        random.Random(_ORDER_SEED).shuffle(items)


def pytest_collection_finish() -> None:
    """What was collected stays to the end: to look through it for garbage again and again is work for nothing."""
    gc.collect()
    gc.freeze()


def pytest_xdist_auto_num_workers() -> int:
    """Return one and a half times the number of processors.

    Tests wait for the processes that they start, so one worker for each processor leaves processors idle. With twice
    as many, the start of each worker (about 1 s of processor time) costs more than it saves.
    """
    processors = os.cpu_count() or 1
    return processors + processors // 2


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Any:
    """With TOOL_TEST_REQUIRE=all a skip is a failure: CI has everything that is optional elsewhere."""
    report = yield
    _guard["failed"] |= report.failed
    if report.skipped and os.environ.get("TOOL_TEST_REQUIRE") == "all" and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped where everything is required: {report.longrepr}"
    return report
