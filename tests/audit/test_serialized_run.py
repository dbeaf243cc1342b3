"""sampletool/audit/serialized_run.py: when a program is run again, and when it is not."""

import errno
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.audit import given_stdin
from sampletool.audit import serialized_run as module
from sampletool.audit.errors import ProgramNotRunnable
from sampletool.audit.serialized_run import RetryLimits, pause_before_retry
from sampletool.kit.testing.failing import failure_of

_HELD = '{"error":{"code":"LOCK_HELD","retry_after_ms":1}}'


@pytest.mark.parametrize(
    ("hint", "seconds"),
    [('"retry_after_ms":44', 0.044), ('"retry_after":4', 4), ('"retry_after_ms":999999', 60)],
)
def test_it_waits_for_as_long_as_the_program_says_and_a_minute_at_the_most(
    tmp_path: Path, hint: str, seconds: float
) -> None:
    output = tmp_path / "out"

    output.write_text(f'text\n{{"error":{{"code":"LOCK_HELD",{hint}}}}}\n')

    assert pause_before_retry(output, 1, tries=1) == seconds


@pytest.mark.parametrize(("hint_ms", "pause"), [(1, 0.001), (60_000, 60.0), (60_001, 60.0)])
def test_a_hint_is_followed_for_up_to_a_minute(tmp_path: Path, hint_ms: int, pause: float) -> None:
    (tmp_path / "out").write_text(
        json.dumps({"error": {"code": "LOCK_HELD", "retry_after_ms": hint_ms}})
    )

    assert pause_before_retry(tmp_path / "out", 1, 1) == pause


@pytest.mark.parametrize(
    ("tries", "least", "most"),
    [(1, 0.2, 0.3), (2, 0.4, 0.6), (8, 25.6, 38.4), (9, 51.2, 60), (50, 60, 60)],
)
def test_a_program_that_does_not_say_when_is_called_again_after_a_growing_pause(
    tmp_path: Path, tries: int, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").write_text("busy\n")

    pauses = []
    for share in (0, 1):
        monkeypatch.setattr(
            random, "uniform", lambda low, high, share=share: high if share else low
        )
        pauses.append(pause_before_retry(tmp_path / "out", 75, tries))

    assert pauses == pytest.approx([least, most])


def test_only_the_last_line_can_be_the_answer(tmp_path: Path) -> None:
    output = tmp_path / "out"

    output.write_text(f"{_HELD}\ntext\n")

    assert pause_before_retry(output, 1, tries=1) is None


@pytest.mark.parametrize(
    ("answer", "is_held"),
    [
        ('{"data":{"code":"X"},"error":{"code":"LOCK_HELD"}}', True),
        ('{"warnings":[{"code":"X"}],"code":"LOCK_HELD"}', True),
        ('{"data":{"tasks":[{"code":"LOCK_HELD"}]},"error":{"code":"PARTIAL"}}', False),
        ('{"tasks":[{"code":"LOCK_HELD"}],"error":"one has failed"}', False),
        ('[{"code":"LOCK_HELD"}]', False),
    ],
)
def test_only_the_error_of_an_answer_says_that_its_lock_is_held(
    tmp_path: Path, answer: str, is_held: bool
) -> None:
    """A program that was refused one of several locks must not do everything again."""
    output = tmp_path / "out"

    output.write_text(answer)

    assert (pause_before_retry(output, 3, tries=1) is not None) == is_held


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", ""),
        (b"one\n", "one"),
        (b"one\ntwo\n", "two"),
        (b"one\n\xff", "\N{REPLACEMENT CHARACTER}"),
        (b"x" * 100_000, "x" * 65_536),
    ],
)
def test_the_last_line_of_the_output_is_searched_and_no_more_of_it_than_64_kib(
    tmp_path: Path,
    content: bytes,
    line: str,
) -> None:
    (tmp_path / "out").write_bytes(content)

    assert module._read_last_line(tmp_path / "out") == line


