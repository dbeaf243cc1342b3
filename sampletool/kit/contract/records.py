"""The members of a record, which is a dataclass or a NamedTuple, as JSON has them.

A member whose type is `X | None` is absent if it is None: it does not apply. Any other member is
always there. One of the type `Any` can be None as well: then it is a JSON null that a caller has
stored. The schemas of the manifest and the responses both follow this module, so they agree.
"""

import typing
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any


def member_names(record: Any) -> list[str]:
    """Return the names of the members of a record. There are none if it is another type."""
    if is_dataclass(record):
        return [field.name for field in fields(record)]
    return list(getattr(record, "_fields", ()))


# Looking at the types of a record takes 10 to 50 us. A list has many records of the same type.
@cache
def optional_members(record: Any) -> frozenset[str]:
    """Return the names of the members that are absent if they are None."""
    names = set()
    for name, hint in typing.get_type_hints(record).items():
        if type(None) in typing.get_args(hint):
            names.add(name)
    return frozenset(names)
