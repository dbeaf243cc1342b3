"""sampletool/kit/work/progress.py: events for programs, lines and a live line for people."""

import json
import signal
from typing import Any

import pytest

from sampletool.kit.safety.errors import DeadlineExceeded, Interrupted
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.console import on_terminal
from sampletool.kit.testing.probe import probe_command_line, start_probe
from sampletool.kit.testing.tool import Tool, ended
from sampletool.kit.work.progress import Progress

_CLEAR_LINE = "\r\x1b[K"
MOMENT = 0.001


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Screen(Signals):
    """The terminal, which is written to by way of the signals."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: list[str] = []

    def write(self, descriptor: int, content: bytes) -> bool:
        self.drawn.append(content.decode())
        return True


class Reader:
    """Somebody who wants to know how far a command has come."""

    command = "item.import"

    def __init__(self, *, is_watched: bool = False) -> None:
        self.signals = Screen()
        self.is_watched = is_watched
        self.events: list[dict[str, Any]] = []
        self.lines: list[str] = []

    def emit(self, event: dict[str, Any]) -> None:
        self.events.append(event)

    def progress(self, line: str) -> None:
        self.lines.append(line)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_each_item_is_an_event_and_a_line(clock: Clock) -> None:
    reader = Reader()

    with Progress(reader, "file", total=2, clock=clock) as progress:
        progress.start("a.csv", reason="it is new")
        clock.now += 1.26
        progress.finish("a.csv", "not_imported", result={"rows": 3})
        progress.finish("b.csv", "up_to_date")

    assert reader.lines == [
        "a.csv: started (it is new)",
        "a.csv: not imported in 1.3 s",
        "b.csv: up to date",
    ]
    assert reader.events == [
        {"event": "file_started", "name": "a.csv", "reason": "it is new"},
        {
            "event": "file_done",
            "name": "a.csv",
            "status": "not_imported",
            "done": 1,
            "total": 2,
            "file": {"rows": 3},
            "seconds": 1.26,
        },
        {"event": "file_done", "name": "b.csv", "status": "up_to_date", "done": 2, "total": 2},
    ]


@pytest.mark.parametrize(
    ("silent_seconds", "expected"), [(1 - MOMENT, []), (1 + MOMENT, ["heartbeat"])]
)
def test_a_heartbeat_follows_a_second_of_silence(
    clock: Clock, silent_seconds: float, expected: list[str]
) -> None:
    reader = Reader()
    progress = Progress(reader, "file", total=4, clock=clock)

    clock.now += silent_seconds
    progress.beat()
    progress.beat()

    assert [event["event"] for event in reader.events] == expected


def test_a_heartbeat_has_what_is_running_and_what_is_done(clock: Clock) -> None:
    reader = Reader()
    progress = Progress(reader, "file", total=4, done=1, clock=clock)
    progress.set_running(["a.csv", "b.csv"])
    progress.advance(2)

    clock.now += 1
    progress.beat()

    assert reader.events == [
        {"event": "heartbeat", "running": ["a.csv", "b.csv"], "done": 3, "total": 4}
    ]


def test_an_event_puts_off_the_heartbeat(clock: Clock) -> None:
    reader = Reader()
    progress = Progress(reader, "file", total=4, clock=clock)

    clock.now += 0.9
    progress.start("a.csv")
    clock.now += 0.9
    progress.beat()

    assert [event["event"] for event in reader.events] == ["file_started"]
    assert progress.seconds_to_heartbeat() == pytest.approx(0.1)


def test_a_command_that_has_to_stop_stops_at_the_next_beat(clock: Clock) -> None:
    interrupted = Reader()
    interrupted.signals.receive(signal.SIGTERM)
    late = Reader()
    late.signals.limit(0)

    with pytest.raises(Interrupted):
        Progress(interrupted, "file", total=1, clock=clock).beat()
    with pytest.raises(DeadlineExceeded):
        Progress(late, "file", total=1, clock=clock).beat()


# The live line


def test_the_live_line_shows_the_share_and_for_how_long_each_item_has_run(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    reader = Reader(is_watched=True)
    progress = Progress(reader, "file", total=4, done=1, clock=clock)
    progress.set_running(["data/a.csv"])

    clock.now += 2.9
    progress.set_running(["data/a.csv", "b\x1b[2J"])
    progress.beat()

    assert reader.signals.drawn == [
        f"{_CLEAR_LINE}item.import [########                      ]  25% a.csv 2 s, b\\x1b[2J 0 s"
    ]


@pytest.mark.parametrize(("pause_seconds", "count"), [(0.1 - MOMENT, 1), (0.1 + MOMENT, 2)])
def test_the_live_line_is_drawn_at_most_ten_times_in_a_second(
    clock: Clock, pause_seconds: float, count: int
) -> None:
    reader = Reader(is_watched=True)
    progress = Progress(reader, "file", total=4, clock=clock)

    progress.beat()
    clock.now += pause_seconds
    progress.beat()

    assert len(reader.signals.drawn) == count


def test_the_live_line_is_narrower_than_the_terminal(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    reader = Reader(is_watched=True)

    Progress(reader, "file", total=4, clock=clock).beat()

    assert len(reader.signals.drawn[0].removeprefix(_CLEAR_LINE)) == 39


def test_the_live_line_is_cleared_before_a_line_and_at_the_end(clock: Clock) -> None:
    reader = Reader(is_watched=True)

    with Progress(reader, "file", total=4, clock=clock) as progress:
        progress.beat()
        progress.start("a.csv")
        progress.beat()

    first, cleared_by_line, second, cleared_at_end = reader.signals.drawn
    assert cleared_by_line == cleared_at_end == _CLEAR_LINE
    assert first != _CLEAR_LINE != second


def test_a_total_that_was_too_low_is_shown_as_100_percent(clock: Clock) -> None:
    reader = Reader(is_watched=True)

    Progress(reader, "file", total=0, done=7, clock=clock).beat()

    assert "[##############################] 100%" in reader.signals.drawn[0]


# In a command


_IMPORT = """
from sampletool.kit.work.progress import Progress

