"""Which targets are stale, and why: decided by content, never by time alone."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.sample.content import look_at
from sampletool.sample.job import Job
from sampletool.sample.output_store import OutputStore

_FORMAT = 1


class Planned(NamedTuple):
    """One target as it has to be. `reason` is None when it is up to date."""

    job: Job
    entry: dict[str, Any]
    reason: str | None


def plan(root: Path, jobs: list[Job], store: OutputStore) -> dict[str, Planned]:
    """Plans jobs that come in the order of their needs. All that hinders is told at once, before anything runs."""
    planned: dict[str, Planned] = {}
    mistakes: list[Mistake] = []
    for job in jobs:
        before = store.entries.get(job.name)
        known = store.trusted(before)["inputs"]
        try:
            store.must_be_free(job.name)
            inputs = {path: look_at(root / path, known.get(path), store.check) for path in job.find_inputs(root)}
            if written := [path for path in inputs if f"{path}/".startswith(tuple(f"{out}/" for out in job.outputs))]:
                raise ValueError(f"{written[0]!r} is an input and an output")
        except (ValueError, OSError) as error:
            mistakes.append(Mistake(f"target.{job.name}", "INVALID_VALUE", f"{job.name}: {error}"))
            continue
        as_built = (need for need in job.needs if need in planned and planned[need].reason is None)
        needs = dict.fromkeys(job.needs, "to be built") | {need: store.content_of(need) for need in as_built}
        entry = {"run": [*job.run], "env": job.env, "wanted": [*job.outputs], "inputs": inputs, "needs": needs}
        reason = why_stale(job.name, entry, store)
        planned[job.name] = Planned(job, entry, reason)
        if reason is None and store.entries[job.name]["inputs"] != inputs:
            store.record(job.name, {**store.entries[job.name], "inputs": inputs})
    if mistakes:
        raise InvalidValues(*mistakes, suggestion="Correct it; nothing was run.")
    return planned


def why_stale(name: str, entry: dict[str, Any], store: OutputStore) -> str | None:
    """What is not as it was when the target was built."""
    before = store.entries.get(name)
    if before is None:
        return "never built"
    for member, said in (("run", "its command changed"), ("env", "its env changed"), ("wanted", "its outputs changed")):
        if before[member] != entry[member]:
            return said
    for path in sorted(before["inputs"].keys() | entry["inputs"].keys()):
        old, new = before["inputs"].get(path), entry["inputs"].get(path)
        if old is None or new is None:
            return f"the input {path} {'is new' if old is None else 'is gone'}"
        if old[0] != new[0]:
            return f"the input {path} changed"
    for need in sorted(before["needs"].keys() | entry["needs"].keys()):
        if before["needs"].get(need) != entry["needs"].get(need):
            return f"it needs {need}, which is not as it was"
    return store.damage(name)


def fingerprint(name: str, entry: dict[str, Any]) -> str:
    told = {**entry, "inputs": {path: look[0] for path, look in entry["inputs"].items()}, "name": name}
    return hashlib.sha256(json.dumps([_FORMAT, told], sort_keys=True).encode()).hexdigest()[:12]
