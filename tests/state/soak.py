"""`make soak`, the part about shared state: check the histories of many rounds of random clients.

    python -m tests.state.soak [--minutes M] [--only BACKEND] [--seed N] [--page FILE.md]

Each round runs random clients on the store of a backend, kills some of them with kill -9, and
checks their history (see tests/state/history). In every third round, the server is killed too. All
rounds of a backend use one store, so it grows. A round has names of its own, so that the calls on
each key stay few enough for an exact check.

The exit code is 1 if a promise is broken. The logs of that round stay, and their directory is
printed.
"""

import argparse
import os
import random
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.state.history.check import Verdict, check
from tests.state.history.operation import read_history
from tests.state.history.processes import fork, wait_for_all
from tests.state.history.recording import Plan, record
from tests.state.support.servers import Server, run_directory
from tests.state.support.waiting import wait_until

BACKENDS = ("sqlite", "postgres", "valkey")
MINUTES = 60.0
"""How long `make soak` runs, all backends together."""

_KILLS_PER_ROUND = 6
_ROUNDS_PER_SERVER_KILL = 3
_MOST_LOG_BYTES = 80_000
"""The server is killed when the logs have reached a random size below this: half of a round."""
_PATIENCE_SECONDS = 120.0
"""How long a busy machine may take to get there."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """The figures of one backend."""

    backend: str
    seconds: float = 0.0
    rounds: int = 0
    clients_killed: int = 0
    servers_killed: int = 0
    calls: int = 0
    maybe: int = 0
    """How many calls have no response."""
    objects: int = 0
    """How many values and counters were checked."""
    unknown: int = 0
    """For how many of them the search reached its bound."""
    claims: int = 0
    violations: int = 0

    def with_round(self, verdict: Verdict, *, is_server_killed: bool) -> "Row":
        """Return the figures after one more round."""
        return replace(
            self,
            rounds=self.rounds + 1,
            clients_killed=self.clients_killed + _KILLS_PER_ROUND,
            servers_killed=self.servers_killed + is_server_killed,
            calls=self.calls + verdict.operations,
            maybe=self.maybe + verdict.maybe,
            objects=self.objects + verdict.values + verdict.counters,
            unknown=self.unknown + len(verdict.unknown),
            claims=self.claims + verdict.claims,
            violations=self.violations + len(verdict.violations),
        )


def run(backend: str, seconds: float, seed: int) -> Row:
    """Run rounds on one backend until the time is over: at least one."""
    began = time.monotonic()
    row = Row(backend=backend)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-")))
        url, server = stack.enter_context(_store(backend, scratch))
        while row.rounds == 0 or time.monotonic() - began < seconds:
            plan = Plan(seed=seed, kills=_KILLS_PER_ROUND, round_name=f"{backend}-{row.rounds}")
            victim = server if row.rounds % _ROUNDS_PER_SERVER_KILL == 0 else None
            logs = scratch / plan.round_name
            verdict = _run_round(url, logs, plan, victim)
            row = row.with_round(verdict, is_server_killed=victim is not None)
            if verdict.violations:
                kept = Path(tempfile.mkdtemp(prefix="history-"), plan.round_name)
                shutil.move(logs, kept)
                _print(f"{plan}: {verdict}\nThe logs are in {kept}.")
            else:
                shutil.rmtree(logs)
    return replace(row, seconds=time.monotonic() - began)


def _run_round(url: str, logs: Path, plan: Plan, victim: Server | None) -> Verdict:
    """Record a round, kill the server in it if there is a victim, and check the history."""
    logs.mkdir()
    recording = fork(lambda: record(url, logs, plan))
    if victim is not None:
        choose = random.Random(f"{plan.seed} {plan.round_name} server")
        log_bytes = choose.randrange(_MOST_LOG_BYTES)
        wait_until(lambda: _bytes_in(logs) > log_bytes, _PATIENCE_SECONDS)
        victim.kill()
    wait_for_all([recording])
    return check(read_history(logs))


def _bytes_in(logs: Path) -> int:
    return sum(log.stat().st_size for log in logs.glob("*.log"))


@contextmanager
def _store(backend: str, scratch: Path) -> Iterator[tuple[str, Server | None]]:
    if backend == "sqlite":
        yield f"sqlite://{scratch}/state.db", None
        return
    server = Server(backend, run_directory(secrets.token_hex(6), backend), is_durable=False)
    yield server.url, server
    server.leave()


_COLUMNS = (
    "backend",
    "time",
    "rounds",
    "calls",
    "without a response",
    "clients killed",
    "servers killed",
    "values and counters",
    "of these unknown",
    "claims of tasks",
    "violations",
)


def page(rows: list[Row], processors: int | None) -> str:
    """Return the page that shows the figures of a run."""
    planned = f"{MINUTES:.0f} minutes"
    kills = f"{_KILLS_PER_ROUND} clients"
    duration = f"{sum(row.seconds for row in rows) / 60:.1f} minutes"
    clients = f"{sum(row.clients_killed for row in rows):,} clients"
    servers = f"{sum(row.servers_killed for row in rows):,} servers"
    lines = [f"| {' | '.join(_COLUMNS)} |", f"| {' | '.join(['---'] * len(_COLUMNS))} |"]
    for row in rows:
        cells = [
            row.backend,
            f"{row.seconds:.0f} s",
            f"{row.rounds:,}",
            f"{row.calls:,}",
            f"{row.maybe:,}",
            f"{row.clients_killed:,}",
            f"{row.servers_killed:,}",
            f"{row.objects:,}",
            f"{row.unknown:,}",
            f"{row.claims:,}",
            f"{row.violations:,}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    table = "\n".join(lines)
    return f"""# Soak test: kill -9 under load

<!-- Written by `make soak` (tests/state/soak.py) from the figures of its own run; do not edit. -->

`make soak` runs random clients for {planned}, on one backend after the other. It kills some of
the clients and servers with kill -9, and then checks whether the store has kept its promises. The
page [Check a history](history.md) explains how this check works.

This run took {duration} on {processors} processors. It killed {clients} and {servers}.

{table}

* **Rounds:** in each round, four clients make a few hundred calls to the same values, counters and
  tasks. During the round, {kills} are killed, and others take their place. In every third round,
  the server is killed as well, unless the backend is SQLite, which has no server. All rounds of a
  backend use the same store.
* **Calls without a response:** their client or their server was killed during the call, so they may
  have taken effect or not.
* **Unknown:** for these values and counters, the search for an order took too long, so they aren't
  checked.
* **Violations:** the promises that the store has broken.
"""


def main() -> int:
    """Read the command line, run, and return the exit code."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=MINUTES, help="[default: %(default)s]")
    parser.add_argument("--only", choices=BACKENDS, action="append", help="[default: all of them]")
    parser.add_argument("--seed", type=int, help="[default: chosen at random, and printed]")
    parser.add_argument("--page", type=Path, metavar="FILE.md", help="write the figures here")
    options = parser.parse_args()

    seed = options.seed
    if seed is None:
        seed = random.SystemRandom().randrange(1_000_000)
    _print(f"seed {seed}")
    backends = options.only or BACKENDS
    seconds = options.minutes * 60 / len(backends)
    rows = []
    for backend in backends:
        row = run(backend, seconds, seed)
        _print(str(row))
        rows.append(row)
    if options.page:
        options.page.write_text(page(rows, os.cpu_count()))
    return int(any(row.violations for row in rows))


def _print(text: str) -> None:
    # Flushed, so that a reader of a pipe sees it while the run continues.
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
