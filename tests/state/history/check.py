"""Judge a history: check each value, each counter, and the tasks of each queue on their own.

    python -m tests.state.history.check DIRECTORY

reads the logs that `recording.py` has left in a directory, and exits with 1 if a promise is broken.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from .adapter import MAX_ATTEMPTS
from .linearizable import MOST_PLACES, Linearizable, NotLinearizable, Unknown, find_order
from .models import CounterModel, ValueModel
from .operation import Operation, read_history
from .tasks import check_tasks, count_claims
from .violation import Violation

_VALUE_VERBS = ("get", "set", "unset")
_COUNTER_VERBS = ("add", "count")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the checker found in a history."""

    violations: tuple[Violation, ...]
    unknown: tuple[str, ...]
    """The values and counters for which the search reached its bound."""
    operations: int
    maybe: int
    """How many calls have no response."""
    values: int
    counters: int
    tasks: int
    claims: int

    def __str__(self) -> str:
        """Return the figures in one line, and below it one paragraph for each violation."""
        summary = (
            f"{self.operations} calls ({self.maybe} without a response) on {self.values} values, "
            f"{self.counters} counters and {self.tasks} tasks ({self.claims} claims): "
            f"{len(self.violations)} violations, {len(self.unknown)} unknown"
        )
        return "\n\n".join([summary, *map(str, self.violations)])


def check(
    history: Sequence[Operation],
    max_attempts: int = MAX_ATTEMPTS,
    most_places: int = MOST_PLACES,
) -> Verdict:
    """Check every promise."""
    violations: list[Violation] = []
    unknown = []
    values = _by_target(history, _VALUE_VERBS)
    counters = _by_target(history, _COUNTER_VERBS)
    results: dict[str, Linearizable | NotLinearizable | Unknown] = {}
    for key, operations in values.items():
        results[key] = find_order(ValueModel(), operations, most_places)
    for name, operations in counters.items():
        merged, contradictions = merge_repetitions(operations)
        violations += contradictions
        results[name] = find_order(CounterModel(), merged, most_places)
    for name, result in results.items():
        if isinstance(result, NotLinearizable):
            explanation = f"{name} is not linearizable.\n{result.explanation}"
            violations.append(Violation("linearizable", explanation))
        elif isinstance(result, Unknown):
            unknown.append(name)
    violations += check_tasks(history, max_attempts)
    claims = count_claims(history)
    return Verdict(
        violations=tuple(violations),
        unknown=tuple(unknown),
        operations=len(history),
        maybe=sum(operation.may_have_happened for operation in history),
        values=len(values),
        counters=len(counters),
        tasks=len(claims),
        claims=claims.total(),
    )


def merge_repetitions(
    operations: Iterable[Operation],
) -> tuple[list[Operation], list[Violation]]:
    """Make one call of all calls that have the same idempotency key.

    They have one effect, together. It happened after the first of them was invoked, and before the
    first response. All of them must return the same result.
    """
    merged = []
    repetitions = defaultdict(list)
    for operation in operations:
        key = operation.arguments.get("key")
        if key is None:
            merged.append(operation)
        else:
            repetitions[key].append(operation)
    contradictions = []
    for key, repeated in repetitions.items():
        answered = [operation for operation in repeated if operation.succeeded]
        results = {str(operation.response) for operation in answered}
        if len(results) > 1:
            explanation = f"calls with the idempotency key {key!r} returned different results"
            contradictions.append(Violation("repetitions", explanation, tuple(answered)))
        first = min(repeated, key=lambda operation: operation.invoked_ns)
        if answered:
            first_answered = min(answered, key=lambda operation: operation.responded_ns or 0)
            first = replace(first_answered, invoked_ns=first.invoked_ns)
        merged.append(first)
    return merged, contradictions


def _by_target(history: Iterable[Operation], verbs: Sequence[str]) -> dict[str, list[Operation]]:
    """Return the calls with these verbs, by their key. Leave out reads that have no response."""
    by_target: dict[str, list[Operation]] = defaultdict(list)
    for operation in history:
        is_lost_read = operation.may_have_happened and operation.verb in ("get", "count")
        if operation.verb in verbs and not is_lost_read:
            by_target[operation.target].append(operation)
    return by_target


def main() -> int:
    """Read the command line, and print the verdict on a directory of logs."""
    parser = argparse.ArgumentParser(prog="python -m tests.state.history.check")
    parser.add_argument("directory", metavar="DIRECTORY", type=Path, help="the logs of one round")
    options = parser.parse_args()
    verdict = check(read_history(options.directory))
    print(verdict)
    return int(bool(verdict.violations))


if __name__ == "__main__":
    sys.exit(main())
