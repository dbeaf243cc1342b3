"""Let three agents change one workspace at once, kill some of them, and check that nothing is lost.

Run `python -m docs.mcp.state.three_agents [ROUNDS]` in a workspace. Ann and Bob use MCP, and Cid
uses the command line. The server of Bob is killed in the middle, and so is every third command of
Cid. An agent that gets no response repeats its call with the same idempotency key. In the end, each
change that was acknowledged must be there, and must be there only once.
"""

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcp import Client, StdioServerParameters

from sampletool.mcp.runner import COMMAND

_WRITE_PID_AND_RUN = 'echo $$ > "$0" && exec "$@"'
"""A shell command. It writes its process id into the file $0, and becomes the command in $@."""

_MAX_SECONDS_BEFORE_KILL = 0.1


@dataclass(frozen=True)
class Change:
    """One change, as a call of a tool and as a command."""

    tool: str
    arguments: dict[str, Any]
    command_line: list[str]


class Agent:
    """An agent: the changes that it still has to make, and those that were acknowledged."""

    def __init__(self, name: str, rounds: int) -> None:
        """Plan three changes for each round."""
        self.name = name
        self.left: list[Change] = []
        for number in range(rounds):
            self.left += _changes_of_a_round(name, number)
        self.acknowledged: list[Change] = []
        self.unanswered = 0

    def take_response(self, change: Change, response: dict[str, Any] | None) -> float:
        """Note what became of a change. Return for how many seconds to wait before going on.

        `response` is None if the call was killed. Then the change stays in `left`, as it does after
        an error that says when to retry.
        """
        if response is None:
            self.unanswered += 1
            return 0.0
        if response["ok"]:
            self.left.remove(change)
            self.acknowledged.append(change)
            return 0.0
        error = response["error"]
        if not error["retryable"]:
            raise SystemExit(error["message"])
        return float(error["retry_after_ms"] / 1000)


def _changes_of_a_round(agent: str, number: int) -> list[Change]:
    """Return three changes: of a setting, of a counter, and of a queue of tasks."""
    assignment = f"{agent}.key{number}={number}"
    counter_key = f"{agent}-done-{number}"
    body = f"{agent}-{number}"
    return [
        Change(
            tool="config_set",
            arguments={"words": [assignment]},
            command_line=["config", "set", assignment],
        ),
        Change(
            tool="counter_add",
            arguments={"name": "done", "idempotency_key": counter_key},
            command_line=["counter", "add", "done", "--idempotency-key", counter_key],
        ),
        Change(
            tool="task_add",
            arguments={"queue": "work", "bodies": [body], "idempotency_key": body},
            command_line=["task", "add", "work", body, "--idempotency-key", body],
        ),
    ]


async def work_over_mcp(agent: Agent, pid_file: Path, *, kill_at: int | None = None) -> None:
    """Make all changes of the agent over MCP: all calls at once, over one connection.

    After `kill_at` changes, kill the server. Then make the other changes over a new connection.
    """
    server = StdioServerParameters(
        command="/bin/sh",
        args=["-c", _WRITE_PID_AND_RUN, str(pid_file), *COMMAND, "mcp"],
        env=dict(os.environ),
    )

    async def make(client: Client, change: Change) -> None:
        response = None
        try:
            result = await client.call_tool(change.tool, change.arguments)
            response = result.structured_content
        finally:
            pause = agent.take_response(change, response)
        if len(agent.acknowledged) == kill_at:
            os.kill(int(pid_file.read_text()), signal.SIGKILL)
        await asyncio.sleep(pause)

    while agent.left:
        # If the server is killed, the client raises different errors.
        with suppress(Exception):
            async with Client(server) as client:
                calls = [make(client, change) for change in agent.left]
                await asyncio.gather(*calls)
        kill_at = None


async def work_with_commands(agent: Agent, *, kill_every: int) -> None:
    """Make all changes of the agent with commands, one after the other.

    Every `kill_every`-th command is killed at a random moment.
    """
    started = 0
    while agent.left:
        change = agent.left[0]
        process = await _start(*change.command_line)
        started += 1
        if started % kill_every == 0:
            await asyncio.sleep(random.uniform(0, _MAX_SECONDS_BEFORE_KILL))
            with suppress(ProcessLookupError):
                process.kill()
        stdout, _stderr = await process.communicate()
        response = None
        # The command may have been killed before it printed the whole line.
        if stdout.endswith(b"\n"):
            response = json.loads(stdout)
        pause = agent.take_response(change, response)
        await asyncio.sleep(pause)


async def _start(*arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        "--json",
        stdout=asyncio.subprocess.PIPE,
    )


async def _read_data(*arguments: str) -> Any:
    """Run a command, and return the member `data` of its response."""
    process = await _start(*arguments)
    stdout, _stderr = await process.communicate()
    return json.loads(stdout)["data"]


async def find_faults(agents: list[Agent]) -> list[str]:
    """Return a sentence for each acknowledged change that is missing, or was made twice."""
    listed_settings = (await _read_data("config", "list"))["settings"]
    listed_tasks = (await _read_data("task", "list", "work"))["tasks"]
    counter = (await _read_data("counter", "get", "done"))["value"]

    settings = {setting["key"]: setting["value"] for setting in listed_settings}
    tasks_with_body = Counter(task["body"] for task in listed_tasks)
    faults = []
    additions = 0
    for agent in agents:
        for change in agent.acknowledged:
            if change.tool == "config_set":
                key, _equals, number = change.arguments["words"][0].partition("=")
                value = settings.get(key)
                if value != int(number):
                    faults.append(f"{key} is {value}")
            elif change.tool == "task_add":
                body = change.arguments["bodies"][0]
                count = tasks_with_body[body]
                if count != 1:
                    faults.append(f"the task {body} is there {count} times")
            else:
                additions += 1
    if counter != additions:
        faults.append(f"the counter is {counter}, and {additions} additions were acknowledged")
    return faults


async def main(rounds: int) -> int:
    """Let the agents work, print what they did and what is wrong, and return the exit code."""
    ann = Agent("ann", rounds)
    bob = Agent("bob", rounds)
    cid = Agent("cid", rounds)
    agents = [ann, bob, cid]
    with TemporaryDirectory() as scratch:
        await asyncio.gather(
            work_over_mcp(ann, Path(scratch, "ann")),
            work_over_mcp(bob, Path(scratch, "bob"), kill_at=rounds),
            work_with_commands(cid, kill_every=3),
        )
    for agent in agents:
        acknowledged = len(agent.acknowledged)
        _print_line(
            f"{agent.name}: {acknowledged} changes acknowledged, "
            f"{agent.unanswered} calls without an answer"
        )
    faults = await find_faults(agents)
    if faults:
        _print_line("\n".join(faults))
        return 1
    _print_line("Everything that was acknowledged is there, and nothing twice.")
    return 0


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    chosen_rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    sys.exit(asyncio.run(main(chosen_rounds)))
