"""Serves MCP over stdin and stdout, to the client that has started this process.

The server exits when stdin ends, when nothing reads stdout any more, or when it receives a signal.

The MCP SDK has a transport of its own for stdin and stdout, which is not used here. It would react
to a signal only after the next message of the client: until then, its thread waits for stdin, and
nothing can interrupt it.
"""

import asyncio
import json
import select
from contextlib import suppress
from functools import partial
from threading import Semaphore
from typing import Any, BinaryIO

from mcp import types
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from ..kit.safety.atomic_file import write_all
from .protocol import Tools, create_protocol
from .runner import CommandRunner
from .threads import in_thread

_MAX_LINE_BYTES = 16 * 1024 * 1024

_MAX_WAITING_MESSAGES = 64
"""How many messages may wait for the server. Without a limit, they could fill the memory."""

_FLUSH_SECONDS = 0.1
"""How long the server waits for the last responses to be written."""


async def serve_stdio(
    stdin: int,
    stdout: int,
    wake_up_descriptor: int,
    loading: asyncio.Future[Tools],
) -> int:
    """Serve the client until the connection ends, or until this process receives a signal.

    `stdin` and `stdout` are the descriptors of the connection. `wake_up_descriptor` becomes
    readable when the signal arrives. `loading` returns the tools, and the client can send requests
    before the tools are loaded.

    Return how many commands were run.
    """
    loop = asyncio.get_running_loop()
    is_over = asyncio.Event()
    runner = CommandRunner()
    protocol = create_protocol(runner, loading)
    async with create_client_server_memory_streams() as (client_streams, server_streams):
        # Three tasks pass each message on, through two pairs of connected streams:
        # stdin -> `reading` -> to_server = requests -> `serving`
        # `serving` -> responses = from_server -> `writing` -> stdout
        from_server, to_server = client_streams
        requests, responses = server_streams
        messages = _StdinMessages(stdin, loop)
        reading = asyncio.create_task(messages.forward(to_server, responses))
        writing = asyncio.create_task(_write_messages(stdout, from_server))
        serving = asyncio.create_task(
            protocol.run(requests, responses, protocol.create_initialization_options())
        )
        stdout_closing = asyncio.create_task(in_thread(partial(_wait_until_closed, stdout)))
        for task in (reading, writing, serving, stdout_closing):
            task.add_done_callback(lambda _task: is_over.set())
        loop.add_reader(wake_up_descriptor, is_over.set)
        await is_over.wait()
        loop.remove_reader(wake_up_descriptor)
        await _shut_down(to_server, runner, serving, writing)
    return runner.count


async def _shut_down(
    to_server: Any,
    runner: CommandRunner,
    serving: asyncio.Task[None],
    writing: asyncio.Task[None],
) -> None:
    """Stop accepting requests, stop the commands, and wait until the last responses are written.

    The tasks `reading` and `stdout_closing` may wait for the client permanently, so this function
    does not wait for them. asyncio.run() cancels them later.
    """
    # Accept no requests first: a later one could start a command that nothing would stop.
    await to_server.aclose()
    # Stop the commands while `serving` and `writing` still run, so that their responses are sent.
    await runner.stop_all()
    # If the client does not read, the tasks cannot finish. Then asyncio.run() cancels them, too.
    await asyncio.wait([serving, writing], timeout=_FLUSH_SECONDS)


