"""What a tool.toml declares, and everything that is wrong with it at once."""

import tomllib

import pytest

from sampletool.kit.contract.errors import InvalidValues
from sampletool.sample.errors import TargetNotFound
from sampletool.sample.job import Job
from sampletool.sample.needs import with_needs
from sampletool.sample.workspace import choose, read_jobs

_GOOD = """
[target.a]
run = ["true"]
outputs = ["x"]
[target.b]
run = ["true"]
outputs = ["y"]
needs = ["a"]
[check.c]
run = ["true"]
needs = ["b"]
"""


def mistakes(text: str) -> list[str]:
    with pytest.raises(InvalidValues) as caught:
        read_jobs(tomllib.loads(text))
    return [mistake.message for mistake in caught.value.mistakes]


def test_targets_and_checks_are_read() -> None:
    jobs = read_jobs(tomllib.loads(_GOOD))

    assert jobs.targets["b"] == Job("b", ("true",), (), ("y",), ("a",), {})
    assert jobs.checks["c"].needs == ("b",)


def test_what_is_needed_comes_first() -> None:
    targets = read_jobs(tomllib.loads(_GOOD)).targets

    assert [job.name for job in with_needs(targets, ["b"])] == ["a", "b"]


def test_all_that_is_wrong_is_told_at_once() -> None:
    found = mistakes(
        """
        [target.a]
        run = "true"
        outputs = ["../x", "/etc/x", ".tool/x", "out/x"]
        [target.b]
        run = ["true"]
        outputs = ["y"]
        needs = ["aa", "d"]
        imputs = ["z"]
        [target.d]
        run = ["true"]
        [chekc.f]
        [check.e]
        run = ["true"]
        outputs = ["z"]
        env = { A = 1 }
        """
    )

    for part in (
        "target.a: run has to be a list",
        "'../x' leaves",
        "'/etc/x' leaves",
        "'.tool/x' is in a place of the tool's own",
        "'out/x' is in a place of the tool's own",
        "target.b: unknown member 'imputs' (Did you mean 'inputs'",
        "[chekc] is not known here",
        "target.d: outputs is missing",
        "check.e: a check has no outputs",
        "check.e: env has to be",
    ):
        assert any(part in message for message in found), (part, found)


@pytest.mark.parametrize(
    ("needs", "ring"), [({"a": "a"}, "a -> a"), ({"a": "b", "b": "c", "c": "a"}, "a -> b -> c -> a")]
)
def test_targets_that_need_each_other_are_told_as_a_ring(needs: dict[str, str], ring: str) -> None:
    text = "".join(f'[target.{n}]\nrun = ["true"]\noutputs = ["x"]\nneeds = ["{need}"]\n' for n, need in needs.items())

    assert mistakes(text) == [f"these targets need each other: {ring}"]


def test_a_misspelt_need_has_a_hint() -> None:
    assert mistakes(_GOOD.replace('needs = ["a"]', 'needs = ["aa"]')) == [
        "target.b: it needs 'aa', which is no target (Did you mean 'a'?)"
    ]


def test_a_long_chain_of_needs_is_as_good_as_a_short_one() -> None:
    links = [f'[target.t{n}]\nrun = ["true"]\noutputs = ["x"]\nneeds = ["t{n + 1}"]\n' for n in range(2000)]
    end = '[target.t2000]\nrun = ["true"]\noutputs = ["x"]\n'

    targets = read_jobs(tomllib.loads("".join(links) + end)).targets

    assert [job.name for job in with_needs(targets, ["t0"])][:2] == ["t2000", "t1999"]


def test_names_that_are_not_there_are_told_with_hints() -> None:
    jobs = read_jobs(tomllib.loads(_GOOD))

    assert choose("target", [], jobs.targets) == ["a", "b"]
    with pytest.raises(TargetNotFound) as caught:
        choose("target", ["bb", "zzz"], jobs.targets)
    assert caught.value.context["names"] == ["bb", "zzz"]
