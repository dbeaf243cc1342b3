"""What the in-process store holds at one moment. Values are kept as JSON text: nobody shares a mutable object."""

from dataclasses import astuple, dataclass, field, replace
from typing import Any

from sampletool.state.promises import TaskState
from sampletool.state.verbs import Write


@dataclass(frozen=True)
class HeldTask(TaskState):
    """Its status is the one that was written; time may have made another of it."""

    max_attempts: int = 0

    @property
    def is_last(self) -> bool:
        return 0 < self.max_attempts <= self.attempts

    def status_at(self, now: int) -> str:
        if self.status != "claimed" or self.due_at is None or self.due_at > now:
            return self.status
        return "failed" if self.is_last else "expired"

    def is_claimable(self, now: int) -> bool:
        return self.status_at(now) in ("free", "expired") and (self.due_at or 0) <= now

    def row(self, now: int) -> tuple[Any, ...]:
        """What a TaskState has."""
        return astuple(replace(self, status=self.status_at(now)))[:-1]


@dataclass
class Tables:
    counters: dict[str, int] = field(default_factory=dict)
    values: dict[str, tuple[str, int, int | None]] = field(default_factory=dict)
    """Text, version, end."""
    floor: int = 0
    """The highest version of any value that is gone."""
    tasks: dict[str, HeldTask] = field(default_factory=dict)
    once: dict[str, tuple[str, Any, int | None]] = field(default_factory=dict)
    """What was said, what was answered, and until when that counts."""

    def copy(self) -> "Tables":
        return Tables(dict(self.counters), dict(self.values), self.floor, dict(self.tasks), dict(self.once))

    def forget(self, key: str) -> None:
        self.floor = max(self.floor, self.values.pop(key)[1])

    def remember(self, write: Write, answer: Any, now: int) -> None:
        for old in [key for key, (_, _, ends) in self.once.items() if ends is not None and ends <= now]:
            del self.once[old]
        life = write.key_life_ms
        self.once[str(write.key)] = (write.said, answer, None if life is None else now + life)
