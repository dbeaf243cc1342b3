"""Report the results: one line for each mutant, the counts, and the rates with their intervals.

A mutant is *noticed* if an assertion of a test failed with it. The *rate* is the share of noticed
mutants. It is an estimate, because only some of the possible mutants are tried.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from .trial import Outcome, Result

NOT_COUNTED = (Outcome.IMPORT_ERROR, Outcome.SKIPPED, Outcome.NOT_TRIED)
"""Outcomes that the rate leaves out.

An import error shows nothing about the tests, because even a test without assertions fails then.
"""

_Z = 1.959964
"""95% of a normal distribution is within this many standard deviations of the mean."""


@dataclass(frozen=True)
class Rate:
    """The share of mutants that an assertion noticed."""

    noticed: int
    counted: int
    """How many mutants the rate is about. Some outcomes are left out: see NOT_COUNTED."""

    @property
    def share(self) -> str:
        """The rate as a percentage."""
        return f"{self.noticed / max(self.counted, 1):.0%}"

    @property
    def interval(self) -> str:
        """The limits between which the rate of all possible mutants is, with 95% confidence."""
        low, high = wilson(self.noticed, self.counted)
        return f"{low:.0%} to {high:.0%}"


def rate_of(results: Sequence[Result]) -> Rate:
    """Return the rate of these results."""
    counts = Counter(result.outcome for result in results)
    not_counted = sum(counts[outcome] for outcome in NOT_COUNTED)
    return Rate(noticed=counts[Outcome.NOTICED], counted=len(results) - not_counted)


def wilson(noticed: int, tried: int) -> tuple[float, float]:
    """Return the Wilson score interval (95%) of the rate: its lower and upper limit.

    The simpler interval around the rate would be wrong for few mutants, and for rates near 0 or 1.
    See https://en.wikipedia.org/wiki/Binomial_proportion_confidence_interval
    """
    if tried == 0:
        return 0.0, 1.0
    rate = noticed / tried
    center = rate + _Z * _Z / (2 * tried)
    margin = _Z * math.sqrt(rate * (1 - rate) / tried + _Z * _Z / (4 * tried * tried))
    scale = 1 + _Z * _Z / tried
    return (center - margin) / scale, (center + margin) / scale


def line(result: Result) -> str:
    """Return the outcome of one mutant and its diff, in one line."""
    text = f"{result.outcome:17} {result.task.mutant.diff}"
    if result.outcome == Outcome.NOT_NOTICED:
        tests = f"{result.tests_run} of {len(result.task.tests)} tests"
        text += f" (survived {tests} in {result.seconds:.0f} s)"
    elif result.test:
        test_name = result.test.rpartition("::")[2]
        text += f" ({test_name})"
    return text


def summary(results: Sequence[Result]) -> list[str]:
    """Return the lines at the end of the report: the counts, the rate, and how it is counted."""
    counts = Counter(result.outcome for result in results)
    tried = len(results) - counts[Outcome.NOT_TRIED]
    counts_by_outcome = []
    for outcome in Outcome:
        if counts[outcome] > 0:
            counts_by_outcome.append(f"{counts[outcome]} {outcome}")

    rate = rate_of(results)
    counted = f"{rate.noticed} of {rate.counted} = {rate.share}"
    not_noticed = "A mutant that only an exception or a time-out shows counts as not noticed"
    return [
        f"{tried} mutants tried: {', '.join(counts_by_outcome)}.",
        f"Rate: an assertion noticed {counted} (95% interval: {rate.interval}).",
        f"{not_noticed}; an import error does not count.",
    ]


def rate_table(results: Sequence[Result]) -> list[str]:
    """Return the lines of a Markdown table, with a row for each place that mutants are from."""
    results_by_place: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        results_by_place[result.task.place].append(result)

    lines = [
        "| code | mutants | noticed | rate | 95% interval |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    for place, results_of_place in sorted(results_by_place.items()):
        rate = rate_of(results_of_place)
        lines.append(
            f"| `{place}` | {rate.counted} | {rate.noticed} | {rate.share} | {rate.interval} |"
        )
    return lines
