"""sampletool/kit/contract/text.py: text from outside is safe to show, short and without secrets."""

import unicodedata

import pytest

from sampletool.kit.contract import text as text_module
from sampletool.kit.contract.text import (
    MASK,
    MAX_ECHOED_CHARACTERS,
    MAX_SENTENCE_CHARACTERS,
    NOTHING,
    between_words,
    counted,
    escaped,
    is_secret,
    printable,
    printable_data,
    printable_lines,
    quoted,
    redact,
    shorten,
    shorten_sentence,
)

# Escapes


@pytest.mark.parametrize(
    "text",
    ["plain", "caf\u00e9", "\u65e5\u672c", "e\u0301", "\U0001f44d", ""],
)
def test_harmless_text_is_shown_as_it_is(text: str) -> None:
    assert printable(text) == text


@pytest.mark.parametrize(
    ("char", "shown"),
    [
        ("\n", r"\n"),
        ("\r", r"\r"),
        ("\t", r"\t"),
        ("\x00", r"\x00"),
        ("\x1b", r"\x1b"),
        ("\x7f", r"\x7f"),
        ("\x9b", r"\x9b"),
    ],
)
def test_a_control_character_is_escaped(char: str, shown: str) -> None:
    assert printable(f"a{char}b") == f"a{shown}b"


_MISLEADING = {
    "Cf": "\u202e",
    "Cs": "\ud800",
    "Co": "\ue000",
    "Zl": "\u2028",
    "Zp": "\u2029",
}
"""A character of each category that is invisible, changes the direction, or ends a line."""


@pytest.mark.parametrize("category", _MISLEADING)
def test_a_misleading_character_is_escaped(category: str) -> None:
    char = _MISLEADING[category]

    assert unicodedata.category(char) == category
    assert printable(f"a{char}b") == f"a{escaped(char)}b"


@pytest.mark.parametrize(
    ("char", "shown"),
    [
        ("\udc80", r"\x80"),
        ("\udcff", r"\xff"),
        ("\udc7f", r"\udc7f"),
        ("\udd00", r"\udd00"),
        ("\xff", r"\xff"),
        ("\u0100", r"\u0100"),
        ("\uffff", r"\uffff"),
        ("\U00010000", r"\U00010000"),
    ],
)
def test_each_range_of_characters_has_its_own_escape(char: str, shown: str) -> None:
    assert escaped(char) == shown


def test_text_of_several_lines_keeps_its_lines_and_nothing_else_that_moves_the_cursor() -> None:
    assert printable_lines("a\tb\r\nc\x1b[2Jd\re\n") == "a       b\nc\\x1b[2Jd\\re\n"


def test_every_text_in_a_json_value_is_escaped_and_nothing_else_is_changed() -> None:
    value = {"na\nme": ["a\tb", 1, None, True, {"x": "\x1b"}]}

    assert printable_data(value) == {r"na\nme": [r"a\tb", 1, None, True, {"x": r"\x1b"}]}


# Short texts


def test_a_text_that_is_too_long_loses_its_middle() -> None:
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghijk", 10) == "abcde…hijk"


@pytest.mark.parametrize("char", ["x", "\x1b", "\U000e0001"])
def test_a_quoted_text_is_short_however_long_its_escapes_are(char: str) -> None:
    shown = quoted(char * 100_000)

    assert len(shown) <= MAX_ECHOED_CHARACTERS + len("''")
    assert shown.startswith(f"'{printable(char)}")
    assert "…" in shown


def test_a_text_of_ordinary_length_is_quoted_whole() -> None:
    text = "x" * MAX_ECHOED_CHARACTERS

    assert quoted(text) == f"'{text}'"
    assert quoted("a\nb") == r"'a\nb'"


def test_a_long_word_does_not_hide_the_rest_of_its_sentence() -> None:
    shown = shorten_sentence(f"No such option: {'x' * 100_000}. For help, run `tool --help`.")

    assert shown.startswith("No such option: xxx")
    assert shown.endswith(". For help, run `tool --help`.")
    assert len(shown) < MAX_ECHOED_CHARACTERS + 60


