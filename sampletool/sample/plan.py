"""Which targets are stale, and why: content decides, never time alone."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.sample.content import look_at
from sampletool.sample.publish import Outputs
from sampletool.sample.workspace import Job

_FORMAT = 1


class Planned(NamedTuple):
    """One target as it has to be. `reason` is None when it is up to date."""

    job: Job
    entry: dict[str, Any]
    reason: str | None


def plan(root: Path, jobs: list[Job], outputs: Outputs) -> dict[str, Planned]:
    """Jobs come in the order of their needs. All that hinders is reported at once, before anything runs."""
    planned: dict[str, Planned] = {}
    mistakes: list[Mistake] = []
    for job in jobs:
        before = outputs.entries.get(job.name)
        known = outputs.trusted(before)["inputs"]
        try:
            outputs.must_be_free(job.name)
            inputs = {path: look_at(root / path, known.get(path), outputs.check) for path in job.find_inputs(root)}
            if written := [path for path in inputs if f"{path}/".startswith(tuple(f"{out}/" for out in job.outputs))]:
                raise ValueError(f"{written[0]!r} is an input and an output")
        except (ValueError, OSError) as error:
            mistakes.append(Mistake(f"target.{job.name}", "INVALID_VALUE", f"{job.name}: {error}"))
            continue
        as_built = (need for need in job.needs if need in planned and planned[need].reason is None)
        needs = dict.fromkeys(job.needs, "to be built") | {need: outputs.content_of(need) for need in as_built}
        entry = {"run": [*job.run], "env": job.env, "wanted": [*job.outputs], "inputs": inputs, "needs": needs}
        reason = why_stale(job.name, entry, outputs)
        planned[job.name] = Planned(job, entry, reason)
        if reason is None and before is not None and before["inputs"] != inputs:
            outputs.record(job.name, {**outputs.entries[job.name], "inputs": inputs})
    if mistakes:
        raise InvalidValues(*mistakes, suggestion="Correct it; nothing was run.")
    return planned


def why_stale(name: str, entry: dict[str, Any], outputs: Outputs) -> str | None:
    """What is not as it was when the target was built."""
    before = outputs.entries.get(name)
    if before is None:
        return "it was not built before"
    for member, change in (
        ("run", "its command changed"),
        ("env", "its env changed"),
        ("wanted", "its outputs changed"),
    ):
        if before[member] != entry[member]:
            return change
    for path in sorted(before["inputs"].keys() | entry["inputs"].keys()):
        old, new = before["inputs"].get(path), entry["inputs"].get(path)
        if old is None or new is None:
            return f"the input {path} {'is new' if old is None else 'is gone'}"
        if old[0] != new[0]:
            return f"the input {path} changed"
    for need in sorted(before["needs"].keys() | entry["needs"].keys()):
        if before["needs"].get(need) != entry["needs"].get(need):
            return f"it needs {need}, which is not as it was"
    return outputs.damage(name)


def fingerprint(name: str, entry: dict[str, Any]) -> str:
    contents = {path: look[0] for path, look in entry["inputs"].items()}
    return hashlib.sha256(
        json.dumps([_FORMAT, {**entry, "inputs": contents, "name": name}], sort_keys=True).encode()
    ).hexdigest()[:12]
