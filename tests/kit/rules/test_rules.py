"""sampletool/kit/testing/rules: a broken rule says what to write, and where to read more."""

import re
from pathlib import Path

import pytest

from sampletool.kit.program import KIT, KIT_DIRECTORY, PACKAGE
from sampletool.kit.testing.rules import test_errors
from tests.kit.ledger import Ledger, RulesRun, command_file

_RULES = Path(KIT_DIRECTORY, "testing", "rules")
_README = Path(KIT_DIRECTORY, "README.md")

_ERRORS = f'''"""Say what can go wrong with books."""

from {KIT}.contract.errors import ExitStatus, ToolError


class Torn(ToolError):
    """A page is torn."""

    code, exit_status = "TORN", ExitStatus.CONFLICT
    sentence = "Page {{number}} is torn."
    advice = "Mend it."


class Ripped(ToolError):
    """A page is ripped."""

    code, exit_status = "TORN", ExitStatus.CONFLICT
    sentence = "A page is ripped"
    advice = "Mend it"


class Lost(ToolError):
    """A page is lost."""

    code, exit_status = "page-lost", ExitStatus.NOT_FOUND
    sentence = "A page is lost."
'''

_ODD_COMMAND = f'''"""Add something."""

from dataclasses import dataclass

import typer

from {KIT}.contract.command_spec import CommandSpec

spec = CommandSpec(effect="nothing", examples=("odd",))


@dataclass(frozen=True)
class Odd:
    """A result."""

    effect: str


def command(ctx: typer.Context) -> Odd:
    """Add something."""
    return Odd("added")
'''


def _break_commands(ledger: Ledger) -> None:
    right = 'effect="nothing", examples=("{0}",)'
    about_too_long = f"Add {'very ' * 20}much."
    ledger.add_command("silent", command_file("Add something", spec=right.format("silent")))
    ledger.add_command("long", command_file(about_too_long, spec=right.format("long")))
    ledger.add_command("log", command_file(spec=right.format("log")))
    untested = command_file(spec=right.format("untested"))
    ledger.add_command("untested", untested, is_tested=False)
    ledger.add_command("rash", command_file(spec='effect="files", examples=("rash",)'))
    destroys = right.format("destroy") + ', destroys="All pages"'
    ledger.add_command("destroy", command_file(spec=destroys))
    ledger.add_command("shy", command_file(spec='effect="nothing"'))
    ledger.add_command("other", command_file(spec=right.format("page add")))
    ledger.add_command("mistyped", command_file(spec=right.format("mistyped --bogus")))
    ledger.add_command("odd", _ODD_COMMAND)


def _break_examples(ledger: Ledger) -> None:
    raising = "from ledger.books.errors import Torn"
    torn = command_file(
        spec='effect="nothing", errors=(Torn,), examples=("fail",)',
        imports=raising,
        body="raise Torn(number=7)",
    )
    ledger.add_command("fail", torn)
    undeclared = command_file(
        spec='effect="nothing", examples=("undeclared",)',
        imports=raising,
        body="raise Torn(number=7)",
    )
    ledger.add_command("undeclared", undeclared)
    writing = command_file(
        spec='effect="nothing", examples=("writing",)',
        body='(context.cwd / "new").touch()',
    )
    ledger.add_command("writing", writing)
    careless = command_file(
        spec='effect="files", examples=("careless",)',
        imports=f"from {KIT}.global_options import DryRunOption",
        parameters=", dry_run: DryRunOption = False",
        body='(context.cwd / "careless").touch()',
    )
    ledger.add_command("careless", careless)
    locking = command_file(
        spec='effect="nothing", examples=("locking",)',
        imports=f"from {KIT}.places import workspace_lock",
        body=('with context.hold(workspace_lock(context.cwd, "ink"), "ink", "exclusive", 1): pass'),
    )
    ledger.add_command("locking", locking)


def _break_errors(ledger: Ledger) -> None:
    ledger.write({"ledger/books/errors.py": _ERRORS})
    raising = command_file(
        spec='effect="nothing", errors=(Torn, Lost), examples=("raising",)',
        imports="from ledger.books.errors import Lost, Torn",
        body="if context is None:\n        raise Torn()\n    if ctx is None:\n        raise Lost()",
    )
    ledger.add_command("raising", raising)
    renaming = command_file(
        spec='effect="nothing", errors=(Ripped,), examples=("renaming",)',
        imports="from ledger.books import errors\nfrom ledger.books.errors import Torn as Ripped",
        body=(
            "if context is None:\n        raise Ripped()\n    if ctx is None:\n"
            "        raise errors.Torn()\n    if ctx is context:\n        raise errors.Torn"
        ),
    )
    ledger.add_command("renaming", renaming)


