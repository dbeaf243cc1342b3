"""Decide which targets are stale, and say why. The content of files decides, not their times."""

from dataclasses import dataclass, replace

from .publish import Built, Outputs
from .workspace import Job, Jobs, choose


@dataclass(frozen=True)
class Planned:
    """A job, and what it is going to be built from."""

    job: Job
    built: Built
    reason: str | None
    """Why the job has to run. None if its outputs are up to date."""


def plan(declared: Jobs, names: list[str], outputs: Outputs) -> dict[str, Planned]:
    """Return these targets and the targets that they need, each after its own needs.

    Raise InvalidWorkspace with everything that keeps them from being built.
    """
    planned: dict[str, Planned] = {}
    problems: list[tuple[str, str]] = []
    # An input of many targets is read once.
    digests: dict[str, str] = {}
    for job in declared.with_needs(choose("target", names, declared.targets)):
        try:
            planned[job.name] = _plan_target(job, planned, digests, outputs)
        except (ValueError, OSError) as error:
            problems.append((f"target.{job.name}", str(error)))
    declared.must_have_no(problems)
    return planned


def _plan_target(
    job: Job,
    planned: dict[str, Planned],
    digests: dict[str, str],
    outputs: Outputs,
) -> Planned:
    """Return a target. Raise ValueError or OSError if it cannot be built."""
    outputs.must_be_free(job.name)
    inputs = job.find_inputs(outputs.workspace)
    _check_that_no_input_is_an_output(inputs, job.outputs)
    for path in inputs - digests.keys():
        digests[path] = outputs.digest(outputs.workspace / path)
    needs = {}
    for need in job.needs:
        is_up_to_date = need in planned and planned[need].reason is None
        needs[need] = outputs.content_of(need) if is_up_to_date else "to be built"
    built = Built(
        run=list(job.run),
        wanted=list(job.outputs),
        inputs={path: digests[path] for path in inputs},
        needs=needs,
        env=dict(job.env),
    )
    return Planned(job, built, why_stale(job.name, built, outputs))


def _check_that_no_input_is_an_output(inputs: set[str], outputs: tuple[str, ...]) -> None:
    for path in sorted(inputs):
        for output in outputs:
            if f"{path}/".startswith(f"{output}/"):
                raise ValueError(f"{path!r} is an input and an output")


def look_again(planned: Planned, outputs: Outputs) -> Planned:
    """Return the target after its needs were built. It is up to date if they came out as before."""
    if not planned.built.needs:
        return planned
    needs = {need: outputs.content_of(need) for need in planned.job.needs}
    built = replace(planned.built, needs=needs)
    return replace(planned, built=built, reason=why_stale(planned.job.name, built, outputs))


def why_stale(target: str, now: Built, outputs: Outputs) -> str | None:
    """Return what has changed since the target was built. None if nothing has."""
    before = outputs.built.get(target)
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
    for name in sorted(before.keys() | now.keys()):
        if name not in before:
            return f"{name} is new"
        if name not in now:
            return f"{name} is gone"
        if before[name] != now[name]:
            return f"{name} changed"
    return None