with Progress(context, "file", total=4, done=1) as progress:
    progress.set_running(["a.csv"])
    progress.beat()
    progress.start("b.csv")
return Result("done")
"""


def test_after_the_command_nothing_of_the_live_line_is_left(tool: Tool) -> None:
    environ = {**tool.environ, "TERM": "xterm", "COLUMNS": "80"}

    output = on_terminal(probe_command_line(_IMPORT), tool.cwd, environ, stderr_too=True)

    live_line = "probe [########                      ]  25% a.csv 0 s"
    assert output == f"{_CLEAR_LINE}{live_line}{_CLEAR_LINE}b.csv: started\ndone\n"


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"TERM": "xterm", "CI": "true"}])
def test_without_somebody_who_watches_there_is_no_live_line(
    tool: Tool, environ: dict[str, str]
) -> None:
    output = on_terminal(
        probe_command_line(_IMPORT), tool.cwd, {**tool.environ, **environ}, stderr_too=True
    )

    assert _CLEAR_LINE not in output
    assert "b.csv: started\n" in output


def test_with_quiet_people_see_no_progress(tool: Tool) -> None:
    environ = {**tool.environ, "TERM": "xterm"}

    output = on_terminal(
        [*probe_command_line(_IMPORT), "--quiet"], tool.cwd, environ, stderr_too=True
    )

    assert _CLEAR_LINE not in output
    assert "started" not in output


def test_json_lines_are_the_events_and_then_the_response(tool: Tool) -> None:
    ran = ended(start_probe(tool, _IMPORT, "--format", "jsonl"))

    event, response = [json.loads(line) for line in ran.stdout.splitlines()]
    assert event == {"event": "file_started", "name": "b.csv"}
    assert response["ok"]
