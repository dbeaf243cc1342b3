"""sampletool/audit/report.py"""

from dataclasses import replace

import pytest

from sampletool.audit.command_line import CommandLine
from sampletool.audit.failure import Failure
from sampletool.audit.probes import Burst, Kill, Stall
from sampletool.audit.report import Findings, Report, forecast
from sampletool.audit.trial import Candidate, Tally
from sampletool.audit.verdict import MEANINGS, judge

_FAILURE = Failure(
    1, code=None, retry_after_seconds=None, names_holder=False, output="locked\nby `x`"
)
_TALLY = Tally(
    claimed=3,
    survived=3,
    silently_lost=0,
    failed_loudly=1,
    hung=0,
    failures=[_FAILURE],
    still_readable=True,
)
_QUIET = replace(_TALLY, failed_loudly=0, failures=[])


@pytest.fixture
def report() -> Report:
    set_command, get_command = (
        CommandLine.parse(text, ()) for text in ("my`tool {key} {value}", "my`tool {key}")
    )
    findings = Findings(
        burst=Burst(bursts=1, runs=4, most_at_once=4, tally=_TALLY),
        stall=Stall(stopped=5, refused_meanwhile=0, hung_meanwhile=0, tally=_QUIET),
        kill=Kill(killed=6, blocked_afterwards=False, tally=_QUIET),
    )
    return judge(Candidate(set_command, get_command, 30), findings)


def test_the_text_says_the_score_first_then_why_then_what_was_seen(report: Report) -> None:
    lines = report.lines()

    assert lines[0] == "## `` 'my`tool' {key} {value} ``: 1 of 3"
    assert lines[1:3] == ["", f"In short: {MEANINGS[1]}."]
    assert "* 1 of 1 failures are not JSON with a code" in lines
    assert "| probe | claimed | survived | lost | failed | hung | seen |" in lines
    counts = "| burst |       3 |        3 |    0 |      1 |    0 |"
    assert f"{counts} up to 4 at once, in burst 1 of 4 runs |" in lines
    assert "### Not tested" in lines
    assert "### Inconclusive" not in lines


def test_what_others_wrote_stays_code(report: Report) -> None:
    lines = report.lines()

    assert "* `` exit code 1: locked by `x` ``" in lines
    assert lines[-6:-2] == ["", "The loop:", "", "    while read -r key value; do"]
    assert lines[-1] == "    done"


def test_without_a_failure_or_a_fault_it_says_so(report: Report) -> None:
    quiet = replace(report, score=3, because=[], failed_loudly=0, advice=None)

    assert "No run failed." in quiet.lines()
    assert not any("Advice" in line for line in quiet.lines())


def test_a_forecast_shows_the_words(report: Report) -> None:
    planned = replace(report, probes=None)

    assert planned.lines()[2:] == [
        "* `` ['my`tool', '{key}', '{value}'] ``",
        "* `` ['my`tool', '{key}'] ``",
    ]


def test_a_report_that_people_paste_contains_no_passwords() -> None:
    set_text = "env TOKEN=hunter2 tool --url postgres://me:hunter2@db/x {key} {value}"
    get_text = "tool --password=hunter2 {key}"
    candidate = Candidate(CommandLine.parse(set_text, ()), CommandLine.parse(get_text, ()), 30)

    shown = forecast(candidate)

    assert "hunter2" not in f"{shown.command} {shown.set_words} {shown.get_words}"
    assert "{key} {value}" in shown.command
