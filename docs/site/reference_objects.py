"""Make commands, options, settings, variables and errors known to the search and the index.

Sphinx calls these things objects. Their headings are in the generated pages of docs/reference. The
name of a page and the level of a heading say what kind of object it is.
"""

import re
from typing import Any, ClassVar

from docutils import nodes  # type: ignore[import-untyped]
from docutils.parsers.rst import directives  # type: ignore[import-untyped]
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

_KINDS_BY_PAGE = {
    "reference/options": "option",
    "reference/settings": "setting",
    "reference/environment": "variable",
    "reference/errors": "error",
}
"""The pages on which each heading of the second level is an object."""
_NOT_COMMANDS = {*_KINDS_BY_PAGE, "reference/index", "reference/exit-codes", "reference/output"}
OBJECT_KINDS = {
    "command": 0,
    "option": 0,
    "setting": 1,
    "variable": 1,
    "error": 1,
    "option of one command": 2,
}
"""The kinds of objects, and their ranks in the search. Those with 0 come first."""
_HEADING = re.compile(r"^(?P<level>#+) `?(?P<name>[^`\n]+)`?$", re.MULTILINE)
_CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def with_objects(page: str, text: str) -> str:
    """Return the text of a page with a directive below each heading that names an object."""
    if not page.startswith("reference/"):
        return text
    code_blocks = [block.span() for block in _CODE_BLOCK.finditer(text)]
    # A heading of the third level is an object if the section above has the options of a command.
    section = ""
    parts = []
    end = 0
    for heading in _HEADING.finditer(text):
        if any(start <= heading.start() < stop for start, stop in code_blocks):
            continue
        level = len(heading["level"])
        if level == 2:
            section = heading["name"]
        kind = _kind_of(page, level, section)
        if kind is not None:
            name = _full_name(kind, heading["name"], page)
            parts.append(text[end : heading.end()])
            parts.append(f"\n\n```{{reference-object}} {name}\n:kind: {kind}\n```")
            end = heading.end()
    return "".join(parts) + text[end:]


def _kind_of(page: str, level: int, section: str) -> str | None:
    """Return the kind of the object that a heading names, or None if it names none."""
    if page in _KINDS_BY_PAGE:
        return _KINDS_BY_PAGE[page] if level == 2 else None
    if page in _NOT_COMMANDS:
        return None
    if level == 1:
        return "command"
    if level == 3 and section == "Options":
        return "option of one command"
    return None


def _full_name(kind: str, name: str, page: str) -> str:
    """Return the name in the search and in the index.

    A heading has an option as in a usage line, such as `-C, --cwd DIR`. The name is the long flag.
    For an option that not every command has, it contains the command, too.
    """
    if kind not in ("option", "option of one command"):
        return name
    flags = re.findall(r"--?[\w-]+", name)
    flag: str = max(flags, key=len)
    if kind == "option":
        return flag
    command = page.removeprefix("reference/").replace("-", " ")
    return f"{flag} ({command})"


class ReferenceObject(SphinxDirective):
    """Directive `reference-object NAME`: the heading above names an object of this `kind`."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"kind": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Add the object to the search and to the index."""
        (name,) = self.arguments
        kind = self.options["kind"]
        anchor = nodes.make_id(f"object-{kind}-{name}")
        target = nodes.target("", "", ids=[anchor])
        self.state.document.note_explicit_target(target)
        domain: Any = self.env.get_domain("std")
        domain.note_object(kind, name, anchor, location=target)
        entry = addnodes.index(entries=[("single", name, anchor, "", None)])
        return [entry, target]
