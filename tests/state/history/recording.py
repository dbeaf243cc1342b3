"""Run random clients on a store, kill some of them, and leave a log of each.

    python -m tests.state.history.recording URL DIRECTORY [OPTIONS]

Each client has a supervisor, a process that starts the client, kills it with kill -9 when it has
begun a certain number of calls, and starts its successor. A successor repeats the last call of its
predecessor if that call has an idempotency key. In the end, one more process drains the queue and
reads everything.

The seed decides which calls the clients choose and where they are killed. It does not decide how
the operating system schedules the processes. So the same seed gives a similar history.
"""

import argparse
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

from .adapter import NoResponse, StoreAdapter
from .client import RandomClient, RecordedStore, drain, run_client, tell_progress
from .operation import Log, Operation, read_log
from .processes import fork, wait_for_all

_LONGEST_DELAY_SECONDS = 0.01
"""The kill follows so much after the beginning of a call: in the call, after it, or in the next."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How much happens in a round."""

    seed: int
    clients: int = 4
    calls: int = 100
    """How often each client acts. An action is one or two calls."""
    kills: int = 4
    """How many clients are killed, all together."""
    drain_seconds: float = 40
    """How long the last process tries to do the tasks that are left."""
    round_name: str = "r0"
    """The beginning of every name that the clients use, so that rounds can share a store."""


def record(url: str, directory: Path, plan: Plan) -> None:
    """Run one round, and return when all its processes have exited."""
    _prepare(url)
    choose = random.Random(f"{plan.seed} {plan.round_name} kills")
    victims = [choose.randrange(plan.clients) for _ in range(plan.kills)]
    supervisors = []
    for number in range(plan.clients):
        supervisor = _Supervisor(url, directory, plan, number, victims.count(number))
        supervisors.append(fork(supervisor.run))
    wait_for_all(supervisors)
    wait_for_all([fork(lambda: _drain(url, directory, plan))])


def _prepare(url: str) -> None:
    """Import the driver and create the tables here, so that no forked client has to."""
    # A server that is down at the moment is part of a soak run.
    with closing(StoreAdapter(url)) as store, suppress(NoResponse):
        store.call("count", "nothing", {})


class _Supervisor:
    """Starts the processes of one client, one after the other, and kills all but the last."""

    def __init__(self, url: str, directory: Path, plan: Plan, number: int, kills: int) -> None:
        self._url = url
        self._directory = directory
        self._plan = plan
        self._name = f"c{number}"
        self._kills = kills
        self._random = random.Random(f"{plan.seed} {plan.round_name} {self._name} kills")

    def run(self) -> None:
        """Run the client to its end."""
        for life in range(self._kills):
            self._run_and_kill(life)
        wait_for_all([fork(lambda: self._live(self._kills, lambda: None, self._plan.calls))])

    def _run_and_kill(self, life: int) -> None:
        progress, telling = os.pipe()
        client = fork(lambda: self._live_until_killed(life, progress, telling))
        os.close(telling)
        calls = self._random.randrange(2, 20)
        for _ in range(calls):
            # The client writes one byte when it begins a call.
            if not os.read(progress, 1):
                os.waitpid(client, 0)
                raise SystemExit(f"client {self._name}.{life} exited before it was killed")
        # A random part of a call. Without it, the kill would always come before the first byte of
        # the request is sent.
        time.sleep(self._random.uniform(0, _LONGEST_DELAY_SECONDS))
        os.kill(client, signal.SIGKILL)
        os.waitpid(client, 0)
        os.close(progress)

    def _live_until_killed(self, life: int, progress: int, telling: int) -> None:
        # While this process has the reading end too, it would not notice that its supervisor died.
        os.close(progress)
        self._live(life, tell_progress(telling), None)

    def _live(self, life: int, on_invoke: Callable[[], object], calls: int | None) -> None:
        name = f"{self._name}.{life}"
        with closing(StoreAdapter(self._url)) as store, Log(self._log_path(name)) as log:
            recorded = RecordedStore(store, log, on_invoke)
            client = RandomClient(recorded, name, self._plan.seed, self._plan.round_name)
            if life > 0:
                predecessor = f"{self._name}.{life - 1}"
                unanswered = _last_unanswered(self._log_path(predecessor))
                if unanswered is not None:
                    client.repeat(unanswered)
            run_client(client, calls)

    def _log_path(self, client: str) -> Path:
        return self._directory / f"{client}.log"


def _last_unanswered(log: Path) -> Operation | None:
    """Return the last call in a log if it may have happened and can be repeated."""
    operations = read_log(log)
    if not operations:
        return None
    last = operations[-1]
    is_keyed = last.arguments.get("key") is not None
    if last.may_have_happened and is_keyed:
        return last
    return None


def _drain(url: str, directory: Path, plan: Plan) -> None:
    with closing(StoreAdapter(url)) as store, Log(directory / "end.log") as log:
        recorded = RecordedStore(store, log, lambda: None)
        drain(recorded, plan.round_name, plan.drain_seconds)


def main() -> None:
    """Read the command line, and record one round."""
    parser = argparse.ArgumentParser(prog="python -m tests.state.history.recording")
    parser.add_argument("url", metavar="URL", help="the store that the clients use")
    parser.add_argument("directory", metavar="DIRECTORY", type=Path, help="where the logs go")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument("--clients", type=int, default=4, metavar="N")
    parser.add_argument("--calls", type=int, default=100, metavar="N", help="by each client")
    parser.add_argument("--kills", type=int, default=4, metavar="N", help="of all clients")
    parser.add_argument("--drain-seconds", type=float, default=Plan.drain_seconds, metavar="S")
    parser.add_argument("--round", default="r0", metavar="NAME", dest="round_name")
    options = parser.parse_args()
    plan = Plan(
        seed=options.seed,
        clients=options.clients,
        calls=options.calls,
        kills=options.kills,
        drain_seconds=options.drain_seconds,
        round_name=options.round_name,
    )
    record(options.url, options.directory, plan)


if __name__ == "__main__":
    main()