class _StdinMessages:
    """The messages of the client, which a thread reads from stdin and puts into a queue.

    Reading needs a thread, because an event loop cannot wait for stdin if it is a file.
    """

    def __init__(self, stdin: int, loop: asyncio.AbstractEventLoop) -> None:
        self._stdin = stdin
        self._loop = loop
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._free_slots = Semaphore(_MAX_WAITING_MESSAGES)

    async def forward(self, to_server: Any, responses: Any) -> None:
        """Send each message to the server until stdin ends.

        If a line is not a valid message, send an error to the client instead.
        """
        reading = asyncio.create_task(in_thread(self._read_lines))
        try:
            while True:
                line = await self._lines.get()
                if line is None:
                    return
                self._free_slots.release()
                message = parse_message(line)
                receiver = to_server
                if isinstance(message, types.JSONRPCError):
                    receiver = responses
                await receiver.send(SessionMessage(message))
        finally:
            reading.cancel()

    def _read_lines(self) -> None:
        """Put each line of stdin into the queue, and None at its end. Run this in the thread.

        Before each line, wait for one of the free slots. `forward` frees a slot when it takes a
        line. The final None needs no slot.
        """
        with open(self._stdin, "rb", closefd=False) as stdin:
            while line := stdin.readline(_MAX_LINE_BYTES):
                if _is_cut(line):
                    # Replace the whole line with an empty one, so that the client gets one error,
                    # rather than one for each piece of the line.
                    _skip_rest_of_line(stdin)
                    line = b""
                self._free_slots.acquire()
                self._put(line)
        self._put(None)

    def _put(self, line: bytes | None) -> None:
        """Put a line into the queue, from the thread."""
        # Schedule a plain function, not a coroutine: the loop may be closed before it runs. If the
        # loop is closed already, it raises RuntimeError.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)


def _is_cut(line: bytes) -> bool:
    """Return whether a line is too long, so that only part of it was read."""
    return len(line) == _MAX_LINE_BYTES and not line.endswith(b"\n")


def _skip_rest_of_line(file: BinaryIO) -> None:
    while _is_cut(file.readline(_MAX_LINE_BYTES)):
        pass


def parse_message(line: bytes) -> types.JSONRPCMessage:
    """Return the message in a line. If the message is invalid, return the error for the client.

    If possible, the error contains the id of the message. Without the id, the client could not tell
    which of its requests has failed, and would wait for the response.
    """
    message = None
    with suppress(ValueError):
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    is_notification = isinstance(message, types.JSONRPCNotification)
    if message is not None and not is_notification:
        return message
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return _error(None, types.PARSE_ERROR, "This line is not JSON.")
    # If a request has an invalid id, such as null or 1.5, the SDK takes it for a notification, and
    # would not respond. Report an error instead, because the client waits for a response.
    if message is not None and "id" not in content:
        return message
    message_id = _id_of(content)
    is_request = message_id is not None and isinstance(content.get("method"), str)
    if is_request and not isinstance(content.get("params", {}), dict):
        return _error(message_id, types.INVALID_PARAMS, "The params must be an object.")
    return _error(message_id, types.INVALID_REQUEST, "This is not a message of JSON-RPC 2.0.")


def _id_of(content: Any) -> int | str | None:
    """Return the id of a message, or None if there is no id that a response can contain."""
    if not isinstance(content, dict):
        return None
    message_id = content.get("id")
    is_number = isinstance(message_id, int) and not isinstance(message_id, bool)
    # In JSON, a text may contain half of a surrogate pair. A response cannot contain such a text,
    # because it cannot be encoded as UTF-8. isprintable() returns False for it, and also for
    # control characters.
    is_text = isinstance(message_id, str) and message_id.isprintable()
    if is_number or is_text:
        return message_id
    return None


def _error(message_id: int | str | None, code: int, text: str) -> types.JSONRPCError:
    error = types.ErrorData(code=code, message=text)
    return types.JSONRPCError(jsonrpc="2.0", id=message_id, error=error)


async def _write_messages(stdout: int, from_server: Any) -> None:
    """Write each message to stdout. Return if that fails, which makes the server exit."""
    # There is no way to report the failure to the client, because stdout is the only connection.
    with suppress(OSError):
        async for item in from_server:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            # Write in a thread: if the client does not read, only this thread waits for it.
            await in_thread(partial(write_all, stdout, f"{line}\n".encode()))


def _wait_until_closed(stdout: int) -> None:
    """Wait until nothing reads stdout any more. Run this in a thread."""
    # With 0 as the events to wait for, poll() returns only on an error or a hang-up. The event loop
    # cannot replace it: the loop cannot watch a file, and would take data that a socket receives
    # for its end.
    poll = select.poll()
    poll.register(stdout, 0)
    poll.poll()
