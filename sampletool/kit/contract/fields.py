"""The option --fields: return only some members of `data`, so that responses cost fewer tokens."""

from typing import Any

from .errors import Mistake, did_you_mean
from .text import quoted

FieldTree = dict[str, "FieldTree"]
"""The names of the selected members, each with the selected members in it.

The tree of `a,b.c` is `{"a": {}, "b": {"c": {}}}`. A name with an empty tree is selected whole.
"""

_Schema = dict[str, Any]


def read_fields(text: str, schema: _Schema) -> tuple[FieldTree, list[Mistake]]:
    """Return the fields in a text such as `a,b.c`, and a mistake for each unknown name.

    `schema` is the JSON schema of the `data` that the command returns.
    """
    tree: FieldTree = {}
    mistakes = []
    for path in text.split(","):
        names = path.split(".")
        mistake = _find_mistake(names, schema)
        if mistake is None:
            _add_path(tree, names)
        else:
            mistakes.append(mistake)
    return tree, mistakes


def select(value: Any, tree: FieldTree) -> Any:
    """Return the selected members of an object, or of each object in a list."""
    is_selected_whole = not tree
    if is_selected_whole:
        return value
    if isinstance(value, list):
        return [select(item, tree) for item in value]
    if isinstance(value, dict):
        return {name: select(value[name], tree[name]) for name in value if name in tree}
    return value


def _add_path(tree: FieldTree, names: list[str]) -> None:
    """Add the path of one field to the tree."""
    subtree = tree
    for name in names[:-1]:
        is_selected_whole = subtree.get(name) == {}
        if is_selected_whole:
            # For example `a,a.b`: all of `a` is selected already, and so is `a.b`.
            return
        subtree = subtree.setdefault(name, {})
    # For example `a.b,a`: from now on, all of `a` is selected.
    subtree[names[-1]] = {}


def _find_mistake(names: list[str], schema: _Schema) -> Mistake | None:
    """Return the mistake in the path of one field, or None if the schema has the field."""
    parent = "The output"
    for name in names:
        members = _member_schemas(schema)
        if members is None:
            # Any member is possible here, and anything in it.
            return None
        if name not in members:
            hint = did_you_mean(name, list(members))
            if not hint and members:
                hint = f"The fields are {', '.join(members)}."
            message = f"{parent} has no field {quoted(name)}"
            return Mistake("--fields", "UNKNOWN_FIELD", message, name, hint or None)
        schema = members[name]
        parent = name
    return None


def _member_schemas(schema: _Schema) -> dict[str, _Schema] | None:
    """Return the schemas of the members of an object, or of the objects in a list.

    Return None if the object can have any members, and an empty dict if it is not an object.
    """
    if "items" in schema:
        return _member_schemas(schema["items"])
    if "anyOf" in schema:
        return _member_schemas_of_any(schema["anyOf"])
    is_object = schema.get("type") in (None, "object") and "enum" not in schema
    if not is_object:
        return {}
    return schema.get("properties")


def _member_schemas_of_any(choices: list[_Schema]) -> dict[str, _Schema] | None:
    """Return the members that an object of at least one of these schemas has.

    Return None if an object of one of them can have any members.
    """
    schemas_by_name: dict[str, list[_Schema]] = {}
    for choice in choices:
        members = _member_schemas(choice)
        if members is None:
            return None
        for name, schema in members.items():
            schemas_by_name.setdefault(name, []).append(schema)
    return {name: {"anyOf": schemas} for name, schemas in schemas_by_name.items()}