def test_a_sentence_of_many_words_is_short() -> None:
    shown = shorten_sentence("word " * 50_000 + "end")

    assert len(shown) == MAX_SENTENCE_CHARACTERS
    assert shown.startswith("word ")
    assert shown.endswith("word end")


def test_a_path_of_ordinary_length_stays_whole_in_a_sentence() -> None:
    sentence = f"Run `touch /{'x' * 900}`."

    assert shorten_sentence(sentence) == sentence


def test_a_sentence_with_a_very_long_path_is_short() -> None:
    shown = shorten_sentence(f"Run `touch {'/x' * 50_000}` again.")

    assert len(shown) == MAX_SENTENCE_CHARACTERS
    assert shown.startswith("Run `touch /x/x")
    assert shown.endswith("/x` again.")


# Sentences and paragraphs


@pytest.mark.parametrize(("number", "shown"), [(0, "0 rows"), (1, "1 row"), (2, "2 rows")])
def test_things_are_counted_in_words(number: int, shown: str) -> None:
    assert counted(number, "row") == shown


def test_a_paragraph_is_broken_between_words_and_not_inside_the_name_of_an_option() -> None:
    lines = between_words("Wait for locks: --lock-timeout sets how long", 27, "* ", "  ")

    assert lines == ["* Wait for locks:", "  --lock-timeout sets how", "  long"]


def test_a_very_narrow_terminal_gets_lines_of_20_characters() -> None:
    assert between_words("ten chars. ten chars.", 1) == ["ten chars. ten", "chars."]


def test_a_paragraph_is_broken_by_display_width_and_not_by_characters() -> None:
    japanese = "\u65e5\u672c\u8a9e"

    lines = between_words(f"{japanese} " * 4, 20)

    # Each of these characters needs two columns. All four words would fit by their characters.
    assert lines == [f"{japanese} {japanese} {japanese}", japanese]


# The texts of variables without a value


def test_the_texts_for_nothing_are_those_of_the_usual_languages() -> None:
    """JSON, JavaScript, Python, numbers, Ruby and Go, and a JavaScript object as text."""
    assert NOTHING == ("null", "undefined", "None", "NaN", "nil", "[object Object]")


# Secret settings


@pytest.mark.parametrize(
    "name",
    [
        # One of the texts is in the name.
        *("token", "api.tokens", "TOKEN", "password", "db.Password2", "passwd"),
        *("passphrase", "X.Passphrase", "secret", "client_secret", "dsn", "sentry_dsn"),
        *("api_key", "api-key", "apikey", "api_keys", "MY_APIKEY_FILE"),
        *("private_key", "private-key", "privatekey", "ssh_private_key_path"),
        *("access_key", "access-key", "accesskey", "access_key_id"),
        # One of the words is secret.
        *("auth", "registry.auth", "my_auth", "auth_header", "cred", "creds", "creds_of_ann"),
        *("credential", "credentials", "credentials_file", "mycreds", "usercredentials"),
        # One of the words ends like a secret one.
        *("pass", "db.pass", "db_pass", "TOOL_PASS", "pass_2", "db-pass", "dbPass", "mypass"),
        *("MYPASS", "smtppass.value", "\u00e9pass", "pwd", "db.pwd", "db_pwd", "pwd_old", "mypwd"),
        # The key to something.
        *("TOOL_KEY", "signing_key", "stripe-key", "encryptionKey", "table.ssh_key"),
    ],
)
def test_a_secret_key_is_recognized_by_its_name(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("kind", text_module._KINDS_OF_PUBLIC_KEYS)
def test_a_key_that_is_no_secret_is_shown(kind: str) -> None:
    assert not is_secret(f"{kind}_key")
    assert not is_secret(f"table.{kind.upper()}_KEY")


@pytest.mark.parametrize("word", text_module._ORDINARY_WORDS)
def test_an_ordinary_word_that_ends_like_a_secret_is_shown(word: str) -> None:
    assert not is_secret(word)
    assert not is_secret(f"my_{word.upper()}.name")


@pytest.mark.parametrize(
    "name",
    [
        *("author", "authority", "my_authority", "oauthor", "credo", "jobs", "level"),
        *("key", "key1", "key_5", "build.key", "my_keys", "keys", "key_file", "hot.keys"),
        *("keyboard", "monkey", "my_monkey", "turkey", "donkey", "hockey", "keynote"),
        *("pass2", "passage", "passing", "passenger", "passport", "passive", "compassion"),
        *("pwds", "", "."),
    ],
)
def test_a_key_that_only_resembles_a_secret_one_is_shown(name: str) -> None:
    assert not is_secret(name)


# Passwords in text


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hunter2@host/db",
        "POSTGRES://u:hunter2@host/db",
        "redis://u:pa/hunter2@h",
        "postgres://u:p@hunter2@h",
        "postgres://:hunter2@h",
        "s+x.y-z://u:hunter2@h",
        "redis//u:hunter2@h/0",
        "//u:hunter2@h",
        "user:hunter2@host",
        "u:hunter2://x@host",
    ],
)
def test_the_password_in_a_url_is_masked(url: str) -> None:
    shown = redact(f"connecting to {url} failed")

    assert "hunter2" not in shown
    assert f":{MASK}@" in shown
    assert shown.startswith("connecting to ")
    assert shown.endswith(" failed")


