"""sampletool/sample/run.py: which jobs are started when, and what becomes of each."""

import errno
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.context import Context
from sampletool.kit.safety.children import ChildExit
from sampletool.kit.safety.signals import Signals
from sampletool.sample.build_lock import Workplace
from sampletool.sample.job import Job, Kind
from sampletool.sample.job_result import JobResult
from sampletool.sample.journal import BuildRecord
from sampletool.sample.plan import PlannedJob
from sampletool.sample.publish import Outputs
from sampletool.sample.run import JobRun, result_of


class FakeChildren:
    """Children that exit in the order in which they were started. They write the file `x`."""

    def __init__(
        self,
        exit_codes: Mapping[str, int] | None = None,
        start_errors: Mapping[str, list[int]] | None = None,
    ) -> None:
        self.started: list[str] = []
        self.most_at_once = 0
        self._exit_codes = exit_codes or {}
        self._start_errors = start_errors or {}
        self._running: list[str] = []

    def start(self, name: str, _command: object, *, cwd: Path, **_options: object) -> None:
        errors = self._start_errors.get(name)
        if errors:
            number = errors.pop(0)
            raise OSError(number, os.strerror(number))
        self.started.append(name)
        self._running.append(name)
        self.most_at_once = max(self.most_at_once, len(self._running))
        (cwd / "x").write_text(name)

    def next_exit(self, _seconds: float) -> ChildExit:
        assert self._running, "it waits, but has started nothing"
        name = self._running.pop(0)
        return ChildExit(
            name=name,
            exit_code=self._exit_codes.get(name, 0),
            output_tail="",
            log_path=None,
            survivors=(),
        )


def planned(
    name: str,
    needs: tuple[str, ...] = (),
    *,
    must_run: bool = True,
    inputs: tuple[str, ...] = (),
) -> PlannedJob:
    """Return the plan for a target that is built from these inputs and needs."""
    record = BuildRecord(
        run=["true"],
        wanted=["x"],
        inputs=dict.fromkeys(inputs, "digest"),
        needs=dict.fromkeys(needs, "to be built"),
    )
    job = Job(name=name, run=("true",), inputs=inputs, outputs=("x",), needs=needs)
    reason = "it was not built before" if must_run else None
    return PlannedJob(job, record, must_run=must_run, reason=reason)


@pytest.fixture
def new_run(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., JobRun]:
    """Return a function that creates a run in a new workspace."""
    (tmp_path / "tool.toml").touch()
    (tmp_path / ".tool").mkdir(mode=0o700)
    monkeypatch.chdir(tmp_path)

    def create(
        children: FakeChildren,
        jobs: list[PlannedJob],
        kind: Kind = "target",
        max_running: int = 8,
    ) -> JobRun:
        fake: Any = children
        workplace = Workplace(
            context=Context(Signals()),
            scratch=tmp_path / ".tool",
            children=fake,
            max_running=max_running,
        )
        return JobRun(workplace, kind, {job.job.name: job for job in jobs}, Outputs(tmp_path))

    return create


def statuses(run: JobRun) -> dict[str, str]:
    return {result.name: result.status for result in run.results}


def test_each_target_runs_after_those_that_it_needs(new_run: Callable[..., JobRun]) -> None:
    children = FakeChildren()
    run = new_run(children, [planned("c", ("b",)), planned("b", ("a",)), planned("a")])

    run.run()

    assert children.started == ["a", "b", "c"]
    assert statuses(run) == {"c": "built", "b": "built", "a": "built"}


def test_a_result_has_the_reason_and_the_directory_of_the_outputs(
    new_run: Callable[..., JobRun],
    tmp_path: Path,
) -> None:
    run = new_run(FakeChildren(), [planned("a")])

    run.run()

    assert run.results == [
        JobResult(
            name="a",
            status="built",
            reason="it was not built before",
            outputs=str(Path(tmp_path / "out" / "a").resolve()),
        )
    ]


def test_no_more_jobs_run_at_once_than_are_allowed(new_run: Callable[..., JobRun]) -> None:
    for max_running, most_at_once in ((1, 1), (2, 2), (8, 3)):
        children = FakeChildren()
        names = [f"{name}{max_running}" for name in "abc"]
        run = new_run(children, [planned(name) for name in names], max_running=max_running)

        run.run()

        assert (children.started, children.most_at_once) == (names, most_at_once)


