"""The workers do not share a total.

They send messages, and one coordinator owns the total, so no lock is needed. This is a good design,
but it raises a new question: when is the coordinator finished? `while True` never is, so
`asyncio.gather` waits permanently after all the work is done. `while not queue.empty()` may stop
before the first message arrives. And if the first sender ends the loop, the messages of the other
senders are lost.
"""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from ..scenario import History, Removal, Scenario, Step, Variant

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
    """Return whether this is A or B, which send their messages first. C is the coordinator."""
    if worker not in SENDERS:
        return False
    for message in messages:
        await world.queue.put(message)
    return True


def record(message: str | None) -> None:
    with Path("recorded").open("a") as file:
        file.write(f"{message} ")


def prepare(directory: Path) -> None:
    """Create an empty record of the messages."""
    (directory / "recorded").write_text("")


def look(directory: Path) -> str:
    """Return the messages that C has recorded, in their order."""
    return (directory / "recorded").read_text().strip() or "nothing"


def invariant(history: History) -> Iterator[str]:
    """Each message is recorded once, and all tasks finish."""
    for sender in SENDERS:
        times = history.now.split().count(sender)
        if history.is_over and times != 1:
            yield f"the message of {sender} was recorded {times} times."


scenario = Scenario(
    title="A coordinator that never stops: ending a queue loop",
    subtitle="All the work is done, but the program does not exit.",
    rule=(
        "Let one task own the state, and send it messages. The end is a message too, and each "
        "sender sends one."
    ),
    happened=(
        "A user of aioprocessing cancelled a coroutine that took events in `while True`, and the "
        "process never exited. The advice was to end such a loop with a special value in the "
        "queue.",
        "https://github.com/dano/aioprocessing/issues/21",
    ),
    question=(
        "A and B each send one message and exit. C receives the messages. When does the program "
        "exit?"
    ),
    shared="recorded",
    private=("ended", "message"),
    workers=3,
    world=World,
    variants={
        "naive": Variant(
            summary="receives messages in an endless loop",
            schedule="A1 B1 C1",
            explanation=(
                "No message says that there are no more messages. `gather` waits for C, and C "
                "waits for the queue."
            ),
            breaks="waits for ever",
        ),
        "wrong-until-empty": Variant(
            summary="receives messages until the queue is empty",
            schedule="C1 A1 B1",
            explanation="The queue is also empty before the first message arrives.",
        ),
        "wrong-first-end": Variant(
            summary="stops at the first end message",
            schedule="A1 B1 C1",
            explanation="The end message of A arrived before the message of B.",
        ),
        "fixed": Variant(
            summary="counts the end messages, one from each sender",
            schedule="A1 C1 B1 C2",
            explanation="C waited for the end message of B, and no message comes after it.",
        ),
    },
    steps=(Step("send", "", "[AB]"), Step("take", "", "C")),
    mechanisms=(
        Removal(
            "lab/scenarios/coordinator.py:fixed",
            summary="stop at the first end message",
            pattern="ended < len(SENDERS)",
            instead="ended < 1",
            breaks="was recorded 0 times",
        ),
        Removal(
            "lab/scenarios/coordinator.py:fixed",
            summary="never stop",
            pattern="ended += 1",
            instead="pass",
            breaks="waits for ever",
        ),
    ),
    symbol="sampletool.lab.scenarios.coordinator:fixed",
    no_verb=(
        "No command of this tool has a coordinator. The fix on this page is an example that uses "
        "`asyncio.Queue`."
    ),
)
