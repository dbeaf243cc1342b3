"""Small enough to read: the whole package, each room, each file."""

from pathlib import Path

_PACKAGE = Path(__file__).parents[2] / "sampletool"
_WHOLE, _ROOM, _DOMAIN, _FILE = 6500, 1500, 500, 260


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


def test_the_package_and_every_room_stay_small() -> None:
    rooms = {room.name: [file for file in room.rglob("*.py") if file.parent.name != "scenarios"]
             for room in _PACKAGE.iterdir() if room.is_dir()}  # fmt: skip
    sizes = {name: sum(map(lines, files)) for name, files in rooms.items()}
    own = sum(lines(file) for file in _PACKAGE.glob("*.py"))

    assert sum(sizes.values()) + own <= _WHOLE, sizes
    assert {name: size for name, size in sizes.items() if size > (_DOMAIN if name == "domain" else _ROOM)} == {}


def test_no_file_holds_a_second_idea() -> None:
    long = {str(file.relative_to(_PACKAGE)): lines(file) for file in _PACKAGE.rglob("*.py") if lines(file) > _FILE}

    assert long == {}


def test_there_is_no_drawer_for_everything() -> None:
    names = {file.stem for file in _PACKAGE.rglob("*.py")}

    assert not names & {"utils", "helpers", "common", "misc"}


def test_every_file_says_what_it_promises() -> None:
    silent = [file for file in _PACKAGE.rglob("*.py") if not file.read_text().startswith('"""')]

    assert silent == []
