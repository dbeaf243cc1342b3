"""The cursor between the pages of a list, such as `config.list:jobs`.

It has the name of the list and the position of the last row. All its characters are printable, so
that a person can copy it from a terminal: `%0A` stands for a newline, and `%25` for a percent sign.
"""

from urllib.parse import quote, unquote

_SEPARATOR = ":"


def format_cursor(list_name: str, position: str) -> str:
    """Return the cursor of a position in a list."""
    characters = []
    for char in position:
        if char.isprintable() and char != "%":
            characters.append(char)
        else:
            # surrogatepass: a name that is not UTF-8 has lone surrogates.
            characters.append(quote(char, safe="", errors="surrogatepass"))
    return f"{list_name}{_SEPARATOR}{''.join(characters)}"


def parse_cursor(cursor: str) -> tuple[str, str]:
    """Return the name of the list and the position. Raise ValueError if it is not a cursor."""
    list_name, _, encoded = cursor.partition(_SEPARATOR)
    position = unquote(encoded, errors="surrogatepass")
    if position == "":
        raise ValueError(f"there is no position in {cursor!r}")
    return list_name, position
