"""What a directory may hold after a power cut, given what a program did to it.

Kill -9 never loses the page cache, so what fsync is for can only be shown by a model: of what was written and not
flushed anything may be missing, and so may every renaming or creation since the directory was flushed.
"""

import base64
import os
from collections.abc import Iterator, Sequence
from itertools import product

from .tracer import Event

Files = dict[str, bytes]
"""Name -> content."""


def crash_states(before: Files, events: Sequence[Event], directory: str) -> Iterator[Files]:
    """Every state after a crash between any two events."""
    for point in range(len(events) + 1):
        yield from states_after(before, events[:point], directory)


def states_after(before: Files, events: Sequence[Event], directory: str) -> Iterator[Files]:
    """Every state after a crash that comes when all of these events have happened."""
    names = {name: number for number, name in enumerate(before)}
    flushed, latest = list(before.values()), list(before.values())
    durable = dict(names)
    pending: list[tuple[str, int | None]] = []

    for event in events:
        if os.path.dirname(event.path) != directory and event.path != directory:
            continue
        name = os.path.basename(event.path)
        if event.name == "os.fsync" and event.path == directory:
            durable, pending = dict(names), []
        elif event.name == "open" and event.path != directory and name not in names:
            names[name] = len(flushed)
            flushed.append(b"")
            latest.append(b"")
            pending.append((name, names[name]))
        elif event.name == "open" and event.path != directory and event.facts["flags"] & os.O_TRUNC:
            latest[names[name]] = b""
        elif event.name == "os.write":
            latest[names[name]] += base64.b64decode(event.facts["data"])
        elif event.name == "os.fsync":
            flushed[names[name]] = latest[names[name]]
        elif event.name == "os.rename":
            source = os.path.basename(event.paths[0])
            names[name] = names.pop(source)
            pending += [(name, names[name]), (source, None)]
        elif event.name == "os.remove":
            names.pop(name, None)
            pending.append((name, None))

    contents = [
        {old} if old == new else {old, b"", new[: len(new) // 2], new}
        for old, new in zip(flushed, latest, strict=True)
    ]
    for kept in product((True, False), repeat=len(pending)):
        entries = dict(durable)
        for (name, file), keep in zip(pending, kept, strict=True):
            if keep and file is None:
                entries.pop(name, None)
            elif keep and file is not None:
                entries[name] = file
        for chosen in product(*contents):
            yield {name: chosen[file] for name, file in entries.items()}
