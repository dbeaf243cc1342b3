"""The pictures."""

import os
import pty
import re
import subprocess
import sys
import termios
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from sampletool.kit.contract.table import laid_out
from sampletool.lab.draw import legend, terminal_width, timeline
from sampletool.lab.recording import Event, Recording
from sampletool.lab.svg import svg

RUN = Recording(
    "lost",
    "naive",
    ("A", "B"),
    "file",
    "A1 B1 A2 B2",
    "broken",
    "A is lost.",
    (),
    (
        Event(1, "A", 1, "lock", "done", "x", holds=("A",)),
        Event(2, "B", 1, "lock", "blocked", "x", holds=("A",), waiting=("B",)),
        Event(3, "A", 2, "write", "done", "x A", waiting=("B",), over=True),
        Event(4, "B", 1, "lock", "resumed", "<B>\x1b[31m", holds=("B",), note="A is gone"),
    ),
)


def test_a_timeline_has_a_lane_for_each_worker_and_one_for_what_they_share() -> None:
    assert timeline(RUN) == [
        "       A         B                   file",
        "  1  ┌ lock      ·                   x",
        "  2  │         ░ lock: has to wait   x",
        "  3  └ write   ░                     x A",
        "  4            ┌ lock: has it now    <B>\\x1b[31m   <== A is gone",
    ]


def test_what_does_not_fit_goes_on_below_between_words() -> None:
    wide = replace(
        RUN, events=(*RUN.events[:3], replace(RUN.events[3], state="a long state of many words"))
    )

    drawn = timeline(wide, 40)

    assert max(map(len, drawn)) <= 40
    assert drawn[2:6] == [
        "  2  │         ░ lock: has    x",
        "     │         ░ to wait",
        "  3  └ write   ░              x A",
        "  4            ┌ lock: has    a long",
    ]
    assert "words" in " ".join(drawn).split()


def test_the_legend_has_the_signs_that_are_used_and_fits() -> None:
    struck = replace(RUN, schedule="A1 A!", events=RUN.events[:1])

    first, second = legend([RUN])
    assert first == "Signs: A1 is A's first step, ┌ │ └ holds the lock, ░ has to wait,"
    assert second == "· stands still, <== marks what is wrong"
    assert "A! is kill -9" in " ".join(legend([struck], 40))
    assert "░" not in " ".join(legend([struck]))
    assert max(map(len, legend([RUN], 40))) <= 40


def test_the_coloured_picture_is_the_plain_one_with_colour() -> None:
    plain, coloured = (laid_out(timeline(RUN), 80, colour=colour) for colour in (False, True))

    assert plain == [line.replace("\x1b", r"\x1b") for line in timeline(RUN)]
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in coloured] == plain
    assert [line.startswith("\x1b[31m") for line in coloured] == [False, False, False, False, True]


def test_the_svg_is_well_formed_needs_nothing_and_knows_the_dark() -> None:
    text = svg([RUN, RUN])

    ElementTree.fromstring(text)  # noqa: S314 - our own
    assert "prefers-color-scheme:dark" in text
    assert re.findall(r"https?://[^\"]+", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"@import|url\((?!#)|<script|<image|\bhref", text)


def test_no_label_of_the_svg_leaves_the_picture_and_who_holds_or_waits_has_a_bar() -> None:
    root = ElementTree.fromstring(svg([RUN]))  # noqa: S314
    name = "{http://www.w3.org/2000/svg}"
    ends = {
        e.text: float(e.attrib["x"]) + float(e.attrib["textLength"])
        for e in root.iter(f"{name}text")
    }
    bars = [e.attrib["class"] for e in root.iter(f"{name}rect")]

    assert max(ends.values()) < float(root.attrib["width"])
    assert {
        "lock",
        "lock: has to wait",
        "write",
        "lock: has it now",
        "<== A is gone",
    } <= ends.keys()
    assert (bars.count("hold"), bars.count("wait")) == (4 + 3, 2 + 1), (
        "in the picture, and in its legend"
    )


def test_the_svg_says_in_words_what_it_shows() -> None:
    root = ElementTree.fromstring(svg([RUN]))  # noqa: S314 - our own
    described = root.findtext("{http://www.w3.org/2000/svg}desc")

    assert described is not None
    assert "B lock: has to wait, then file holds x" in described
    assert "A is gone" in described


def test_the_picture_is_as_wide_as_the_terminal_although_stderr_goes_to_a_file() -> None:
    environ = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    program = "from sampletool.lab.draw import terminal_width; print(terminal_width())"
    main_end, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 132))

    printed = subprocess.check_output(
        [sys.executable, "-c", program], stdin=terminal, stderr=subprocess.DEVNULL, env=environ
    )

    os.close(terminal)
    os.close(main_end)
    assert int(printed) == 132


def test_the_width_that_the_caller_names_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "64")
    assert terminal_width() == 64

    monkeypatch.setenv("COLUMNS", "9")
    assert terminal_width() == 40, "a narrow terminal wraps the lines itself"
