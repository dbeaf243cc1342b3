"""Which targets are stale, and why: content decides, never time alone."""

from typing import NamedTuple

from .publish import Built, Outputs, digest
from .workspace import Job, Jobs, choose


class Planned(NamedTuple):
    """One target as it has to be. `reason` is None when it is up to date."""

    job: Job
    built: Built
    reason: str | None


def plan(declared: Jobs, names: list[str], outputs: Outputs) -> dict[str, Planned]:
    """These targets and what they need, in the order of their needs. All that hinders is reported at once."""
    planned: dict[str, Planned] = {}
    problems: list[tuple[str, str]] = []
    digests: dict[str, str] = {}
    for job in declared.with_needs(choose("target", names, declared.targets)):
        try:
            outputs.must_be_free(job.name)
            inputs = job.find_inputs(outputs.workspace)
            for path in inputs - digests.keys():  # an input of many targets is read once
                digests[path] = digest(outputs.workspace / path, outputs.check)
            if written := [path for path in inputs if f"{path}/".startswith(tuple(f"{out}/" for out in job.outputs))]:
                raise ValueError(f"{written[0]!r} is an input and an output")
        except (ValueError, OSError) as error:
            problems.append((f"target.{job.name}", str(error)))
            continue
        as_built = (need for need in job.needs if need in planned and planned[need].reason is None)
        needs = dict.fromkeys(job.needs, "to be built") | {need: outputs.content_of(need) for need in as_built}
        built = Built([*job.run], [*job.outputs], {path: digests[path] for path in inputs}, needs)
        planned[job.name] = Planned(job, built, why_stale(job.name, built, outputs))
    declared.must_have_no(problems)
    return planned


def look_again(target: Planned, outputs: Outputs) -> Planned:
    """The target, now that what it needs is built: no longer stale if that came out as it was."""
    if not target.built.needs:
        return target
    built = target.built._replace(needs={need: outputs.content_of(need) for need in target.job.needs})
    return Planned(target.job, built, why_stale(target.job.name, built, outputs))


def why_stale(target: str, now: Built, outputs: Outputs) -> str | None:
    """What is not as it was when the target was built."""
    before = outputs.built.get(target)
    if before is None:
        return "it was not built before"
    for member, old, new in (("command", before.run, now.run), ("outputs", before.wanted, now.wanted)):
        if old != new:
            return f"its {member} changed"
    for what, was, is_now in (("the input", before.inputs, now.inputs), ("what it needs of", before.needs, now.needs)):
        for path in sorted(was.keys() | is_now.keys()):
            if was.get(path) != is_now.get(path):
                how = "is new" if path not in was else "changed" if path in is_now else "is gone"
                return f"{what} {path} {how}"
    return outputs.damage(target)