class FakeContext:
    """A context that only notes what it should show and how long it should wait."""

    def __init__(self) -> None:
        self.seen: list[object] = []
        self.signals = SimpleNamespace(wait=self.seen.append, check=lambda: None)

    def progress(self, text: str) -> None:
        self.seen.append(text)


@pytest.mark.parametrize(
    ("exit_codes", "pause", "limits", "result", "waits"),
    [
        ([0], 2.0, RetryLimits(retries=5, max_seconds=60), (0, 1), 0),
        ([75, 0], 2.0, RetryLimits(retries=5, max_seconds=60), (0, 2), 1),
        ([75, 75, 75, 0], 2.0, RetryLimits(retries=2, max_seconds=60), (75, 3), 2),
        ([75, 0], 2.0, RetryLimits(retries=0, max_seconds=60), (75, 1), 0),
        ([1, 0], None, RetryLimits(retries=5, max_seconds=60), (1, 1), 0),
        # The next attempt would begin after the limit.
        ([75, 0], 2.0, RetryLimits(retries=5, max_seconds=1), (75, 1), 0),
    ],
)
def test_a_program_is_run_again_until_it_succeeds_or_a_limit_is_reached(
    monkeypatch: pytest.MonkeyPatch,
    exit_codes: list[int],
    pause: float | None,
    limits: RetryLimits,
    result: tuple[int, int],
    waits: int,
) -> None:
    monkeypatch.setattr(module, "pause_before_retry", lambda *_facts: pause)
    attempts: Iterator[int] = iter(exit_codes)
    context: Any = FakeContext()
    scratch: Any = SimpleNamespace(stdout=None)

    ended = module._run_with_retries(context, lambda: next(attempts), limits, "git", scratch)

    assert ended == result
    assert context.seen == ["git: its lock is held; trying again in 2.0 s", 2.0] * waits


@pytest.mark.parametrize("passes_stdin", [True, False])
def test_the_files_of_a_run_are_in_a_directory_that_is_removed_with_them(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    passes_stdin: bool,
) -> None:
    monkeypatch.setattr(given_stdin, "stdin_blocks", lambda _signals: [b"some ", b"input"])
    session = tmp_path / "session"
    session.mkdir(mode=0o700)
    context: Any = SimpleNamespace(session_directory=session, request_id="r1", signals=None)

    with module._scratch_files(context, passes_stdin=passes_stdin) as scratch:
        scratch.stdout.touch()
        directory = session / "r1"
        assert scratch == module._ScratchFiles(
            stdin=directory / "stdin" if passes_stdin else None,
            stdout=directory / "stdout",
            stderr=directory / "stderr",
        )
        content = scratch.stdin.read_bytes() if scratch.stdin is not None else None

    assert content == (b"some input" if passes_stdin else None)
    assert list(session.iterdir()) == []


@pytest.mark.parametrize(
    ("stderr", "written_stderr"),
    # Our own response follows on stderr, and begins a line.
    [(None, b""), (b"", b""), (b"error", b"error\n"), (b"error\n", b"error\n")],
)
@pytest.mark.parametrize(
    ("failures", "is_written"), [((0, 0), True), ((1, 0), False), ((0, 1), False)]
)
def test_the_output_of_the_last_attempt_is_passed_on_to_where_the_caller_expects_it(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    stderr: bytes | None,
    written_stderr: bytes,
    failures: tuple[int, int],
    is_written: bool,
) -> None:
    written: list[tuple[int, bytes]] = []
    outcomes = iter(failures)

    def write_response(descriptor: int, content: bytes, _code: int, _signals: object) -> int:
        written.append((descriptor, content))
        return next(outcomes)

    monkeypatch.setattr(module, "write_response", write_response)
    stdout = os.open(os.devnull, os.O_WRONLY)
    context: Any = SimpleNamespace(take_stdout=lambda: stdout, signals=None)
    scratch = module._ScratchFiles(None, tmp_path / "stdout", tmp_path / "stderr")
    scratch.stdout.write_bytes(b"output")
    if stderr is not None:
        scratch.stderr.write_bytes(stderr)

    has_written = module._pass_output_on(context, scratch)

    assert written == [(2, written_stderr), (stdout, b"output")]
    assert has_written is is_written
    assert not Path(f"/proc/self/fd/{stdout}").exists(), "stdout is still open"