def test_the_passwords_in_several_urls_are_masked() -> None:
    text = "tried redis://u:hunter2@a, then redis://u:hunter3@b\nand redis://u:hunter4@c"

    shown = redact(text)

    expected = f"tried redis://u:{MASK}@a, then redis://u:{MASK}@b\nand redis://u:{MASK}@c"
    assert shown == expected


@pytest.mark.parametrize(
    "template",
    [
        "{}=hunter2",
        "{} = hunter2",
        "{} = 'hunter2 x'",
        '{}="hunter2 x"',
        "x;{}=hunter2;y",
        "a {}=hunter2&b",
    ],
)
@pytest.mark.parametrize("name", ["password", "passwd", "pwd", "PassWord"])
def test_the_password_in_a_connection_string_is_masked(name: str, template: str) -> None:
    shown = redact(template.format(name))

    assert MASK in shown
    assert "hunter2" not in shown
    assert " x" not in shown


def test_what_follows_a_password_in_a_connection_string_is_shown() -> None:
    assert redact("a=1;pwd=hunter2;b=2&pwd=hunter3&c=3") == f"a=1;pwd={MASK};b=2&pwd={MASK}&c=3"


@pytest.mark.parametrize("name", ["mypass", "TOOL_KEY", "api.token", "db_pwd"])
def test_the_value_of_a_secret_variable_is_masked(name: str) -> None:
    assert redact(f"ran with {name}=hunter2, then") == f"ran with {name}={MASK} then"


@pytest.mark.parametrize("text", ["monkey=1", "sort_key = 2", "bypass=3", "token == 4", "=5"])
def test_the_value_of_another_variable_is_shown(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("scheme", ["Bearer", "Basic", "bearer", "BASIC"])
def test_the_secret_in_an_authorization_header_is_masked(scheme: str) -> None:
    shown = redact(f"Authorization: {scheme}  hunter2 more")

    assert shown == f"Authorization: {scheme} {MASK} more"


@pytest.mark.parametrize(
    "text",
    [
        "12:30",
        "http://host:80/path",
        "a@b",
        "a:@b",
        "http://u@host",
        "key: value",
        "key: a@b",
        "sqlite:///x/y.db",
        "two  spaces\nand a line",
    ],
)
def test_a_text_without_a_password_is_not_changed(text: str) -> None:
    assert redact(text) == text


@pytest.mark.timeout(20)
@pytest.mark.parametrize("part", ["x", ":", "a:b@", "pwd=", "pwd='", "bearer ", "password ", "x ="])
def test_the_time_to_mask_grows_in_proportion_to_the_text(part: str) -> None:
    """A pattern that is tried at each character of a long word would take minutes."""
    text = part * 200_000

    assert redact(f"{text}@") != ""
