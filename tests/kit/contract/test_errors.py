"""Every expected failure says itself, and keeps its promise about retrying."""

import ast
import errno
import inspect
import os
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from string import Formatter

import pytest

from sampletool.kit import contract
from sampletool.kit.contract.errors import INTERRUPTED, ExitStatus, ToolError, did_you_mean
from sampletool.kit.contract.file_errors import PathError, from_os_error
from sampletool.kit.contract.library_errors import to_tool_error
from sampletool.kit.parts import offered
from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.safety.errors import LockTimeout
from sampletool.kit.safety.holder import Holder, Owners

PACKAGE_FOLDER = Path(contract.__path__[0]).parents[1]


def errors_of_the_tool(above: type[ToolError] = ToolError) -> list[type[ToolError]]:
    """Those of the kit and of each part, from the files that have to hold them."""
    for module in iter_modules(contract.__path__, f"{contract.__name__}."):
        import_module(module.name)
    list(offered("errors"))
    below = [kind for kind in above.__subclasses__() if kind.__module__.startswith(f"{PACKAGE}.")]
    return below + [error for kind in below for error in errors_of_the_tool(kind)]


def test_codes_are_unique_and_shouted() -> None:
    codes = [kind.code for kind in errors_of_the_tool() if "code" in vars(kind)]

    assert len(codes) == len(set(codes)) > 15
    assert all(code == code.upper().replace("-", "_") for code in codes)


class Lost(ToolError):
    """A thing is lost."""

    code, exit_status = "LOST", ExitStatus.NOT_FOUND
    sentence = "{things} of {owner!r} are lost."
    advice = "`{PROGRAM} find` finds them."


def test_an_error_says_its_facts_and_carries_them_to_the_caller() -> None:
    lost = Lost(things=["a", "b"], owner="ann", since=None)

    assert (lost.message, lost.suggestion) == ("a, b of 'ann' are lost.", f"`{PROGRAM} find` finds them.")
    assert lost.describe() == {
        "code": "LOST", "message": lost.message, "suggestion": lost.suggestion, "retryable": False, "exit_code": 5,
        "context": {"things": ["a", "b"], "owner": "ann"},
    }  # fmt: skip
    assert str(lost) == lost.message


def test_one_failure_may_have_an_advice_of_its_own() -> None:
    assert Lost(suggestion="Look below.", things=["a"], owner="ann").suggestion == "Look below."
    assert Lost(suggestion="", things=["a"], owner="ann").suggestion == f"`{PROGRAM} find` finds them."


def test_what_a_fact_holds_is_never_taken_for_a_form() -> None:
    assert Lost(things=["{owner}"], owner="{things}").message == "{owner} of '{things}' are lost."


def test_a_sentence_names_ten_and_the_context_all() -> None:
    lost = Lost(things=[str(n) for n in range(12)], owner="ann")

    assert lost.message.startswith("0, 1, 2, 3, 4, 5, 6, 7, 8, 9, … of")
    assert len(lost.context["things"]) == 12


def test_every_error_is_raised_with_the_facts_that_its_sentence_names() -> None:
    """A fact that is missing would turn an expected failure into a crash, where it is raised and not before."""
    kinds = {kind.__name__: kind for kind in errors_of_the_tool()}
    raised = 0
    for file in PACKAGE_FOLDER.rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in kinds:
                kind = kinds[call.func.id]
                given = {keyword.arg for keyword in call.keywords}
                given |= set([*inspect.signature(kind).parameters][: len(call.args)])
                advice = "" if "suggestion" in given and not kind.advice else kind.advice
                texts = ("" if "message" in given else kind.sentence, advice)
                named = {field for text in texts for _, field, _, _ in Formatter().parse(text) if field}
                if kind.__init__ in (ToolError.__init__, PathError.__init__):
                    missing = named - given - {"PROGRAM", "PACKAGE", "WORKSPACE_FILE", "directory"}
                    assert not missing, f"{file.name}:{call.lineno}: {call.func.id} is raised without {missing}"
                    assert kind.advice or "suggestion" in given, f"{file.name}:{call.lineno}: no advice"
                    raised += 1

    assert raised > 10


def test_the_exit_statuses_are_the_ones_that_scripts_know() -> None:
    assert {name: number for name, number in vars(ExitStatus).items() if name.isupper()} == {
        "OK": 0, "INTERNAL": 1, "USAGE": 2, "PARTIAL": 3, "PRECONDITION": 4, "NOT_FOUND": 5, "CONFLICT": 6,
        "PERMISSION": 7, "AUTH": 8, "TIMEOUT": 10, "UNAVAILABLE": 12, "LOCK_HELD": 75,
    }  # fmt: skip
    assert INTERRUPTED == (129, 130, 131, 143)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "NO_SPACE"),
        (errno.EDQUOT, "NO_SPACE"),
        (errno.EROFS, "READ_ONLY"),
        (errno.EACCES, "PERMISSION_DENIED"),
        (errno.ENOENT, "FILE_NOT_FOUND"),
        (errno.EISDIR, "UNSAFE_PATH"),
        (errno.ELOOP, "UNSAFE_PATH"),
        (errno.EIO, "IO_ERROR"),
    ],
)
def test_what_the_system_says_is_one_of_ours(number: int, code: str) -> None:
    described = from_os_error(OSError(number, "Reason", "/some/file")).describe()

    assert described["code"] == code
    assert "/some/file" in described["message"]


def test_lock_held_is_honest_about_doubt() -> None:
    def said(*holders: Holder) -> str:
        return to_tool_error(LockTimeout("build", Owners(list(holders)))).message

    assert said() == 'The lock "build" is being taken by another process at this moment.'
    assert said(Holder(12, "running", True, command="build", age_ms=30_000)) == (
        'The lock "build" is held by `tool build` (process 12), which started 30s ago.'
    )
    digest = Holder(12, "running", True, command="note.digest")
    assert said(digest) == 'The lock "build" is held by `tool note digest` (process 12).'
    assert "not verified" in said(Holder(12, "unknown", False, command="build"))
    assert "process 12, which has exited" in said(Holder(12, "orphaned", True, command="build", children=(13,)))


def test_a_path_that_nobody_knows_is_described_in_words_and_not_as_one() -> None:
    full = from_os_error(OSError(errno.ENOSPC, "No space left on device"))

    assert (full.code, full.message, full.context) == (
        "NO_SPACE",
        "There is no space left to write the file.",
        {"reason": "no space left on device"},
    )


def test_a_refusal_names_the_directory_where_something_could_not_be_made() -> None:
    refused = from_os_error(PermissionError(errno.EACCES, "Permission denied", "/w/.tool"))

    assert refused.message == "/w/.tool cannot be read, created or changed: permission denied."
    assert refused.suggestion == "Check the owner and the mode of it, and of /w."


@pytest.mark.parametrize("number", [errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG])
def test_a_path_of_the_wrong_kind_is_refused_with_the_kind(number: int) -> None:
    unsafe = from_os_error(OSError(number, os.strerror(number), "/w/x"))

    assert (unsafe.code, unsafe.message) == ("UNSAFE_PATH", f"/w/x cannot be used: {os.strerror(number).lower()}.")
    assert unsafe.suggestion == "Name another path, or replace what is there."


def test_too_many_open_files_are_no_fault_of_the_disk() -> None:
    assert "ulimit -n" in from_os_error(OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/w/x")).suggestion


def test_did_you_mean_is_silent_where_nothing_is_near() -> None:
    assert did_you_mean("sett", ["set", "get"]) == "Did you mean 'set'?"
    assert did_you_mean("zzz", ["set", "get"]) == ""