def _break_settings(ledger: Ledger) -> None:
    ledger.write(
        {
            "ledger/ink/__init__.py": '"""Ink."""\n',
            "ledger/ink/settings.py": (
                '"""Ink."""\n\nimport os\n\n'
                'SETTINGS = {"ink": {"kind": "color", "default": "5", "help": "Ink."},\n'
                '"pages": {"kind": "count", "default": "5", "help": "Pages."}}\n'
            ),
        }
    )


def _break_files_and_pages(ledger: Ledger) -> None:
    ledger.write(
        {
            "ledger/books/utils.py": '"""Anything."""\n',
            "ledger/books/bare.py": "x = 1\n",
            ".gitignore": "__pycache__/\nink\n",
            "docs/books/guide.md": (
                "# Guide\n\n[Nowhere](nowhere.md), `ledger/nothing.py` and __bold__.\n\n"
                "```console\n$ led-ger page add\nremoved\n```\n"
            ),
        }
    )


@pytest.fixture(scope="session")
def broken(tmp_path_factory: pytest.TempPathFactory) -> RulesRun:
    """Run the rules in a project that breaks nearly all of them."""
    ledger = Ledger(tmp_path_factory.mktemp("broken"))
    _break_commands(ledger)
    _break_examples(ledger)
    _break_errors(ledger)
    _break_settings(ledger)
    _break_files_and_pages(ledger)
    return ledger.run_rules()


_COMMANDS = "ledger/books/commands"


