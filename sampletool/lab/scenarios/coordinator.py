"""Instead of sharing a total, the workers send messages, and one coordinator owns it. Nothing is left to lock.

That is right, and it has a mistake of its own: when is the coordinator done? `while True` never is: all the work is
done, and `asyncio.gather` waits for ever. `while not queue.empty()` is done before the first message has come. And an
end that the first sender sends is the end of the others' messages too.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from ..scenario import History, Removal, Scenario, Step, Way

SENDERS = "AB"


class World:
    def __init__(self) -> None:
        self.queue: asyncio.Queue[str | None] = asyncio.Queue()


async def naive(worker: str, world: World) -> None:
    if not await has_sent(worker, world, worker):
        while True:
            record(await world.queue.get())


async def wrong_until_empty(worker: str, world: World) -> None:
    if not await has_sent(worker, world, worker):
        while not world.queue.empty():
            record(await world.queue.get())


async def wrong_first_end(worker: str, world: World) -> None:
    if not await has_sent(worker, world, worker, None):
        while (message := await world.queue.get()) is not None:
            record(message)


async def fixed(worker: str, world: World) -> None:
    if not await has_sent(worker, world, worker, None):
        ended = 0
        while ended < len(SENDERS):
            message = await world.queue.get()
            if message is None:
                ended += 1
            else:
                record(message)


async def has_sent(worker: str, world: World, *messages: str | None) -> bool:
    """A and B send; C is the coordinator."""
    for message in messages if worker in SENDERS else ():
        await world.queue.put(message)
    return worker in SENDERS


def record(message: str | None) -> None:
    with Path("recorded").open("a") as file:
        file.write(f"{message} ")


def prepare(directory: Path) -> None:
    (directory / "recorded").write_text("")


def look(directory: Path) -> str:
    return (directory / "recorded").read_text().strip() or "nothing"


def invariant(history: History) -> Iterator[str]:
    """When all have ended, each message was recorded, once; and all end."""
    for sender in SENDERS:
        if history.is_over and history.now.split().count(sender) != 1:
            yield f"{sender}'s message was recorded {history.now.split().count(sender)} times."


scenario = Scenario(
    title="The coordinator that never ends",
    rule="Give the state one owner and send it messages; its end is a message too, one from each sender.",
    happened=(
        "aioprocessing: a coroutine that took events in `while True` was cancelled, and the process never ended; the "
        "advice was to end such a loop by a value in the queue.",
        "https://github.com/dano/aioprocessing/issues/21",
    ),
    question="A and B each send one message and end. C takes what comes. When does the program end?",
    shared="recorded",
    private=("ended", "message"),
    workers=3,
    world=World,
    ways={
        "naive": Way(
            says="the coordinator takes messages, for ever",
            shows="A1 B1 C1",
            because="nobody says that there are no more messages; `gather` waits for C, and C for the queue.",
            breaks="waits for ever",
        ),
        "wrong-until-empty": Way(
            says="until the queue is empty",
            shows="C1 A1 B1",
            because="the queue is empty before the first message too.",
        ),
        "wrong-first-end": Way(
            says="each sender sends an end; the coordinator ends at one",
            shows="A1 B1 C1",
            because="A's end came before B's message.",
        ),
        "fixed": Way(
            says="each sender sends an end; the coordinator counts them (Python 3.13 has `asyncio.Queue.shutdown`)",
            shows="A1 C1 B1 C2",
            because="C waited for B's end, and nothing comes behind the last one.",
        ),
    },
    steps=(Step("send", "", "[AB]"), Step("take", "", "C")),
    mechanisms=(
        Removal(
            "lab/scenarios/coordinator.py:fixed",
            says="ending at the first end",
            pattern="ended < len(SENDERS)",
            instead="ended < 1",
            breaks="message was recorded 0 times",
        ),
        Removal(
            "lab/scenarios/coordinator.py:fixed",
            says="never ending",
            pattern="ended += 1",
            instead="pass",
            breaks="waits for ever",
        ),
    ),
    symbol="sampletool.lab.scenarios.coordinator:fixed",
    no_verb="No command of this tool has a coordinator: the right way is code of this page, over `asyncio.Queue`.",
    still_broken_by="a sender that dies without its end, so that it has to be sent in a `finally`; and a coordinator "
    "that dies, whom nobody misses. `multiprocessing.Queue` loses messages when a process is killed while it puts one.",
)
