"""Which targets are stale, and why: decided by content, never by time alone."""

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sampletool.contract.errors import InvalidValues, Mistake
from sampletool.domain.workspace import Job
from sampletool.safety.content import Look, look_at
from sampletool.safety.output_store import OutputStore

_FORMAT = 1


@dataclass(frozen=True)
class Planned:
    """One target as it has to be. `reason` is None when it is up to date."""

    job: Job
    entry: dict[str, Any]
    reason: str | None


def plan(root: Path, jobs: list[Job], store: OutputStore) -> dict[str, Planned]:
    """Plans jobs that come in the order of their needs. All that hinders is told at once, before anything runs."""
    planned: dict[str, Planned] = {}
    mistakes: list[Mistake] = []
    for job in jobs:
        try:
            if (hindrance := store.in_the_way(job.name)) is not None:
                raise ValueError(f"{job.name}: {hindrance}")
            before = store.entries.get(job.name)
            known = store.trusted(before)["inputs"]
            inputs = {path: look_at(root / path, known.get(path)) for path in job.find_inputs(root)}
        except (ValueError, OSError) as error:
            mistakes.append(Mistake(f"target.{job.name}", "INVALID_VALUE", str(error)))
            continue
        needs = {
            need: store.content_of(need) if planned[need].reason is None else "to be built"
            for need in job.needs
            if need in planned
        }
        entry = {"run": [*job.run], "env": job.env, "wanted": [*job.outputs], "inputs": inputs, "needs": needs}
        reason = _difference(before, entry) or store.damage(job.name)
        planned[job.name] = Planned(job, entry, reason)
        if reason is None and store.entries[job.name]["inputs"] != inputs:
            store.record(job.name, {**store.entries[job.name], "inputs": inputs})
    if mistakes:
        raise InvalidValues(*mistakes, suggestion="Correct it; nothing was run.")
    return planned
    return planned


def forget_changed(inputs: dict[str, Look], root: Path) -> list[str]:
    """Inputs that were changed after they were looked at: nobody knows which content the command has read."""
    changed = []
    for path, look in inputs.items():
        try:
            found = os.stat(root / path)
            same = [found.st_size, found.st_ctime_ns, found.st_ino] == [look[1], look[3], look[4]]
        except OSError:
            same = False
        if not same:
            inputs[path] = ["changed while it was read", *look[1:]]
            changed.append(path)
    return changed


def fingerprint(name: str, entry: dict[str, Any]) -> str:
    told = {**entry, "inputs": {path: look[0] for path, look in entry["inputs"].items()}, "name": name}
    return hashlib.sha256(json.dumps([_FORMAT, told], sort_keys=True).encode()).hexdigest()[:12]


def _difference(before: dict[str, Any] | None, entry: dict[str, Any]) -> str | None:
    """What is not as it was when the target was built."""
    if before is None:
        return "never built"
    for member, said in (("run", "its command changed"), ("env", "its env changed"), ("wanted", "its outputs changed")):
        if before[member] != entry[member]:
            return said
    if before["inputs"] == entry["inputs"] and before["needs"] == entry["needs"]:
        return None
    for path in sorted(before["inputs"].keys() | entry["inputs"].keys()):
        old, new = before["inputs"].get(path), entry["inputs"].get(path)
        if old is None or new is None:
            return f"the input {path} {'is new' if old is None else 'is gone'}"
        if old[0] != new[0]:
            return f"the input {path} changed"
    for need in sorted(before["needs"].keys() | entry["needs"].keys()):
        if before["needs"].get(need) != entry["needs"].get(need):
            return f"it needs {need}, which is not as it was"
    return None