def test_after_a_failure_only_the_targets_that_need_it_are_skipped(
    new_run: Callable[..., JobRun],
) -> None:
    children = FakeChildren(exit_codes={"a": 3})
    jobs = [planned("a"), planned("b", ("a",)), planned("c", ("b",)), planned("d")]
    run = new_run(children, jobs)

    run.run()

    skipped = "a target that it needs failed"
    reason = "it was not built before"
    assert children.started == ["a", "d"]
    assert run.results[:3] == [
        JobResult("a", "failed", reason=reason, note="exit code 3", exit_status=3),
        JobResult("b", "skipped", reason=reason, note=skipped),
        JobResult("c", "skipped", reason=reason, note=skipped),
    ]
    assert statuses(run)["d"] == "built"


def test_a_target_that_is_up_to_date_does_not_run(new_run: Callable[..., JobRun]) -> None:
    children = FakeChildren()
    run = new_run(children, [planned("a", must_run=False), planned("b")])

    run.run()

    assert children.started == ["b"]
    assert run.results[0] == JobResult("a", "up_to_date")


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM])
def test_a_job_for_which_there_is_no_room_is_started_when_another_has_exited(
    new_run: Callable[..., JobRun],
    number: int,
) -> None:
    children = FakeChildren(start_errors={"b": [number]})
    run = new_run(children, [planned("a"), planned("b"), planned("c")])

    run.run()

    assert statuses(run) == {"a": "built", "b": "built", "c": "built"}
    assert children.started == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("name", "number", "reason"),
    [
        # If no other job runs, waiting for one to exit would never end.
        ("a", errno.EMFILE, "too many open files"),
        ("b", errno.ENOENT, "no such file or directory"),
    ],
)
def test_a_job_that_cannot_be_started_has_failed_and_the_others_run(
    new_run: Callable[..., JobRun],
    name: str,
    number: int,
    reason: str,
) -> None:
    children = FakeChildren(start_errors={name: [number]})
    run = new_run(children, [planned("a"), planned("b")])

    run.run()

    notes = {result.name: result.note for result in run.results if result.status == "failed"}
    assert notes == {name: f"true: {reason}"}
    assert len(children.started) == 1


def test_a_target_without_its_output_has_failed(
    new_run: Callable[..., JobRun],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Path, "write_text", lambda _path, _text: None)
    run = new_run(FakeChildren(), [planned("a")])

    run.run()

    note = "its outputs cannot be kept: it did not write its output 'x'"
    assert run.results == [
        JobResult("a", "failed", reason="it was not built before", note=note),
    ]


def test_a_check_passes_and_publishes_nothing(
    new_run: Callable[..., JobRun],
    tmp_path: Path,
) -> None:
    run = new_run(FakeChildren(), [planned("a")], kind="check")

    run.run()

    assert statuses(run) == {"a": "passed"}
    assert not (tmp_path / "out").exists()


def test_a_target_has_the_inputs_of_its_plan_and_a_check_those_that_exist_now(
    new_run: Callable[..., JobRun],
    tmp_path: Path,
) -> None:
    """What is recorded about a target is what its plan has found."""
    (tmp_path / "in").touch()
    target = planned("a", inputs=("in", "gone"))
    check = replace(planned("a"), job=Job(name="a", run=("true",), inputs=("i*",)))

    inputs_of_target = new_run(FakeChildren(), [target])._inputs_of(target)
    inputs_of_check = new_run(FakeChildren(), [check], kind="check")._inputs_of(check)

    assert (set(inputs_of_target), set(inputs_of_check)) == ({"in", "gone"}, {"in"})


def test_an_interrupted_run_says_what_was_stopped_and_what_was_never_started(
    new_run: Callable[..., JobRun],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    children = FakeChildren()
    run = new_run(children, [planned("a"), planned("b", ("a",))])

    def interrupt(_seconds: float) -> ChildExit:
        raise KeyboardInterrupt

    monkeypatch.setattr(children, "next_exit", interrupt)

    with pytest.raises(KeyboardInterrupt):
        run.run()

    assert statuses(run) == {"a": "stopped", "b": "not_started"}


def test_a_job_that_left_a_survivor_has_failed() -> None:
    child = ChildExit(name="a", exit_code=0, output_tail="", log_path=None, survivors=())

    assert result_of(child) == JobResult("a", "passed")
    assert result_of(replace(child, survivors=(123, 45))) == JobResult(
        name="a",
        status="failed",
        note="still running: 123, 45",
    )


def test_a_result_says_what_the_child_has_left() -> None:
    child = ChildExit(
        name="a",
        exit_code=3,
        output_tail="why\n",
        log_path=Path("/log"),
        survivors=(),
        dropped_bytes=5,
        output_bytes=9,
    )

    assert result_of(child) == JobResult(
        name="a",
        status="failed",
        note="exit code 3",
        exit_status=3,
        tail="why\n",
        log="/log",
        output_bytes=9,
        log_missing_bytes=5,
    )
