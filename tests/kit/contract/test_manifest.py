"""What a command returns, as a schema."""

from dataclasses import dataclass

from sampletool.kit.contract.manifest import schema_of


@dataclass(frozen=True)
class Told:
    name: str
    since: int | None = None


@dataclass(frozen=True)
class Counted:
    counts: dict[str, int]


def test_a_member_that_may_be_absent_is_not_required() -> None:
    schema = schema_of(Told)

    assert schema["properties"] == {"name": {"type": "string"}, "since": {"type": "integer"}}
    assert schema["required"] == ["name"]


def test_what_may_be_one_of_two_is_either() -> None:
    assert schema_of(Told | Counted) == {"anyOf": [schema_of(Told), schema_of(Counted)]}
