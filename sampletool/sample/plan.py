"""Decide which targets are stale, and say why. The content of files decides, not their times."""

from dataclasses import dataclass, replace

from .job import Job
from .journal import BuildRecord
from .publish import Outputs
from .workspace import Declarations, Problem, choose, invalid_workspace


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
    # The digests of all inputs. An input of many targets is read only once.
    digests: dict[str, str] = {}
    chosen = choose("target", names, declarations.targets)
    for job in declarations.with_needs(chosen):
        try:
            planned[job.name] = _plan_target(job, planned, digests, outputs)
        except (ValueError, OSError) as error:
            problems.append(Problem(f"target.{job.name}", str(error)))
    if problems:
        raise invalid_workspace(declarations.toml, problems)
    return planned


def _plan_target(
    job: Job,
    planned: dict[str, PlannedJob],
    digests: dict[str, str],
    outputs: Outputs,
) -> PlannedJob:
    """Return the plan for a target, and add the digests of its inputs to `digests`.

    `planned` has the targets that it needs. Raise ValueError or OSError if it cannot be built.
    """
    inputs = job.find_inputs(outputs.workspace)
    _check_that_no_input_is_an_output(inputs, job.outputs)
    for path in inputs - digests.keys():
        digests[path] = outputs.digest(outputs.workspace / path)
    needs = {}
    for need in job.needs:
        # A need that has a problem is not in `planned`.
        if need in planned and not planned[need].must_run:
            needs[need] = outputs.content_of(need)
        else:
            needs[need] = "to be built"
    record = BuildRecord(
        run=list(job.run),
        wanted=list(job.outputs),
        inputs={path: digests[path] for path in inputs},
        needs=needs,
        env=dict(job.env),
    )
    reason = why_stale(job.name, record, outputs)
    if reason is not None:
        outputs.must_be_free(job.name)
    return PlannedJob(job, record, must_run=reason is not None, reason=reason)


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
    needs = {need: outputs.content_of(need) for need in planned.job.needs}
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