# Each row has the test of a rule, what it reports, what to do, and the heading of the how-to.
_BROKEN_RULES: list[tuple[str, list[str], str, str]] = [
    (
        "test_no_two_commands_have_one_name",
        ["ledger/books/commands: both have a command or a group `log`."],
        "Give one of them another name",
        "Commands",
    ),
    (
        "test_each_help_begins_with_a_short_sentence",
        [
            f"{_COMMANDS}/silent.py: the first line of the help does not end with a period",
            f"{_COMMANDS}/long.py: the first line of the help has 109 characters",
        ],
        "with a sentence of at most 72 characters that ends with a period",
        "Commands",
    ),
    (
        "test_each_command_is_run_by_a_test_of_its_part",
        [f"{_COMMANDS}/untested.py: no test below tests/books runs this command."],
        'Write one that calls `tool("item", "add")`, with the name of the command',
        "Commands",
    ),
    (
        "test_a_command_that_changes_something_has_a_dry_run",
        [f'{_COMMANDS}/rash.py: the effect is "files", and there is no --dry-run.'],
        "Give `command` a parameter `dry_run: DryRunOption = False`, and obey it",
        "The spec",
    ),
    (
        "test_what_a_command_destroys_is_a_sentence",
        [
            f"{_COMMANDS}/destroy.py: `destroys` does not end with a period.",
            f'{_COMMANDS}/destroy.py: it `destroys` something, and the effect is "nothing".',
        ],
        "Write a sentence about what users cannot get back, and name the effect",
        "The spec",
    ),
    (
        "test_each_command_has_an_example",
        [f"{_COMMANDS}/shy.py: the spec has no example."],
        "Add one to `examples`",
        "The spec",
    ),
    (
        "test_each_example_is_a_command_line_of_its_command",
        [
            f"{_COMMANDS}/other.py: `page add` does not run `other`.",
            f"{_COMMANDS}/mistyped.py: `mistyped --bogus`: No such option: --bogus.",
        ],
        "Write each example as users type it, but without the name of the program",
        "The spec",
    ),
    (
        "test_the_examples_work",
        [
            f"{_COMMANDS}/fail.py: `fail` fails: Page 7 is torn. [TORN]",
            f'{_COMMANDS}/writing.py: `writing` changes files, and the effect is "nothing".',
            f"{_COMMANDS}/careless.py: `careless` changes files with --dry-run, too.",
            f"{_COMMANDS}/locking.py: `locking` takes the lock `ink`.",
            "the spec of undeclared does not declare",
        ],
        "Correct the example, add the commands that it needs to `before`, or put the files "
        "that it needs into tests/PART/examples/fail",
        "The spec",
    ),
    (
        "test_each_command_returns_a_result_with_lines",
        [f"{_COMMANDS}/odd.py: the result, Odd, has no method `lines`."],
        "Return a frozen dataclass with a method `lines`, which returns what people see",
        "Results",
    ),
    (
        "test_an_effect_in_a_result_is_one_of_the_words_that_programs_know",
        [f"{_COMMANDS}/odd.py: the field `effect` has another type than Effect."],
        "Give the field the type `Effect`, or another name",
        "Results",
    ),
    (
        "test_each_code_belongs_to_one_class",
        ["ledger/books/errors.py: Ripped has the code TORN, which belongs to Torn."],
        "Choose another code, or derive the class from the other one without a code",
        "Errors",
    ),
    (
        "test_each_code_is_in_upper_snake_case",
        ["errors.py: the code 'page-lost' is not in upper case with underscores."],
        "Write the code of an error as in `NOT_ENOUGH`",
        "Errors",
    ),
    (
        "test_each_error_has_a_docstring_and_sentences",
        [
            "ledger/books/errors.py: Ripped: `sentence` does not end with a period.",
            "ledger/books/errors.py: Ripped: `advice` does not end with a period.",
        ],
        "end sentences with a period",
        "Errors",
    ),
    (
        "test_each_error_is_raised_with_the_facts_that_it_names",
        [
            f"{_COMMANDS}/raising.py:27: Torn lacks number.",
            f"{_COMMANDS}/renaming.py:28: Torn lacks number.",
            f"{_COMMANDS}/renaming.py:30: Torn lacks number.",
            f"{_COMMANDS}/renaming.py:32: Torn lacks number.",
        ],
        "Pass each fact in braces as a keyword argument",
        "Errors",
    ),
    (
        "test_each_error_has_a_hint",
        [f"{_COMMANDS}/raising.py:29: Lost has no hint."],
        "Say in `advice` of the class what the user can do",
        "Errors",
    ),
    (
        "test_the_settings_of_each_part_are_complete",
        ["ledger/ink/settings.py: ink: kind must be one of "],
        "Write the setting as in the how-to",
        "Settings",
    ),
    (
        "test_no_two_settings_have_one_name",
        ["ink/settings.py: there is a setting `pages` in ledger/books/settings.py, too."],
        "Give one of them another name",
        "Settings",
    ),
    (
        "test_the_settings_of_a_part_import_nothing",
        ["ledger/ink/settings.py:3: there is an import."],
        "Write `SETTINGS` as a literal",
        "Settings",
    ),
    (
        "test_no_file_has_a_name_that_could_mean_anything",
        ["ledger/books/utils.py: this name says nothing about the content."],
        "Name the file after what it contains",
        "Code",
    ),
    (
        "test_each_file_has_a_docstring",
        ["ledger/books/bare.py: there is no docstring."],
        "Begin the file with a docstring that says what it is for",
        "Code",
    ),
    (
        "test_git_ignores_no_file",
        ["ledger/ink/settings.py: git ignores it because of .gitignore:2:ink."],
        "Begin the pattern in .gitignore with a slash",
        "Code",
    ),
    (
        "test_the_generated_pages_are_current",
        ["docs/reference/index.md: it differs from the code."],
        "Run `make pages`",
        "Pages",
    ),
    (
        "test_each_console_block_prints_what_the_page_shows",
        ["docs/books/guide.md:6: `led-ger page add` prints:\nadded"],
        "Correct the page. Where output differs from run to run, write `...`",
        "Pages",
    ),
    (
        "test_each_link_leads_to_a_file",
        ["docs/books/guide.md: the link leads to nowhere.md, which does not exist."],
        "Correct the link",
        "Pages",
    ),
    (
        "test_each_file_that_a_page_names_exists",
        ["docs/books/guide.md: `ledger/nothing.py` does not exist."],
        "Name the file that the page is about",
        "Pages",
    ),
    (
        "test_no_name_with_underscores_is_shown_as_bold_text",
        ["docs/books/guide.md:3: underscores become bold text."],
        "Put names of files in backticks",
        "Pages",
    ),
]


@pytest.mark.parametrize(
    ("rule", "faults", "what_to_do", "heading"),
    _BROKEN_RULES,
    ids=[rule for rule, *_ in _BROKEN_RULES],
)
def test_a_broken_rule_says_what_to_write_and_where_to_read_more(
    broken: RulesRun, rule: str, faults: list[str], what_to_do: str, heading: str
) -> None:
    failure = broken.failures[rule]

    for fault in faults:
        assert fault in failure
    assert f'{what_to_do} (see "{heading}" in the rules, {_README}).' in failure


