"""`make mutants`: takes the mechanisms out, one at a time, and says which of them no test notices.

The status is 1 if a change does not apply any more, or if fewer than 95 of 100 are noticed by an assertion. A sample is
too small for such a share, and a busy machine must not decide: there an exception and a time limit count as well, and
what fails or is not noticed is tried three times.
"""

import argparse
import math
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.kit.trees import ROOT

from .changes import lists, read_changes
from .trial import (
    FAILS_ANYWAY,
    NOT_APPLIED,
    NOT_TRIED,
    NOTICED,
    SKIPPED,
    TIME_LIMIT,
    UNNOTICED,
    Limits,
    try_changes,
)  # fmt: skip

_LEAST_NOTICED = 0.95


def main() -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("lists", nargs="*", type=Path, metavar="FILE.toml", help="default: all of tests/*/mutants")
    parser.add_argument("--sample", type=int, metavar="N", help="try N of them, chosen by the seed")
    parser.add_argument("--seed", help="default: the commit")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no other after this long")
    parser.add_argument("--only", default="", metavar="TEXT", help="those whose file, list or mechanism contains TEXT")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args()

    changes = read_changes(chosen.lists or lists(ROOT))
    changes = [change for change in changes if chosen.only in f"{change.list} {change.file} {change.mechanism}"]
    if chosen.sample is not None:
        seed = chosen.seed or _commit()
        _say(f"{chosen.sample} of {len(changes)}, chosen by the seed {seed}")
        changes = random.Random(seed).sample(changes, min(chosen.sample, len(changes)))

    began = time.monotonic()
    counts: Counter[str] = Counter()
    limits = Limits(1 if chosen.sample is None else 3, began + chosen.seconds)
    for change, outcome, reason in try_changes(changes, ROOT, chosen.workers, limits):
        counts[outcome] += 1
        _say(f"{outcome:27}  {change.file}: {change.mechanism}" + (f" ({reason})" if reason else ""))
    _say(
        f"{len(changes)} changes in {time.monotonic() - began:.0f} s: "
        + ", ".join(f"{n} {o}" for o, n in counts.items())
    )
    return status(counts, is_sample=chosen.sample is not None)


def status(counts: Counter[str], *, is_sample: bool = False) -> int:
    tried = counts.total() - counts[UNNOTICED] - counts[SKIPPED] - counts[NOT_TRIED]
    noticed = sum(counts[outcome] for outcome in ((*NOTICED, TIME_LIMIT) if is_sample else NOTICED[:1]))
    return int(counts[NOT_APPLIED] + counts[FAILS_ANYWAY] > 0 or noticed < _LEAST_NOTICED * tried)


def _commit() -> str:
    ran = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout.strip() or "no commit"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
