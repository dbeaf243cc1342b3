"""A hostile TOML text is refused before a parser sees it, and no other text is."""

from pathlib import Path

import pytest

from sampletool.kit.safety.errors import InvalidToml
from sampletool.kit.safety.toml_file import parse, read_toml
from sampletool.kit.safety.toml_limits import MAX_TOML_BYTES, check_limits, comments_in
from sampletool.kit.testing.failing import failure_of


def dotted(parts: int, part: str = "a", separator: str = ".") -> str:
    return separator.join([part] * parts)


KEYS = {
    "bare": "{} = 1",
    "bare, indented, in a later line": "x = 1 # {{ =\n\t{} = 1",
    "in a header": "[{}]",
    "in a header of a list of tables": "[[ {} ]]",
    "in braces": "x = {{{} = 1}}",
    "in braces, after another": "x = {{y = '1', {} = 1}}",
    "after a text": 'x = "\\""\n{} = 1',
    "after a literal text": "x = '\\'\n{} = 1",
    "after a text of several lines": 'x = """ " \n\\""" \n"""\n{} = 1',
    "after a text that ends with quotes": 'x = """a"""""\n{} = 1',
    "after a literal text of several lines": "x = '''\n'a' \"\n'''\n{} = 1",
    "after a literal text that ends with quotes": "x = '''a'''''\n{} = 1",
    "after a comment with quotes": '# it\'s """ a\n{} = 1',
    "after lines that end with a carriage return": "x = 1\r\n{} = 1\r\n",
}

NO_KEYS = {
    "a text": 'x = "{}"',
    "a literal text": "x = '{}'",
    "a text of several lines": 'x = """\n{}\n"""',
    "a literal text of several lines": "x = '''\n{}\n'''",
    "a comment": "# {}",
    "a comment after a value": "x = 1 # {}",
    "a part of a key": '"{}" = 1',
    "a text after an escaped quote": 'x = "\\"{}"',
}


@pytest.mark.parametrize("template", KEYS.values(), ids=KEYS)
def test_a_key_of_100_parts_is_read_and_a_longer_one_is_not(template: str) -> None:
    error = failure_of(lambda: check_limits(template.format(dotted(100))))

    assert error is None
    long_key = dotted(101)
    text = template.format(long_key)
    line = text[: text.index(long_key)].count("\n") + 1
    with pytest.raises(ValueError, match=rf"^the key in line {line} has 101 parts \(at most 100\)"):
        check_limits(text)


@pytest.mark.parametrize("separator", [" . ", "\t.\t", ". "])
def test_blanks_around_the_dots_make_no_difference(separator: str) -> None:
    check_limits(dotted(100, separator=separator) + " = 1")

    with pytest.raises(ValueError, match="101 parts"):
        check_limits(dotted(101, separator=separator) + " = 1")


@pytest.mark.parametrize(
    "part",
    ['"a"', "'a'", '"a.b.c"', "'a.b.c'", '"\\"."', '"="', "'[{,#'", '""'],
)
def test_a_quoted_part_counts_once_whatever_is_in_it(part: str) -> None:
    check_limits(dotted(100, part) + " = 1")

    with pytest.raises(ValueError, match="101 parts"):
        check_limits(dotted(101, part) + " = 1")


@pytest.mark.parametrize("template", NO_KEYS.values(), ids=NO_KEYS)
def test_dots_in_texts_and_comments_are_not_counted(template: str) -> None:
    text = template.format(dotted(5000))

    check_limits(text)

    parse(text)


def test_many_numbers_with_dots_are_no_key() -> None:
    check_limits("x = [" + "1.5, " * 500 + "]\n" + "y = 1.5\n" * 200)


@pytest.mark.parametrize("quote", ['"', "'", '"""', "'''", '"""\\', "''' '"])
def test_unfinished_texts_take_no_longer_than_others(quote: str) -> None:
    """With a search that is quadratic in the number of quotes, this takes minutes."""
    text = (quote * MAX_TOML_BYTES)[:MAX_TOML_BYTES]

    for piece in (text, f"x = {text}"[:MAX_TOML_BYTES]):
        try:
            check_limits(piece)
        except ValueError as error:
            assert "parts" in str(error)


def test_a_file_with_a_long_key_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    """tomllib takes 0.3 s for this key, and 39 s for a key that is ten times as long."""
    file = tmp_path / "app.toml"
    file.write_text(dotted(6_000) + " = 1\n")

    text = read_toml(file)

    with pytest.raises(InvalidToml, match=r"app\.toml: the key in line 1 has 6000 parts"):
        _ = text.document


def test_a_text_that_is_too_large_is_refused_before_it_is_parsed() -> None:
    assert parse("#" * MAX_TOML_BYTES) == {}

    with pytest.raises(ValueError, match="it is larger than 256 KiB"):
        parse("#" * (MAX_TOML_BYTES + 1))


def test_comments_are_told_from_texts() -> None:
    text = '# one\na = \'# no\' # two # two\nb = """\n# no\n"""#three\n'

    assert comments_in(text) == ["# one", "# two # two", "#three"]
