"""Says whether the kit, its tests and its pages are as they were taken: `python -m acme.kit.checksums`.

They are compared with the file CHECKSUMS, which is there where a project has taken the kit over, not where the kit is
developed: forking writes it (`python -m acme.kit.checksums write`), and so does each update.
"""

import sys
from hashlib import sha256
from pathlib import Path

_KIT = Path(__file__).parent
_LIST = _KIT / "CHECKSUMS"


def checksums() -> dict[str, str]:
    """Of every file of the kit, by a name that does not depend on the package's."""
    folders = {folder: _KIT.parents[1] / folder for folder in ("tests/kit", "docs/kit")} | {"kit": _KIT}
    files = ((name, folder, file) for name, folder in folders.items() for file in folder.rglob("*"))
    return {
        f"{name}/{file.relative_to(folder).as_posix()}": sha256(file.read_bytes()).hexdigest()
        for name, folder, file in files
        if file.is_file() and file != _LIST and "__pycache__" not in file.parts
    }


def edited() -> list[str]:
    """What was changed, added or deleted since CHECKSUMS was written."""
    lines = (line.split(maxsplit=1) for line in _LIST.read_text().splitlines())
    return sorted({name for name, _ in {(name, value) for value, name in lines} ^ set(checksums().items())})


def main(args: list[str]) -> None:
    if args == ["write"]:
        _LIST.write_text("".join(f"{value}  {name}\n" for name, value in sorted(checksums().items())))
    elif _LIST.exists() and (names := edited()):
        raise SystemExit(f"Edited, so that no newer kit can replace it: {', '.join(names)}. Take the change back.")


if __name__ == "__main__":
    main(sys.argv[1:])
