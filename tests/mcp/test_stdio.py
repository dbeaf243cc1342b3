"""sampletool/mcp/stdio.py: the lines on stdin, and the errors about lines that are no messages."""

import asyncio
import json
import os
import socket
import time
from threading import Thread
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import tests.mcp.support  # noqa: F401  # It skips these tests if the SDK is not installed.
from sampletool.kit.testing.failing import outcome_of

_SECONDS_TO_READ_TOO_MUCH = 0.1
"""How long to look whether more messages are read than there is room for."""


_NO_JSON = "This line is not JSON."
_NO_MESSAGE = "This is not a message of JSON-RPC 2.0."
_BAD_PARAMS = "The params must be an object."


@pytest.fixture
def stdio() -> ModuleType:
    # Importing the SDK takes 0.4 s, in each worker that collects these tests.
    from sampletool.mcp import stdio

    return stdio


def request(number: int, method: str) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {}}
    return json.dumps(message).encode() + b"\n"


def test_a_line_that_is_too_long_is_one_error_and_its_rest_no_message(
    stdio: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from anyio import create_memory_object_stream

    monkeypatch.setattr(stdio, "_MAX_LINE_BYTES", 100)
    reader, writer = os.pipe()
    os.write(writer, b"x" * 200 + request(1, "ping") + request(2, "ping"))
    os.close(writer)

    async def read() -> list[list[Any]]:
        streams = [create_memory_object_stream[Any](9) for _ in range(2)]
        (to_server, _), (responses, _) = streams
        await stdio._StdinMessages(reader, asyncio.get_running_loop()).forward(to_server, responses)
        found = []
        for sent, received in streams:
            sent.close()
            async with received:
                found.append([item.message async for item in received])
        return found

    messages, refused = asyncio.run(read())
    os.close(reader)

    assert [message.id for message in messages] == [2]
    assert [answer.error.code for answer in refused] == [-32700]


@pytest.mark.parametrize(
    ("line", "is_cut"),
    [
        (b"x" * 100, True),
        (b"x" * 99 + b"\n", False),
        # The last line of a file may end without a newline.
        (b"x" * 99, False),
        (b"", False),
    ],
)
def test_a_line_is_cut_if_its_end_was_not_read(
    stdio: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    line: bytes,
    is_cut: bool,
) -> None:
    monkeypatch.setattr(stdio, "_MAX_LINE_BYTES", 100)

    assert stdio._is_cut(line) is is_cut


def test_a_client_that_floods_the_server_has_to_wait(
    stdio: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Messages that are read ahead are in memory."""
    monkeypatch.setattr(stdio, "_MAX_WAITING_MESSAGES", 3)
    reader, writer = os.pipe()
    os.write(writer, b"x\n" * 10)

    async def read_ahead() -> int:
        messages = stdio._StdinMessages(reader, asyncio.get_running_loop())
        thread = asyncio.create_task(stdio.in_thread(messages._read_lines))
        while messages._lines.qsize() < 3:
            await asyncio.sleep(0.01)
        # Give the thread some time to read more than it may.
        deadline = time.monotonic() + _SECONDS_TO_READ_TOO_MUCH
        while time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        count: int = messages._lines.qsize()
        os.close(writer)
        for _ in range(10):
            messages._free_slots.release()
        await thread
        return count

    assert asyncio.run(read_ahead()) == 3
    os.close(reader)


def test_more_messages_than_there_is_room_for_arrive_one_after_the_other(
    stdio: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from anyio import create_memory_object_stream

    monkeypatch.setattr(stdio, "_MAX_WAITING_MESSAGES", 2)
    reader, writer = os.pipe()
    os.write(writer, b"".join(request(number, "ping") for number in range(6)))
    os.close(writer)

    async def forward() -> int:
        to_server, received = create_memory_object_stream[Any](9)
        messages = stdio._StdinMessages(reader, asyncio.get_running_loop())
        forwarding = asyncio.create_task(messages.forward(to_server, to_server))
        await asyncio.wait([forwarding], timeout=10)
        count: int = received.statistics().current_buffer_used
        # Let the thread end if it waits for room.
        for _ in range(6):
            messages._free_slots.release()
        await forwarding
        to_server.close()
        received.close()
        return count

    assert asyncio.run(forward()) == 6
    os.close(reader)


def test_what_comes_in_on_a_socket_that_is_stdout_does_not_end_the_connection(
    stdio: ModuleType,
) -> None:
    ours, of_client = socket.socketpair()
    waiting = Thread(target=stdio._wait_until_closed, args=(ours.fileno(),), daemon=True)
    waiting.start()

    of_client.send(b"x")
    # Give the thread some time to end when it must not.
    waiting.join(_SECONDS_TO_READ_TOO_MUCH)
    assert waiting.is_alive()

    of_client.close()
    waiting.join(60)
    assert not waiting.is_alive()
    ours.close()


def test_at_the_end_the_last_responses_are_written_after_the_commands_were_stopped(
    stdio: ModuleType,
) -> None:
    steps: list[str] = []
    are_stopped = asyncio.Event()

    async def close() -> None:
        steps.append("no more requests")

    async def stop_all() -> None:
        steps.append("the commands are stopped")
        are_stopped.set()

    async def write_last_response() -> None:
        await are_stopped.wait()
        await asyncio.sleep(0)
        steps.append("the last response is written")

    async def shut_down() -> None:
        serving = asyncio.create_task(asyncio.Event().wait())
        writing = asyncio.create_task(write_last_response())
        to_server, runner = SimpleNamespace(aclose=close), SimpleNamespace(stop_all=stop_all)
        await stdio._shut_down(to_server, runner, serving, writing)
        serving.cancel()

    asyncio.run(shut_down())

    assert steps == [
        "no more requests",
        "the commands are stopped",
        "the last response is written",
    ]


def reply_to(stdio: ModuleType, line: str) -> object:
    """Return the message in a line, the error to respond with, or the error that was raised.

    An error that is raised would end the connection.
    """
    return outcome_of(
        lambda: stdio.parse_message(line.encode()).model_dump(mode="json", exclude_none=True)
    )


@pytest.mark.parametrize(
    ("line", "message_id", "code", "text"),
    [
        ("no JSON", None, -32700, _NO_JSON),
        ("[" * 100_000, None, -32700, _NO_JSON),
        ('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":"x"}', 7, -32602, _BAD_PARAMS),
        ('{"jsonrpc":"2.0","id":7,"method":"tools/call","params":[1]}', 7, -32602, _BAD_PARAMS),
        ('{"jsonrpc":"2.0","method":"tools/call","params":"x"}', None, -32600, _NO_MESSAGE),
        ('{"jsonrpc":"2.0","id":"a","method":1}', "a", -32600, _NO_MESSAGE),
        ('{"jsonrpc":"2.0","id":"a","method":1,"params":"x"}', "a", -32600, _NO_MESSAGE),
        ('{"jsonrpc":"1.0","id":7,"method":"ping"}', 7, -32600, _NO_MESSAGE),
        (
            '{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"\\ud800"}}',
            *(7, -32600, _NO_MESSAGE),
        ),
        ('{"jsonrpc":"2.0","id":"\\ud800","method":1}', None, -32600, _NO_MESSAGE),
        ('{"jsonrpc":"2.0","id":true,"method":1}', None, -32600, _NO_MESSAGE),
        ('[{"jsonrpc":"2.0","id":7,"method":"ping"}]', None, -32600, _NO_MESSAGE),
        # The SDK reads these as notifications, which get no response.
        ('{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, -32600, _NO_MESSAGE),
        ('{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600, _NO_MESSAGE),
        ("[[[]]]", None, -32600, _NO_MESSAGE),
        ("5", None, -32600, _NO_MESSAGE),
    ],
)
def test_a_message_that_is_wrong_gets_an_error_with_its_id(
    stdio: ModuleType,
    line: str,
    message_id: object,
    code: int,
    text: str,
) -> None:
    """A client that gets no error with its id waits until its own timeout."""
    expected: dict[str, object] = {"jsonrpc": "2.0", "error": {"code": code, "message": text}}
    if message_id is not None:
        expected["id"] = message_id

    assert reply_to(stdio, line) == expected


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "id": 7, "method": "ping", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 7, "result": {"a": 1}},
    ],
)
def test_a_message_that_is_right_stays_as_it_is(
    stdio: ModuleType,
    message: dict[str, object],
) -> None:
    assert reply_to(stdio, json.dumps(message)) == message
