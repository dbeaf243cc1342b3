"""Three agents change one workspace at once, two over the protocol and one with the command line, and are killed.

`python -m docs.mcp.state.three_agents [ROUNDS]`, in a workspace. The server of one is killed with -9 in the middle, and
so are some calls of the command line. An agent without an answer asks again, with the same idempotency key. At the end
it is looked up whether everything that was answered with ok is there, and nothing twice.
"""

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from mcp import Client, StdioServerParameters

from sampletool.mcp.runner import COMMAND

_WITH_ITS_PID = ["-c", 'echo $$ > "$0" && exec "$@"']


class Change(NamedTuple):
    """The same call for both doors."""

    tool: str
    arguments: dict[str, Any]
    command_line: list[str]


def changes(agent: str, rounds: int) -> Iterator[Change]:
    for number in range(rounds):
        word, once, body = f"{agent}.key{number}={number}", f"{agent}-done-{number}", f"{agent}-{number}"
        yield Change("config_set", {"words": [word]}, ["config", "set", word])
        yield Change(
            "counter_add",
            {"name": "done", "idempotency_key": once},
            ["counter", "add", "done", "--idempotency-key", once],
        )
        yield Change(
            "task_add",
            {"queue": "work", "bodies": [body], "idempotency_key": body},
            ["task", "add", "work", body, "--idempotency-key", body],
        )


class Agent:
    """What it wants to change, and what was answered with ok."""

    def __init__(self, name: str, rounds: int) -> None:
        self.left = list(changes(name, rounds))
        self.acknowledged: list[Change] = []
        self.unanswered = 0

    def hear(self, change: Change, answer: dict[str, Any] | None) -> float:
        """How many seconds to wait before it asks again, if it has to."""
        if answer is None:
            self.unanswered += 1
        elif answer["ok"]:
            self.left.remove(change)
            self.acknowledged.append(change)
        elif not answer["error"]["retryable"]:
            raise SystemExit(answer["error"]["message"])
        else:
            return float(answer["error"]["retry_after_ms"] / 1000)
        return 0.0


async def over_the_protocol(agent: Agent, place: Path, *, killed_at: int | None = None) -> None:
    """One connection, all calls at once; after its server was killed, another one."""
    server = StdioServerParameters(
        command="/bin/sh", args=[*_WITH_ITS_PID, str(place), *COMMAND, "mcp"], env=dict(os.environ)
    )

    async def ask(client: Client, change: Change) -> None:
        answer = None
        try:
            answer = (await client.call_tool(change.tool, change.arguments)).structured_content
        finally:
            pause = agent.hear(change, answer)
        if len(agent.acknowledged) == killed_at:
            os.kill(int(place.read_text()), signal.SIGKILL)
        await asyncio.sleep(pause)

    while agent.left:
        with suppress(Exception):
            async with Client(server) as client:
                await asyncio.gather(*(ask(client, change) for change in agent.left))
        killed_at = None


async def with_the_command_line(agent: Agent, *, killed_every: int) -> None:
    """One call after the other; every so many of them is killed, whatever it is doing just then."""
    number = 0
    while agent.left:
        change = agent.left[0]
        process = await start(*change.command_line)
        number += 1
        if number % killed_every == 0:
            await asyncio.sleep(random.uniform(0, 0.1))
            with suppress(ProcessLookupError):
                process.kill()
        line, _ = await process.communicate()
        await asyncio.sleep(agent.hear(change, json.loads(line) if line.endswith(b"\n") else None))


async def start(*call: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(*COMMAND, *call, "--json", stdout=asyncio.subprocess.PIPE)


async def data(*call: str) -> Any:
    line, _ = await (await start(*call)).communicate()
    return json.loads(line)["data"]


async def faults(agents: list[Agent]) -> list[str]:
    """What was acknowledged and is not there, or is there twice."""
    made = [change for agent in agents for change in agent.acknowledged]
    settings = {one["key"]: one["value"] for one in (await data("config", "list"))["settings"]}
    bodies = Counter(task["body"] for task in (await data("task", "list", "work"))["tasks"])
    value = (await data("counter", "get", "done"))["value"]
    found = []
    for tool, arguments, _ in made:
        if tool == "config_set":
            key, _, number = arguments["words"][0].partition("=")
            found += [] if settings.get(key) == int(number) else [f"{key} is {settings.get(key)}"]
        if tool == "task_add" and (times := bodies[arguments["bodies"][0]]) != 1:
            found.append(f"the task {arguments['bodies'][0]} is there {times} times")
    added = sum(change.tool == "counter_add" for change in made)
    return found + ([] if value == added else [f"the counter is {value}, and {added} additions were acknowledged"])


async def main(rounds: int) -> int:
    agents = {name: Agent(name, rounds) for name in ("ann", "bob", "cid")}
    with TemporaryDirectory() as scratch:
        await asyncio.gather(
            over_the_protocol(agents["ann"], Path(scratch, "ann")),
            over_the_protocol(agents["bob"], Path(scratch, "bob"), killed_at=rounds),
            with_the_command_line(agents["cid"], killed_every=3),
        )
    for name, agent in agents.items():
        say(f"{name}: {len(agent.acknowledged)} changes acknowledged, {agent.unanswered} calls without an answer")
    problems = await faults([*agents.values()])
    say("\n".join(problems) or "Everything that was acknowledged is there, and nothing twice.")
    return bool(problems)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if sys.argv[1:] else 2)))
