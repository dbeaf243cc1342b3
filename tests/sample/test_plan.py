"""sampletool/sample/plan.py: which targets are stale, and why."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from sampletool.kit.context import Context
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.failing import failure_of
from sampletool.sample.errors import InvalidWorkspace
from sampletool.sample.journal import BuildRecord
from sampletool.sample.plan import PlannedJob, plan, plan_again, why_stale
from sampletool.sample.publish import Outputs
from sampletool.sample.workspace import read_workspace

_CHAIN = """
[target.second]
run = ["true"]
needs = ["first"]
outputs = ["y"]
[target.first]
run = ["true"]
inputs = ["in"]
outputs = ["x"]
[target.other]
run = ["true"]
outputs = ["z"]
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a workspace in which `second` needs `first`, and `first` reads a file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tool.toml").write_text(_CHAIN)
    (tmp_path / "in").write_text("input")
    (tmp_path / ".tool").mkdir(mode=0o700)
    return tmp_path


def make_plan(outputs: Outputs, *names: str) -> dict[str, PlannedJob]:
    return plan(read_workspace(Context(Signals())), list(names), outputs)


def build(outputs: Outputs, planned: PlannedJob, content: str) -> None:
    """Publish outputs of a target, as if its command had written this content to each file."""
    directory = outputs.workspace / f"building-{planned.job.name}"
    directory.mkdir()
    for name in planned.job.outputs:
        (directory / name).write_text(content)
    outputs.publish(planned.job.name, planned.record, directory)


def test_all_targets_are_planned_in_the_order_of_their_needs(workspace: Path) -> None:
    planned = make_plan(Outputs(workspace))

    assert set(planned) == {"first", "second", "other"}
    assert list(planned).index("first") < list(planned).index("second")
    assert {job.reason for job in planned.values()} == {"it was not built before"}
    assert all(job.must_run for job in planned.values())
    records = {name: job.record for name, job in planned.items()}
    assert records == {
        "first": BuildRecord(
            run=["true"],
            wanted=["x"],
            inputs={"in": sha256(b"input").hexdigest()},
            needs={},
        ),
        "second": BuildRecord(
            run=["true"],
            wanted=["y"],
            inputs={},
            needs={"first": "to be built"},
        ),
        "other": BuildRecord(run=["true"], wanted=["z"], inputs={}, needs={}),
    }


def test_only_the_wanted_targets_and_their_needs_are_planned(workspace: Path) -> None:
    assert list(make_plan(Outputs(workspace), "second")) == ["first", "second"]


def test_a_target_that_was_built_from_the_same_is_up_to_date(workspace: Path) -> None:
    outputs = Outputs(workspace)
    build(outputs, make_plan(outputs, "first")["first"], "one")

    planned = make_plan(outputs, "first")["first"]

    assert (planned.must_run, planned.reason) == (False, None)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"run": ["false"]}, "its command changed"),
        ({"wanted": ["z"]}, "its outputs changed"),
        ({"env": {"LEVEL": "3"}}, "its environment changed"),
        ({"inputs": {}}, "the input in is gone"),
        ({"inputs": {"in": "another digest"}}, "the input in changed"),
        ({"inputs": {"a": "digest"}}, "the input a is new"),
        ({"needs": {"zero": "digest"}}, "the needed target zero is new"),
    ],
)
def test_each_difference_makes_a_target_stale(
    workspace: Path, change: dict[str, object], reason: str
) -> None:
    outputs = Outputs(workspace)
    build(outputs, make_plan(outputs, "first")["first"], "one")
    before: BuildRecord = outputs.records["first"]

    assert why_stale("first", before, outputs) is None
    changed = replace(before, **change)  # type: ignore[arg-type]
    assert why_stale("first", changed, outputs) == reason


@pytest.mark.parametrize(("content", "must_run"), [("one", False), ("two", True)])
def test_a_target_is_up_to_date_after_all_if_its_need_came_out_the_same(
    workspace: Path, content: str, must_run: bool
) -> None:
    outputs = Outputs(workspace)
    build(outputs, make_plan(outputs)["first"], "one")
    build(outputs, plan_again(make_plan(outputs)["second"], outputs), "y")
    (workspace / "in").write_text("changed")
    planned = make_plan(outputs, "second")
    assert planned["second"].reason == "the needed target first changed"

    build(outputs, planned["first"], content)

    again = plan_again(planned["second"], outputs)

    assert (again.job, again.must_run) == (planned["second"].job, must_run)
    assert again.reason == ("the needed target first changed" if must_run else None)


def test_a_target_without_needs_is_not_planned_again(workspace: Path) -> None:
    planned = make_plan(Outputs(workspace), "other")["other"]

    assert plan_again(planned, Outputs(workspace)) is planned


def test_everything_that_keeps_targets_from_being_built_is_reported(workspace: Path) -> None:
    (workspace / "in").unlink()
    (workspace / "out" / "other").mkdir(parents=True)

    caught = failure_of(lambda: make_plan(Outputs(workspace)))

    # `second` needs `first`, which has no plan.
    assert isinstance(caught, InvalidWorkspace), repr(caught)
    assert caught.context["problems"] == [
        "line 6, target.first: the input 'in' matches no file",
        f"line 10, target.other: {workspace}/out/other is in the way",
    ]


@pytest.mark.parametrize(("output", "is_refused"), [("in", True), ("in/x", False), ("i", False)])
def test_an_input_that_is_also_an_output_is_refused(
    workspace: Path, output: str, is_refused: bool
) -> None:
    text = f'[target.t]\nrun = ["true"]\ninputs = ["in"]\noutputs = ["{output}"]\n'
    (workspace / "tool.toml").write_text(text)

    if is_refused:
        with pytest.raises(InvalidWorkspace, match="problem"):
            make_plan(Outputs(workspace))
    else:
        assert list(make_plan(Outputs(workspace))) == ["t"]
