"""Tries a change: it is made in a copy of the tree, exactly its tests run, and the file is restored.

A test notices a change by an assertion, or by an exception of the code under test. A change that only makes a test
reach its time limit, or that keeps a module from being imported, shows nothing about the mechanism.
"""

import ctypes
import math
import os
import py_compile
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import cache_from_source
from multiprocessing import Pool, SimpleQueue
from pathlib import Path
from typing import NamedTuple
from xml.etree.ElementTree import Element, parse

from sampletool.kit.program import PACKAGE
from tests.kit.trees import commit, copy_tree, make_environment

from .changes import Change

NOTICED = ("noticed by an assertion", "noticed by an exception")
TIME_LIMIT = "NOTICED ONLY BY A TIME LIMIT"
NOT_NOTICED = "NOT NOTICED"
BROKEN = "BREAKS THE MODULE INSTEAD"
FAILS_ANYWAY = "ITS TESTS FAIL WITHOUT THE CHANGE"
NOT_APPLIED = "DOES NOT APPLY"
SKIPPED = "its tests are skipped here"
UNNOTICED = "cannot be noticed"
NOT_TRIED = "not tried: the time was over"

SECONDS_PER_TEST = 60
LONGEST_SECONDS = 300
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_PATTERNS = (  # the first that matches what pytest writes about a failure
    (re.compile(r"Failed: Timeout \(>|[\w.]*Timeout(Expired|Error)"), TIME_LIMIT),
    (re.compile(r"(Name|Import|ModuleNotFound|Syntax|Indentation)Error|collection failure"), BROKEN),
    (re.compile(r"assert |AssertionError|Failed: "), NOTICED[0]),
)


class Copy:
    """A tree in which changes are tried, one at a time."""

    def __init__(self, source: Path, directory: Path) -> None:
        self.tree = copy_tree(source, directory / "tree")
        commit(self.tree)
        self._python = make_environment(self.tree)
        self._scratch = directory / "t"
        self._report = directory / "report.xml"
        subprocess.run([self._python, "-m", "compileall", "-q", PACKAGE, "tests"], cwd=self.tree, check=True)

    def tried(self, change: Change, limits: "Limits") -> str:
        by_weight = (*NOTICED, TIME_LIMIT, NOT_NOTICED, SKIPPED)
        outcome = NOT_TRIED
        for _ in range(limits.attempts):
            if outcome in NOTICED or time.monotonic() > limits.deadline:
                break
            with self._changed(change):
                outcomes = self._run(change.tests).values()
            outcome = next((outcome for outcome in by_weight if outcome in outcomes), BROKEN)
        return outcome

    def failing(self, tests: list[str], attempts: int) -> set[str]:
        """Of the tree as it is. A test that did not run counts as failing."""
        failing = set(tests)
        for _ in range(attempts):
            results = self._run(sorted(failing)) if failing else {}
            for test in sorted(failing):
                outcomes = {results[name] for name in results if name == test or name.startswith(f"{test}[")}
                if outcomes and outcomes <= {NOT_NOTICED, SKIPPED}:
                    failing.remove(test)
        return failing

    @contextmanager
    def _changed(self, change: Change) -> Iterator[None]:
        path = change.path(self.tree)
        before = path.read_text()
        try:
            _write(path, before.replace(change.line, change.instead))
            yield
        finally:
            _write(path, before)

    def _run(self, tests: Iterable[str]) -> dict[str, str]:
        """The outcome of each test by its name; nothing if pytest could not begin."""
        self._report.unlink(missing_ok=True)
        options = ["-n0", "-q", "-p", "no:cacheprovider", "--timeout", str(SECONDS_PER_TEST), "--timeout-method=signal"]
        process = subprocess.Popen(
            [
                self._python,
                "-m",
                "pytest",
                *options,
                "--basetemp",
                self._scratch,
                f"--junit-xml={self._report}",
                *tests,
            ],
            cwd=self.tree,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        ended = _ends_within(process, LONGEST_SECONDS)
        _end_what_is_left()
        shutil.rmtree(self._scratch, ignore_errors=True)
        if not ended:
            return dict.fromkeys(tests, TIME_LIMIT)
        if not self._report.exists():
            return {}
        return {
            f"{case.attrib['classname'].replace('.', '/')}.py::{case.attrib['name']}": _outcome(case)
            for case in parse(self._report).iter("testcase")  # noqa: S314  pytest wrote it
        }


def _write(path: Path, text: str) -> None:
    """Bytecode goes by the size and the second of the change, so it is made anew here."""
    path.write_text(text)
    if path.suffix == ".py":
        Path(cache_from_source(str(path))).unlink(missing_ok=True)
        with suppress(py_compile.PyCompileError):
            py_compile.compile(str(path), doraise=True)


def _outcome(case: Element) -> str:
    for result in case:
        if result.tag == "skipped":
            return SKIPPED
        if result.tag in ("failure", "error"):
            message = result.attrib["message"]
            return next((outcome for pattern, outcome in _PATTERNS if pattern.match(message)), NOTICED[1])
    return NOT_NOTICED


def _ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Reaps meanwhile what tests left behind, as init would: a zombie looks alive to a test that waits for its end."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        pid, process.returncode = os.waitpid(-1, os.WNOHANG)
        if pid == process.pid:
            return True
        if pid == 0:
            time.sleep(0.02)
    process.returncode = -signal.SIGKILL
    return False


def _end_what_is_left() -> None:
    """Processes become children of this one when their parents have ended."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while left := children.read_text().split():
        for pid in map(int, left):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


_copy: Copy


def _take(copies: "SimpleQueue[Copy]") -> None:
    """Of a worker's process: it becomes the parent of what its tests leave running."""
    global _copy
    _copy = copies.get()
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)


class Limits(NamedTuple):
    attempts: int = 1
    """More than one, where a busy machine must not decide: what was not noticed is tried again."""
    deadline: float = math.inf
    """What has not begun by then is not tried."""


ONCE = Limits()


def _try(change: Change, limits: Limits) -> tuple[Change, str]:
    return change, _copy.tried(change, limits)


def _failing(tests: list[str], limits: Limits) -> set[str]:
    return _copy.failing(tests, limits.attempts)


def try_changes(
    changes: list[Change], tree: Path, workers: int, limits: Limits = ONCE
) -> Iterator[tuple[Change, str, str]]:
    """Each change with its outcome and, where there is more to say, the reason."""
    to_try = []
    for change in changes:
        if fault := change.fault(tree):
            yield change, NOT_APPLIED, fault
        elif change.unnoticed:
            yield change, UNNOTICED, change.unnoticed
        else:
            to_try.append(change)
    tests = sorted({test for change in to_try for test in change.tests})
    shares = [share for n in range(workers) if (share := tests[n::workers])]
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for n in range(workers):
            copies.put(Copy(tree, Path(scratch, str(n))))
        with Pool(workers, _take, (copies,)) as pool:
            failing = set().union(*pool.map(partial(_failing, limits=limits), shares, 1))
            sound = [change for change in to_try if not failing.intersection(change.tests)]
            for change in to_try:
                if change not in sound:
                    yield change, FAILS_ANYWAY, ", ".join(sorted(failing.intersection(change.tests)))
            for change, outcome in pool.imap_unordered(partial(_try, limits=limits), sound):
                yield change, outcome, ""
