"""A task of the in-process store, as it is at one moment."""

import json
from dataclasses import dataclass, replace

from sampletool.state.promises import Claimed, TaskState


@dataclass(frozen=True)
class HeldTask:
    id: str
    queue: str
    body: str
    position: int
    due_at: int | None
    status: str = "free"
    generation: int = 0
    attempts: int = 0
    max_attempts: int = 0
    claimed_by: str | None = None
    claimed_at: int | None = None

    @property
    def is_last(self) -> bool:
        return 0 < self.max_attempts <= self.attempts

    def status_at(self, now: int) -> str:
        if self.status != "claimed" or self.due_at is None or self.due_at > now:
            return self.status
        return "failed" if self.is_last else "expired"

    def claimed_by_another(self, worker: str, max_attempts: int, now: int, lease_ms: int) -> "HeldTask":
        counted = replace(self, generation=self.generation + 1, attempts=self.attempts + 1, max_attempts=max_attempts)
        return replace(counted, status="claimed", claimed_by=worker, claimed_at=now, due_at=now + lease_ms)

    def claimed(self) -> Claimed:
        return Claimed(self.id, self.generation, json.loads(self.body), self.attempts, self.due_at or 0)

    def shown(self, now: int) -> TaskState:
        who = (self.status_at(now), self.generation, self.attempts, self.claimed_by, self.claimed_at)
        return TaskState(self.id, self.queue, *who, self.due_at, self.position, json.loads(self.body))
