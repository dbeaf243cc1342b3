"""The list of the scenarios' mechanisms: each has to be noticed by `tool lab prove`, for the reason on the page."""

from typing import Any

from sampletool.lab.scenario import find, names


def entries() -> list[dict[str, Any]]:
    """As in a list of TOML."""
    return [
        {
            "file": each.file,
            "mechanism": f"{name}: {each.says}",
            "line": each.line,
            "instead": each.instead,
            "tests": [f"tests/lab/mutants/proof.py::test_the_right_way_is_proved[{name}]"],
        }
        for name in names()
        for each in find(name).mechanisms
    ]
