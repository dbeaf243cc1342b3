"""The workers do not share a total.

They send messages, and one coordinator owns the total, so no lock is needed. This is a good design,
but it raises a new question: when is the coordinator finished? `while True` never is, so
`asyncio.gather` waits permanently after all the work is done. `while not queue.empty()` may stop
before the first message arrives. And if the first sender ends the loop, the messages of the other
senders are lost.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..scenario import History, Mutation, Scenario, Step, Variant

SENDERS = ("A", "B")
END = None
"""The message that a sender sends after its last message."""


class SharedMemory:
    """The queue that all workers use. A and B send to it, and C, the coordinator, receives."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[str | None] = asyncio.Queue()


async def naive(worker: str, memory: SharedMemory) -> None:
    """Send a message as A or B. Receive messages in an endless loop as C, the coordinator."""
    if worker in SENDERS:
        await memory.queue.put(worker)
        return
    while True:
        record(await memory.queue.get())


async def wrong_until_empty(worker: str, memory: SharedMemory) -> None:
    """Receive, as C, until the queue is empty. Wrong: it is empty before the first message, too."""
    if worker in SENDERS:
        await memory.queue.put(worker)
        return
    while not memory.queue.empty():
        record(await memory.queue.get())


async def wrong_first_end(worker: str, memory: SharedMemory) -> None:
    """Receive, as C, until a sender has ended. Wrong: the other sender may still send."""
    if worker in SENDERS:
        await memory.queue.put(worker)
        await memory.queue.put(END)
        return
    while True:
        message = await memory.queue.get()
        if message is END:
            break
        record(message)


async def fixed(worker: str, memory: SharedMemory) -> None:
    """Send a message and END as A or B. Receive, as C, until each sender has sent its END."""
    if worker in SENDERS:
        await memory.queue.put(worker)
        await memory.queue.put(END)
        return
    ended = 0
    while ended < len(SENDERS):
        message = await memory.queue.get()
        if message is END:
            ended += 1
        else:
            record(message)


def record(message: str | None) -> None:
    """Append a message to the file of recorded messages."""
    with Path("recorded").open("a") as file:
        file.write(f"{message} ")


@dataclass(frozen=True)
class RecordedMessages:
    """The messages that C has recorded, in their order. Each message is the name of its sender."""

    messages: Sequence[str]

    def __str__(self) -> str:
        if not self.messages:
            return "nothing"
        return " ".join(self.messages)


def prepare(directory: Path) -> None:
    """Create an empty record of the messages."""
    (directory / "recorded").write_text("")


def read_state(directory: Path) -> RecordedMessages:
    """Return the messages that C has recorded."""
    text = (directory / "recorded").read_text()
    return RecordedMessages(messages=text.split())


def invariant(history: History) -> Iterator[str]:
    """Each message is recorded once, and all tasks finish."""
    if not history.is_finished:
        return
    for sender in SENDERS:
        times = history.state.messages.count(sender)
        if times != 1:
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
    private_variables=("ended", "message"),
    workers=3,
    create_shared_memory=SharedMemory,
    variants={
        "naive": Variant(
            summary="receives messages in an endless loop",
            schedule="A1 B1 C1",
            explanation=(
                "No message says that there are no more messages. `gather` waits for C, and C "
                "waits for the queue."
            ),
            expected_problem="waits for ever",
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
    steps=(Step(name="send", event="", file="[AB]"), Step(name="take", event="", file="C")),
    mechanisms=(
        Mutation(
            function="lab/scenarios/coordinator.py:fixed",
            summary="stop at the first end message",
            original_code="ended < len(SENDERS)",
            replacement_code="ended < 1",
            expected_problem="was recorded 0 times",
        ),
        Mutation(
            function="lab/scenarios/coordinator.py:fixed",
            summary="never stop",
            original_code="ended += 1",
            replacement_code="pass",
            expected_problem="waits for ever",
        ),
    ),
    production_code="sampletool.lab.scenarios.coordinator:fixed",
    no_verb=(
        "No command of this tool has a coordinator. The fix on this page is an example that uses "
        "`asyncio.Queue`."
    ),
)
