"""sampletool/audit/report.py"""

from dataclasses import replace

import pytest

from sampletool.audit.advice import Advice
from sampletool.audit.command_line import CommandLine
from sampletool.audit.failure import Failure
from sampletool.audit.probes import Burst, Kill, Stall
from sampletool.audit.report import Findings, Report, forecast
from sampletool.audit.trial import Candidate, Tally
from sampletool.audit.verdict import MEANINGS, judge
from sampletool.kit.testing.failing import outcome_of

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
    candidate = Candidate(set_command, get_command, 30)
    verdict = outcome_of(lambda: judge(candidate, findings))
    assert isinstance(verdict, Report), repr(verdict)
    # These numbers would change the score.
    shown = replace(
        findings,
        burst=replace(
            findings.burst,
            tally=replace(_TALLY, survived=2, silently_lost=1, hung=5),
        ),
        stall=replace(findings.stall, refused_meanwhile=2, hung_meanwhile=3),
    )
    return replace(verdict, probes=shown)


def test_the_text_says_the_score_first_then_why_then_what_was_seen(report: Report) -> None:
    advice = Advice(rules=["Take turns."], loop=["while", "done"])
    short = replace(report, not_tested=["a power cut"], advice=advice)

    assert short.lines() == [
        "## `` 'my`tool' {key} {value} ``: 1 of 3",
        "",
        f"In short: {MEANINGS[1]}.",
        "",
        "* 1 of 1 failures are not JSON with a code",
        "* 1 of 1 failures do not say when to retry",
        "",
        "| probe | claimed | survived | lost | failed | hung | seen |",
        "| ----- | ------: | -------: | ---: | -----: | ---: | ---- |",
        "| burst |       3 |        2 |    1 |      1 |    5 | "
        "up to 4 at once, in burst 1 of 4 runs |",
        "| stall |       3 |        3 |    0 |      0 |    0 | "
        "5 stopped; meanwhile 2 refused, 3 hung |",
        "| kill  |       3 |        3 |    0 |      0 |    0 | "
        "6 killed; afterwards others succeeded |",
        "",
        "Of 1 failures, 0 are JSON with a code, 0 say when to retry, and 0 name the holder.",
        "",
        "* `` exit code 1: locked by `x` ``",
        "",
        "### Not tested",
        "",
        "* a power cut",
        "",
        "### Advice for callers",
        "",
        "* Take turns.",
        "",
        "The loop:",
        "",
        "    while",
        "    done",
    ]


def test_a_probe_that_could_not_show_anything_has_a_heading(report: Report) -> None:
    lines = replace(report, inconclusive=["stall: nothing was stopped"]).lines()

    start = lines.index("### Inconclusive")
    assert lines[start - 1 : start + 3] == [
        *("", "### Inconclusive", "", "* stall: nothing was stopped")
    ]


def test_after_a_kill_that_blocks_all_the_table_says_so() -> None:
    kill = Kill(killed=6, blocked_afterwards=True, tally=_QUIET)

    assert kill.summary() == "6 killed; afterwards no other run succeeded"


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

    assert planned.lines() == [
        "Would run, without a shell:",
        "",
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
