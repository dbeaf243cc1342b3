"""sampletool/kit/contract/help_page.py: a help page fits the terminal.

Its lines are broken between words only.
"""

from typing import Any

from sampletool.kit.contract.help_page import (
    CommandSection,
    Item,
    ItemSection,
    Page,
    TextSection,
    option_item,
)


def lines_of(item: Item, width: int = 40) -> list[str]:
    """Return the rows of one item, next to another one whose name has five characters."""
    section = ItemSection("Options", [Item("--all", "All."), item])
    return section.lines(width)[1:]


def described(**facts: Any) -> dict[str, Any]:
    """Return the description of an option, as the manifest has it."""
    return {"name": "limit", "flags": ["--limit"], "required": False, **facts}


def test_the_parts_of_a_page_follow_one_another_with_empty_lines_between_them() -> None:
    page = Page(
        usage="tool get [OPTIONS] KEY",
        about="Show a value.\n\nSecond paragraph.",
        sections=[
            ItemSection("Arguments", [Item("KEY", "Key to show.")]),
            CommandSection("Examples", ["tool get jobs"]),
            TextSection("Global options", "--json, --format"),
        ],
        footer=("Read more.",),
    )

    assert page.text(80, bold=False).split("\n") == [
        "Usage: tool get [OPTIONS] KEY",
        "",
        "  Show a value.",
        "",
        "  Second paragraph.",
        "",
        "Arguments:",
        "  KEY  Key to show.",
        "",
        "Examples:",
        "  tool get jobs",
        "",
        "Global options:",
        "  --json, --format",
        "",
        "Read more.",
    ]


def test_a_section_without_items_is_not_shown() -> None:
    page = Page(usage="", about="Text.", sections=[ItemSection("Options", [])])

    assert page.text(80, bold=False) == "Text."


def test_headings_are_bold_and_take_up_no_more_room_then() -> None:
    usage = "tool get [OPTIONS] KEY AND MORE"
    page = Page(usage=usage, about="", sections=[CommandSection("Examples", ["x"])])

    bold = page.text(len(f"Usage: {usage}"), bold=True)

    assert bold == f"\x1b[1mUsage:\x1b[0m {usage}\n\n\x1b[1mExamples:\x1b[0m\n  x"


def test_a_page_is_not_wider_than_people_like_to_read() -> None:
    page = Page(usage="", about="word " * 100, sections=[])

    assert max(len(line) for line in page.text(500, bold=False).split("\n")) <= 110


def test_a_long_meaning_is_broken_next_to_its_name() -> None:
    assert lines_of(Item("--few", "Return few of the items that there are.")) == [
        "  --few  Return few of the items that",
        "         there are.",
    ]


def test_a_name_without_room_next_to_it_has_a_line_of_its_own() -> None:
    lines = lines_of(Item("--a-name-of-many-words TEXT", "Name it."))

    assert lines[0] == "  --a-name-of-many-words TEXT"
    assert lines[1].strip() == "Name it."


def test_a_note_is_on_the_last_line_if_it_fits_and_whole_on_the_next_otherwise() -> None:
    short = lines_of(Item("--few", "Few.", note="[default: 1]"))
    long = lines_of(Item("--few", "Return few items.", note="[default: 1; 1 to 10000]"))

    assert short == ["  --few  Few. [default: 1]"]
    assert long == ["  --few  Return few items.", "         [default: 1; 1 to 10000]"]


def test_the_note_of_an_option_has_its_default_and_its_limits() -> None:
    assert option_item(described()).note == ""
    assert option_item(described(default=100)).note == "[default: 100]"
    assert option_item(described(default=0)).note == "[default: 0]"
    assert option_item(described(minimum=1)).note == "[at least 1]"
    assert option_item(described(default=1, minimum=1, maximum=8)).note == "[default: 1; 1 to 8]"
    assert option_item(described(default=1, shown_default="all")).note == "[default: all]"
    assert option_item(described() | {"required": True}).note == "[required]"


def test_the_short_flag_of_an_option_comes_first() -> None:
    option = described(flags=["--cwd", "-C"], metavar="DIR", help="Run here.")

    assert option_item(option) == Item("-C, --cwd DIR", "Run here.")


def test_a_deprecated_flag_is_only_in_the_note_unless_it_is_the_only_one() -> None:
    renamed = described(
        flags=["--limit", "--max"],
        help="Return few.",
        deprecated_flags={"--max": "Use --limit."},
    )
    withdrawn = described(deprecated_flags={"--limit": "Nothing is cut any more."})

    assert option_item(renamed) == Item("--limit", "Return few.", "[deprecated: --max]")
    assert option_item(withdrawn) == Item("--limit", "Deprecated. Nothing is cut any more.")


def test_a_note_after_a_meaning_of_several_lines_keeps_all_of_them() -> None:
    meaning = "Return few of the items that there are."

    lines = lines_of(Item("--few", meaning, note="[default: 1]"))

    assert lines == [
        "  --few  Return few of the items that",
        "         there are. [default: 1]",
    ]


def test_an_item_without_a_meaning_is_only_its_name() -> None:
    assert lines_of(Item("--few", "")) == ["  --few"]
    assert lines_of(Item("--few", "", note="[required]")) == ["  --few  [required]"]


def test_a_usage_line_that_is_too_long_continues_with_an_indent() -> None:
    page = Page(usage="tool get [OPTIONS] KEY AND MANY MORE WORDS", about="", sections=[])

    assert page.text(30, bold=False).split("\n") == [
        "Usage: tool get [OPTIONS] KEY",
        "    AND MANY MORE WORDS",
    ]


def test_a_paragraph_on_a_page_about_no_command_has_no_indent() -> None:
    page = Page(usage="", about="First words.", sections=[TextSection("More", "Other words.")])

    assert page.text(40, bold=False) == "First words.\n\nMore:\n  Other words."


def test_a_name_takes_up_at_most_half_of_a_narrow_page() -> None:
    section = ItemSection("Options", [Item("--a-long-name", "Name it."), Item("-b", "Be.")])

    assert section.lines(24) == [
        "  --a-long-name",
        "                Name it.",
        "  -b            Be.",
    ]


def test_an_argument_shows_by_its_brackets_whether_it_is_required() -> None:
    argument = {"name": "key", "metavar": "KEY", "required": True, "help": "Key to show."}

    assert option_item(argument) == Item("KEY", "Key to show.")
