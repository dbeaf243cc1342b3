"""Decide which targets are stale, and say why. The content of files decides, not their times."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from .job import Job
from .journal import BuildRecord
from .publish import Outputs
from .workspace import Declarations, Problem, choose, invalid_workspace

_TO_BE_BUILT = "to be built"
"""What a record has in place of the digest of a needed target that must be built first.

It differs from every digest. So the target that needs it is stale, at least until the needed target
was built and `plan_again` knows its digest.
"""


@dataclass(frozen=True)
class PlannedJob:
    """A job, and whether its command has to run."""

    job: Job
    record: BuildRecord
    """What the job is going to be built from."""
    must_run: bool
    reason: str | None = None
    """Why a target has to be built."""


def plan(
    declarations: Declarations,
    names: list[str],
    outputs: Outputs,
) -> dict[str, PlannedJob]:
    """Return these targets and the targets that they need, each after its own needs.

    Raise InvalidWorkspace with everything that keeps them from being built.
    """
    planned: dict[str, PlannedJob] = {}
    problems: list[Problem] = []

    @cache
    def digest_of_input(path: str) -> str:
        """Return the digest of a file. An input of many targets is read only once."""
        return outputs.digest(outputs.workspace / path)

    chosen = choose("target", names, declarations.targets)
    for job in declarations.with_needs(chosen):
        try:
            planned[job.name] = _plan_target(job, planned, digest_of_input, outputs)
        except (ValueError, OSError) as error:
            problems.append(Problem(f"target.{job.name}", str(error)))
    if problems:
        raise invalid_workspace(declarations.toml, problems)
    return planned


def _plan_target(
    job: Job,
    planned: dict[str, PlannedJob],
    digest_of_input: Callable[[str], str],
    outputs: Outputs,
) -> PlannedJob:
    """Return the plan for a target. `planned` has the plans for the targets that it needs.

    Raise ValueError or OSError if the target cannot be built: its inputs are wrong, or something
    else is in the place of the link to its outputs.
    """
    inputs = job.find_inputs(outputs.workspace)
    _check_that_no_input_is_an_output(inputs, job.outputs)
    digests_of_needs = {}
    for name in job.needs:
        digests_of_needs[name] = _digest_of_need(planned.get(name), outputs)
    record = BuildRecord(
        run=list(job.run),
        wanted=list(job.outputs),
        inputs={path: digest_of_input(path) for path in inputs},
        needs=digests_of_needs,
        env=dict(job.env),
    )
    reason = why_stale(job.name, record, outputs)
    if reason is not None:
        # The new outputs get a link. Find out before the command runs whether its place is free.
        outputs.check_link_place(job.name)
    return PlannedJob(job, record, must_run=reason is not None, reason=reason)


def _digest_of_need(need: PlannedJob | None, outputs: Outputs) -> str:
    """Return the digest of the outputs of a needed target, or _TO_BE_BUILT.

    Without a plan, the needed target has a problem, so `plan` will raise an error.
    """
    if need is None or need.must_run:
        return _TO_BE_BUILT
    return outputs.digest_of_outputs(need.job.name)


def _check_that_no_input_is_an_output(inputs: set[str], outputs: tuple[str, ...]) -> None:
    """Raise ValueError if a file is both. Then each build would make its own target stale."""
    for path in sorted(inputs):
        for output in outputs:
            if f"{path}/".startswith(f"{output}/"):
                raise ValueError(f"{path!r} is an input and an output")


def plan_again(planned: PlannedJob, outputs: Outputs) -> PlannedJob:
    """Return the plan for a target after its needs were built.

    If their outputs are the same as before, the target is up to date after all.
    """
    if not planned.record.needs:
        return planned
    needs = {need: outputs.digest_of_outputs(need) for need in planned.job.needs}
    record = replace(planned.record, needs=needs)
    reason = why_stale(planned.job.name, record, outputs)
    return PlannedJob(planned.job, record, must_run=reason is not None, reason=reason)


def why_stale(target: str, now: BuildRecord, outputs: Outputs) -> str | None:
    """Return what has changed since the target was built. None if nothing has."""
    before = outputs.records.get(target)
    if before is None:
        return "it was not built before"
    if before.run != now.run:
        return "its command changed"
    if before.wanted != now.wanted:
        return "its outputs changed"
    if before.env != now.env:
        return "its environment changed"
    input_change = _first_difference(before.inputs, now.inputs)
    if input_change is not None:
        return f"the input {input_change}"
    need_change = _first_difference(before.needs, now.needs)
    if need_change is not None:
        return f"the needed target {need_change}"
    return outputs.damage(target)


def _first_difference(before: dict[str, str], now: dict[str, str]) -> str | None:
    """Return the first name with another value, and how it differs. None if there is none."""
    if before == now:
        return None
    for name in sorted(before.keys() | now.keys()):
        if name not in before:
            return f"{name} is new"
        if name not in now:
            return f"{name} is gone"
        if before[name] != now[name]:
            return f"{name} changed"
    return None
