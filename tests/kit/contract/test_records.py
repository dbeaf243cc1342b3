"""sampletool/kit/contract/records.py: which members a record has, and which ones can be absent."""

from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from sampletool.kit.contract.records import member_names, optional_members


@dataclass(frozen=True)
class Stored:
    key: str
    value: Annotated[Any, {"x-untrusted": True}]
    expires_at: str | None
    forecast: Annotated[Any | None, {}] = None


class Pair(NamedTuple):
    left: int
    right: int | None


def test_a_record_is_a_dataclass_or_a_named_tuple() -> None:
    assert member_names(Stored) == ["key", "value", "expires_at", "forecast"]
    assert member_names(Pair) == ["left", "right"]
    assert member_names(str) == []


def test_a_member_is_optional_if_its_type_allows_none_but_not_if_it_is_any() -> None:
    assert optional_members(Stored) == {"expires_at", "forecast"}
    assert optional_members(Pair) == {"right"}