def test_only_the_rules_that_are_broken_fail(broken: RulesRun) -> None:
    failed = set(broken.failures)

    assert broken.exit_code == 1
    assert _names_of_rules() - failed == {
        "test_each_command_file_is_complete",
        "test_each_effect_is_one_of_the_words_that_are_described",
        "test_the_effects_of_each_part_are_complete",
        "test_the_effects_of_a_part_import_nothing",
        "test_pyproject_has_what_the_kit_needs",
        "test_the_makefile_includes_the_one_of_the_kit",
    }


def _names_of_rules() -> set[str]:
    names = set()
    for file in _RULES.glob("test_*.py"):
        names.update(re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE))
    return names


def test_a_command_file_that_is_not_complete_is_named(ledger: Ledger) -> None:
    ledger.write({f"{_COMMANDS}/empty.py": '"""Nothing."""\n'})

    ran = ledger.run_rules("-k", "test_commands")

    failure = ran.failures["test_each_command_file_is_complete"]
    assert f"{_COMMANDS}/empty.py does not define spec, command." in failure
    assert 'must define `spec` and `command` (see "Commands" in the rules, ' in failure


def test_all_rules_hold_in_a_project_that_depends_on_the_kit(ledger: Ledger) -> None:
    rules = ledger.run_rules()
    own_tests = ledger.run_pytest()

    assert rules.exit_code == 0, rules.output
    assert "1 passed" in own_tests.stdout


_UNREACHABLE = f'''"""Say what can go wrong with books."""

from {KIT}.contract.errors import ExitStatus, ToolError


class Unreachable(ToolError):
    """The library is unreachable."""

    code, exit_status = "UNREACHABLE", ExitStatus.{{exit_status}}
    sentence = "The library is unreachable."
    advice = "Try again later."
'''


@pytest.mark.parametrize(
    ("exit_status", "declared", "is_accepted"),
    [
        ("UNAVAILABLE", "(Unreachable,)", True),
        ("UNAVAILABLE", "()", False),
        ("CONFLICT", "(Unreachable,)", False),
    ],
)
def test_an_example_may_lack_a_server_if_the_spec_declares_the_error(
    ledger: Ledger, exit_status: str, declared: str, *, is_accepted: bool
) -> None:
    ledger.write({"ledger/books/errors.py": _UNREACHABLE.format(exit_status=exit_status)})
    borrow = command_file(
        spec=f'effect="nothing", errors={declared}, examples=("borrow",)',
        imports="from ledger.books.errors import Unreachable",
        body="raise Unreachable()",
    )
    ledger.add_command("borrow", borrow)

    ran = ledger.run_rules("-k", "test_the_examples_work")

    assert (ran.exit_code == 0) == is_accepted, ran.output


def test_what_a_project_that_contains_the_kit_lacks_is_named(ledger: Ledger) -> None:
    ledger.take_kit_over()
    ledger.write({"Makefile": "all:\n"})

    ran = ledger.run_rules("-k", "test_project or test_commands")

    assert ran.failures.keys() == {
        "test_pyproject_has_what_the_kit_needs",
        "test_the_makefile_includes_the_one_of_the_kit",
    }
    failure = ran.failures["test_pyproject_has_what_the_kit_needs"]
    assert "pyproject.toml: `tool.mypy.strict` lacks True." in failure
    assert 'Add it (see "The project" in the rules, ledger/kit/README.md).' in failure
    makefile_failure = ran.failures["test_the_makefile_includes_the_one_of_the_kit"]
    assert "Add the line `include ledger/kit/kit.mk` (see" in makefile_failure


def test_each_heading_that_a_failure_names_is_in_the_how_to() -> None:
    headings = set()
    for file in _RULES.glob("test_*.py"):
        headings.update(re.findall(r'^_HEADING = "(.+)"$', file.read_text(), re.MULTILINE))
    _, _, rules = _README.read_text().partition("\n## Rules\n")

    assert len(headings) >= 8
    for heading in headings:
        assert f"\n**{heading}**\n" in rules


def test_the_places_where_errors_are_raised_are_found() -> None:
    raised = list(test_errors.raised_errors())

    assert len([each for each in raised if each.has_usual_arguments]) > 10
    assert {each.place.split("/")[0] for each in raised} == {PACKAGE}
