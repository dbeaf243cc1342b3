"""What the tests noticed of the mutants that were tried: the counts, and the rate with its interval."""

import math
from collections import Counter
from collections.abc import Sequence

from .trial import Outcome, Result

NOT_COUNTED = (Outcome.IMPORT_ERROR, Outcome.SKIPPED, Outcome.NOT_TRIED)
"""An import error shows nothing about the tests, as every test fails then."""


def wilson(noticed: int, tried: int) -> tuple[float, float]:
    """Return the 95% interval of a share. It is right also for a few mutants, and near 0 and 1."""
    if tried == 0:
        return 0.0, 1.0
    z = 1.959964
    share = noticed / tried
    middle = share + z * z / (2 * tried)
    margin = z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried * tried))
    whole = 1 + z * z / tried
    return (middle - margin) / whole, (middle + margin) / whole


def line(result: Result) -> str:
    """Return the outcome of one mutant and its diff."""
    text = f"{result.outcome:17} {result.task.mutant.diff}"
    if result.outcome == Outcome.NOT_NOTICED:
        text += f" (survived {result.tests_run} of {len(result.task.tests)} tests in {result.seconds:.0f} s)"
    elif result.test:
        text += f" ({result.test.rpartition('::')[2]})"
    return text


def summary(results: Sequence[Result]) -> list[str]:
    """Return the counts, and the rate."""
    counts = Counter(result.outcome for result in results)
    tried = len(results) - counts[Outcome.NOT_TRIED]
    counted = len(results) - sum(counts[outcome] for outcome in NOT_COUNTED)
    low, high = wilson(counts[Outcome.NOTICED], counted)
    share = counts[Outcome.NOTICED] / counted if counted else 0.0
    each = ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome])
    return [
        f"{tried} mutants tried: {each}.",
        f"Rate: an assertion noticed {counts[Outcome.NOTICED]} of {counted} = {share:.0%} "
        f"(95% interval: {low:.0%} to {high:.0%}).",
        "A mutant that only an exception or a time-out shows counts as not noticed; an import error does not count.",
    ]