class FakeChildren:
    """Children of which the only one exits with a given code, or cannot be started."""

    def __init__(self, exit_code: int, strays: list[int], error: OSError | None) -> None:
        self.created_with: list[object] = []
        self.started_with: dict[str, Any] = {}
        self.strays = strays
        self._exit_code = exit_code
        self._error = error

    def __call__(self, *arguments: object) -> "FakeChildren":
        self.created_with += arguments
        return self

    def __enter__(self) -> "FakeChildren":
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def start(self, name: str, argv: list[str], **options: Any) -> None:
        if self._error is not None:
            raise self._error
        stdin = os.readlink(f"/proc/self/fd/{options.pop('stdin')}")
        stdout = os.readlink(f"/proc/self/fd/{options.pop('stdout')}")
        log = options.pop("make_log_path")()
        self.started_with = {
            "name": name,
            "argv": argv,
            "files": (stdin, stdout, str(log)),
            **options,
        }

    def next_exit(self) -> Any:
        return SimpleNamespace(exit_code=self._exit_code)


def run_once(
    monkeypatch: pytest.MonkeyPatch,
    directory: Path,
    children: FakeChildren,
    *,
    has_stdin: bool = False,
) -> tuple[int, list[object]]:
    """Run `git gc` once. Return its exit code and the warnings."""
    monkeypatch.setattr(module, "Children", children)
    warnings: list[object] = []
    context: Any = SimpleNamespace(
        signals="the signals",
        cwd=Path("/work"),
        session_id="s1",
        warn=lambda *warning: warnings.append(warning),
    )
    hold: Any = SimpleNamespace(descriptors=[7])
    stdin = directory / "stdin" if has_stdin else None
    if stdin is not None:
        stdin.touch()
    scratch = module._ScratchFiles(stdin, directory / "stdout", directory / "stderr")
    scratch.stderr.write_text("of the previous attempt")
    exit_code = module._run_once(context, ["/bin/git", "gc"], hold, Path("/lock"), scratch)
    return exit_code, warnings


@pytest.mark.parametrize("has_stdin", [True, False])
def test_a_program_runs_with_the_lock_the_session_and_files_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    has_stdin: bool,
) -> None:
    children = FakeChildren(0, [], None)
    stdin = str(tmp_path / "stdin") if has_stdin else "/dev/null"

    assert run_once(monkeypatch, tmp_path, children, has_stdin=has_stdin) == (0, [])

    assert children.created_with == ["the signals", [7], [Path("/lock")]]
    assert children.started_with == {
        "name": "/bin/git",
        "argv": ["/bin/git", "gc"],
        "files": (stdin, str(tmp_path / "stdout"), str(tmp_path / "stderr")),
        "cwd": Path("/work"),
        "env": {**os.environ, "TOOL_SESSION_ID": "s1"},
    }
    assert not (tmp_path / "stderr").exists()


@pytest.mark.parametrize(("exit_code", "reported"), [(0, 0), (3, 3), (-9, 137)])
def test_a_program_that_a_signal_ends_is_reported_as_a_shell_does_it(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    exit_code: int,
    reported: int,
) -> None:
    children = FakeChildren(exit_code, [42], None)

    warning = ("STRAY_ENDED", "The program had left process 42 running. It was killed.")
    assert run_once(monkeypatch, tmp_path, children) == (reported, [warning])


@pytest.mark.parametrize(
    ("number", "reason"),
    [(errno.ENOENT, "its interpreter does not exist"), (errno.EACCES, "permission denied")],
)
def test_a_program_that_the_system_refuses_to_run_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    number: int,
    reason: str,
) -> None:
    children = FakeChildren(0, [], OSError(number, os.strerror(number)))

    failure = failure_of(lambda: run_once(monkeypatch, tmp_path, children))

    assert isinstance(failure, ProgramNotRunnable), repr(failure)
    assert failure.message == f"Cannot run /bin/git: {reason}."
