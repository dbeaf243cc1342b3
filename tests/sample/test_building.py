"""Jobs are built in the order of their needs, and only what is not as it has to be."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sampletool.kit.safety.children import Children
from sampletool.kit.safety.signals import Signals
from sampletool.sample.build_plan import plan
from sampletool.sample.building import Build, build_targets
from sampletool.sample.job import Done, Job
from sampletool.sample.output_store import OutputStore
from sampletool.sample.running import Floor

Builder = Callable[..., dict[str, Done]]


def job(name: str, script: str, *, inputs: str = "", needs: str = "") -> Job:
    """Its one output is x."""
    return Job(name, ("sh", "-c", script), tuple(inputs.split()), ("x",), tuple(needs.split()), {})


@pytest.fixture
def build(tmp_path: Path, signals: Signals) -> Builder:
    """Brings jobs up to date, as one call would that holds the lock; each call has a scratch directory of its own."""
    (tmp_path / ".tool").mkdir()
    calls = iter(range(100))

    def build_now(*jobs: Job) -> dict[str, Done]:
        scratch = tmp_path / ".tool" / f"scratch-{next(calls)}"
        scratch.mkdir()
        store, result = OutputStore(tmp_path), Build()
        floor = Floor(tmp_path, scratch, "session", lambda: scratch, store.version_of)
        with Children(signals) as children:
            build_targets(plan(tmp_path, [*jobs], store), store, floor, children, 2, result, lambda job, count: None)
        store.close()
        return {target.name: target for target in result.targets}

    return build_now


def statuses(done: dict[str, Done]) -> dict[str, str]:
    return {name: target.status for name, target in done.items()}


def test_what_is_needed_is_built_first_and_seen_by_what_needs_it(build: Builder, tmp_path: Path) -> None:
    done = build(job("a", "echo one > x"), job("b", "cat out/a/x out/a/x > x", needs="a"))

    assert statuses(done) == {"a": "built", "b": "built"}
    assert (tmp_path / "out" / "b" / "x").read_text() == "one\none\n"


def test_a_second_time_there_is_nothing_to_do(build: Builder) -> None:
    jobs = job("a", "echo one > x"), job("b", "cat out/a/x > x", needs="a")
    build(*jobs)

    done = build(*jobs)

    assert statuses(done) == {"a": "up_to_date", "b": "up_to_date"}


def test_what_changed_is_built_again_and_the_reason_is_told(build: Builder, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("one")
    copying, other = job("a", "cat in > x", inputs="in"), job("b", "echo two > x")
    build(copying, other)
    (tmp_path / "in").write_text("three")

    done = build(copying, other)

    assert statuses(done) == {"a": "built", "b": "up_to_date"}
    assert done["a"].reason == "the input in changed"
    assert (tmp_path / "out" / "a" / "x").read_text() == "three"


def test_what_comes_out_the_same_leaves_what_needs_it_up_to_date(build: Builder, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("one")
    jobs = job("a", "wc -l < in > x", inputs="in"), job("b", "cat out/a/x > x", needs="a")
    build(*jobs)
    (tmp_path / "in").write_text("two")

    assert statuses(build(*jobs)) == {"a": "built", "b": "up_to_date"}
    assert statuses(build(*jobs)) == {"a": "up_to_date", "b": "up_to_date"}


def test_what_needs_one_that_failed_is_skipped_and_the_last_good_output_stays(build: Builder, tmp_path: Path) -> None:
    needing, other = job("b", "cat out/a/x > x", needs="a"), job("c", "echo three > x")
    build(job("a", "echo one > x"), needing)

    done = build(job("a", "echo half > x; echo why; exit 3"), needing, other)

    assert statuses(done) == {"a": "failed", "b": "skipped", "c": "built"}
    assert (done["a"].exit_status, done["a"].tail) == (3, "why\n")
    assert (tmp_path / "out" / "a" / "x").read_text() == "one\n"


def test_a_failed_one_is_tried_again(build: Builder, tmp_path: Path) -> None:
    missing_once = job("a", "cat in > x", inputs="in*")
    (tmp_path / "in2").touch()
    assert statuses(build(missing_once)) == {"a": "failed"}
    (tmp_path / "in").write_text("one")

    assert statuses(build(missing_once)) == {"a": "built"}


def test_a_file_that_was_not_declared_is_missing(build: Builder, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("one")

    done = build(job("a", "cat secret > x"))

    assert done["a"].status == "failed"
    assert "secret" in (done["a"].tail or "")


def test_who_does_not_write_the_output_has_failed(build: Builder, tmp_path: Path) -> None:
    done = build(job("a", "true"))

    assert done["a"].status == "failed"
    assert "'x'" in (done["a"].note or "")
    assert not (tmp_path / "out" / "a").exists()
