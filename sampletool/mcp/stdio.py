"""The transport over stdin and stdout, which a client starts.

This is not the transport of the SDK. That one reads stdin in a thread that only its client can
end, so a signal would have no effect until the client sends something. Here, the connection ends if
stdin ends, if nothing reads stdout any more, or on a signal.
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
"""How many messages are read ahead. Without a limit, a client could fill the memory."""

_FLUSH_SECONDS = 0.1
"""How long the last responses may take to be written."""


async def serve_stdio(
    stdin: int,
    stdout: int,
    wake_up_descriptor: int,
    loading: asyncio.Future[Tools],
) -> int:
    """Serve until the connection ends, or until a signal makes `wake_up_descriptor` readable.

    Return how many commands were run.
    """
    loop = asyncio.get_running_loop()
    is_over = asyncio.Event()
    runner = CommandRunner()
    protocol = create_protocol(runner, loading)
    async with create_client_server_memory_streams() as (client_streams, server_streams):
        # A message takes this way through the tasks and the streams:
        # stdin, `reading`, to_server = requests, `serving`, responses = from_server, `writing`,
        # stdout.
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
    """Stop accepting requests, stop the commands, and let the last responses be written.

    `reading` and `stdout_closing` may wait for the client permanently. asyncio.run() cancels them,
    and their threads do not keep the process from exiting.
    """
    # First, so that no later request starts a command that nothing would stop.
    await to_server.aclose()
    # Then, while `serving` and `writing` still run: they send the responses of these commands.
    await runner.stop_all()
    # Both tasks may run longer, for example if the client does not read. They are cancelled then.
    await asyncio.wait([serving, writing], timeout=_FLUSH_SECONDS)


class _StdinMessages:
    """The messages of the client, which a thread reads from stdin.

    Only a thread can wait for a pipe, a terminal and a file alike. It puts the lines into a queue.
    It creates no coroutines, because the event loop may be closed before it could run them.
    """

    def __init__(self, stdin: int, loop: asyncio.AbstractEventLoop) -> None:
        self._stdin = stdin
        self._loop = loop
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._free_slots = Semaphore(_MAX_WAITING_MESSAGES)

    async def forward(self, to_server: Any, responses: Any) -> None:
        """Send each message to the server until stdin ends. Respond to lines that are not one."""
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
        """Put each line into the queue, and None at the end."""
        with open(self._stdin, "rb", closefd=False) as stdin:
            while line := stdin.readline(_MAX_LINE_BYTES):
                if _is_cut(line):
                    # A line that is too long is no message. An empty line causes one error.
                    _skip_rest_of_line(stdin)
                    line = b""
                self._free_slots.acquire()
                self._put(line)
        self._put(None)

    def _put(self, line: bytes | None) -> None:
        """Put a line into the queue of the event loop, from the thread."""
        # RuntimeError: the server has exited meanwhile, so the loop is closed.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._lines.put_nowait, line)


def _is_cut(line: bytes) -> bool:
    """Return whether a line is so long that only its beginning was read."""
    return len(line) == _MAX_LINE_BYTES and not line.endswith(b"\n")


def _skip_rest_of_line(file: BinaryIO) -> None:
    while _is_cut(file.readline(_MAX_LINE_BYTES)):
        pass


def parse_message(line: bytes) -> types.JSONRPCMessage:
    """Return the message in a line, or the error to respond with.

    The error has the id of the message if that can be read. A client that gets no error with its id
    waits until its own timeout.
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
    # The SDK ignores an id such as null or 1.5, and takes the request for a notification. Without
    # an error, its sender would get no response.
    if message is not None and "id" not in content:
        return message
    message_id = _id_of(content)
    is_request = message_id is not None and isinstance(content.get("method"), str)
    if is_request and not isinstance(content.get("params", {}), dict):
        return _error(message_id, types.INVALID_PARAMS, "The params must be an object.")
    return _error(message_id, types.INVALID_REQUEST, "This is not a message of JSON-RPC 2.0.")


def _id_of(content: Any) -> int | str | None:
    """Return the id of a message. Return None if it has none that a response can repeat."""
    if not isinstance(content, dict):
        return None
    message_id = content.get("id")
    is_number = isinstance(message_id, int) and not isinstance(message_id, bool)
    # A text with half of a surrogate pair is valid JSON, but cannot be encoded in a response.
    # `isprintable` is false for such a text. It is false for control characters too.
    is_text = isinstance(message_id, str) and message_id.isprintable()
    if is_number or is_text:
        return message_id
    return None


def _error(message_id: int | str | None, code: int, text: str) -> types.JSONRPCError:
    error = types.ErrorData(code=code, message=text)
    return types.JSONRPCError(jsonrpc="2.0", id=message_id, error=error)


async def _write_messages(stdout: int, from_server: Any) -> None:
    """Write each message to stdout, until nothing reads it any more."""
    # If stdout cannot be written, whatever the reason, the client cannot be told. It gets no more
    # messages, and the server exits.
    with suppress(OSError):
        async for item in from_server:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            # In a thread: a client that does not read must not keep the server from exiting.
            await in_thread(partial(write_all, stdout, f"{line}\n".encode()))


def _wait_until_closed(stdout: int) -> None:
    """Wait until nothing can read stdout any more."""
    # The event loop cannot do this: it cannot watch a file, and takes data that a socket receives
    # for its end. With no events registered, poll() returns only on an error or a hang-up.
    poll = select.poll()
    poll.register(stdout, 0)
    poll.poll()
