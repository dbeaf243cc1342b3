"""The effects of a call on shared files: what it reads, and what it changes.

Two calls of different processes may be swapped without a difference if their effects do not
conflict. A search through schedules relies on this when it leaves some of them out. So an effect
that is missing here hides schedules, and a superfluous one only costs time.

A *resource* is one aspect of one path:

* `name`: which file the path leads to, or that there is none.
* `content` and `attributes`: what is in the file, and what stat() returns.
* `lock`: the lock of flock().
* `entries`: the list of names in a directory.

Calls on a descriptor affect the path that the file has at this moment. A file that is created,
renamed or removed is changed in every aspect, so this call conflicts with every other one on the
file, also with one that uses a descriptor.
"""

import fcntl
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

READ = "read"
WRITE = "write"
ADD = "add"
"""A change that can be swapped with another ADD: two names that are put into one directory."""
TAKE = "take"
"""Taking a lock. It conflicts like WRITE, but cannot be swapped with the release before it."""

PROCESSES = "processes"
"""The resource that says which processes are alive. The end of a process is an ADD."""

Effects = dict[str, str]
"""The resources that a call reads or changes, each with READ, WRITE, ADD or TAKE."""

_MAX_LINKS = 40
"""How many symbolic links the kernel follows."""


def conflict(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    """Return whether it may make a difference which of two steps comes first."""
    # Most steps have nothing in common. This is much faster than the loop.
    if first.keys().isdisjoint(second):
        return False
    for resource, kind in first.items():
        other_kind = second.get(resource)
        if other_kind is None:
            continue
        can_be_swapped = kind == other_kind and kind in (READ, ADD)
        if not can_be_swapped:
            return True
    return False


def combine(first: Mapping[str, str], second: Mapping[str, str]) -> Effects:
    """Return the effects of two calls that are made as one step."""
    combined = dict(first)
    for resource, kind in second.items():
        known_kind = combined.get(resource, kind)
        combined[resource] = kind if kind == known_kind else WRITE
    return combined


def effects_of(
    event: str,
    paths: Sequence[str],
    facts: Mapping[str, Any],
    root: str,
    is_lock_free: Callable[[int], bool],
) -> Effects:
    """Return the effects that this call would have now, on paths in the directory `root`.

    `is_lock_free` tells whether the lock of a descriptor could be had at once.
    """
    collector = _Collector(root)
    if event in _ON_NAMES:
        collector.change_names(_changed_names(event, paths), succeeds=_would_succeed(event, paths))
    elif event == "open":
        collector.open(paths[0], facts["flags"])
    elif event in ("fcntl.flock", "blocked"):
        collector.add(paths[0], "lock", _effect_on_lock(facts, is_lock_free))
    elif event == "os.close":
        collector.add(paths[0], "lock", WRITE)
    elif event in _ON_FILES:
        follows_links = event not in _ON_LINKS
        for path, aspects in zip(paths, _ON_FILES[event], strict=False):
            collector.use_file(path, aspects, follows_links=follows_links)
    elif event == "os.kill":
        collector.effects[PROCESSES] = READ
    elif event not in _WITHOUT_EFFECT:
        collector.use_in_any_way(paths)
    return collector.effects


def _changed_names(event: str, paths: Sequence[str]) -> Sequence[str]:
    """Return the paths whose names the call creates or removes."""
    if event == "os.symlink":
        # The first path of a symbolic link is only its text.
        return paths[1:]
    return paths


def _would_succeed(event: str, paths: Sequence[str]) -> bool:
    """Return False if the call would fail because a name is there already, or is not there."""
    if event in _CREATES:
        return not os.path.lexists(paths[-1])
    return os.path.lexists(paths[0])


def _effect_on_lock(facts: Mapping[str, Any], is_lock_free: Callable[[int], bool]) -> str:
    operation = facts["operation"]
    if operation & fcntl.LOCK_UN:
        return WRITE
    if operation & fcntl.LOCK_NB and not is_lock_free(facts["descriptor"]):
        # An attempt that fails changes nothing.
        return READ
    return TAKE


_WITHOUT_EFFECT = frozenset({"os.fsync", "os.fdatasync"})

_CREATES = frozenset({"os.link", "os.mkdir", "os.symlink"})
_ON_NAMES = _CREATES | {"os.remove", "os.rename", "os.rmdir"}

_LOOK = ({"attributes": READ},)
_SET = ({"attributes": WRITE},)
_FETCH = ({"content": READ},)
_STORE = ({"content": WRITE, "attributes": WRITE},)

_ON_FILES: dict[str, tuple[dict[str, str], ...]] = {
    "os.access": _LOOK,
    "os.chmod": _SET,
    "os.chown": _SET,
    "os.copy_file_range": (*_FETCH, *_STORE),
    "os.fstat": _LOOK,
    "os.getxattr": _LOOK,
    "os.listdir": ({"entries": READ},),
    "os.listxattr": _LOOK,
    "os.lseek": _LOOK,
    "os.lstat": _LOOK,
    "os.posix_fallocate": _STORE,
    "os.pread": _FETCH,
    "os.preadv": _FETCH,
    "os.pwrite": _STORE,
    "os.pwritev": _STORE,
    "os.read": _FETCH,
    "os.readlink": _LOOK,
    "os.readv": _FETCH,
    "os.removexattr": _SET,
    "os.scandir": ({"entries": READ},),
    "os.sendfile": (*_STORE, *_FETCH),
    "os.setxattr": _SET,
    "os.splice": (*_FETCH, *_STORE),
    "os.stat": _LOOK,
    "os.truncate": _STORE,
    "os.utime": _SET,
    "os.write": _STORE,
    "os.writev": _STORE,
}
"""What each call does with the file at each of its paths."""

_ON_LINKS = frozenset({"os.lstat", "os.readlink"})
"""The calls that look at a symbolic link itself."""


class _Collector:
    """The effects found so far."""

    def __init__(self, root: str) -> None:
        self._root = root
        self.effects: Effects = {}

    def add(self, path: str, aspect: str, kind: str) -> None:
        """Add an effect on this path, unless it is outside of the root."""
        if not path.startswith(f"{self._root}/"):
            return
        # Relative, because the same step has another root in the next run.
        resource = f"{aspect} {path.removeprefix(self._root)}"
        self.effects = combine(self.effects, {resource: kind})

    def change_names(self, paths: Sequence[str], *, succeeds: bool) -> None:
        """Add the creation, renaming or removal of these names. If it fails, it only reads them."""
        for path in paths:
            if succeeds:
                self.change_name(path)
            else:
                self._follow(path, follows_links=False)

    def change_name(self, path: str) -> None:
        """Add the creation, renaming or removal of the file with this name."""
        path = self._follow(path, follows_links=False)
        for aspect in ("name", "content", "attributes", "lock", "entries"):
            self.add(path, aspect, WRITE)
        self.add(os.path.dirname(path), "entries", ADD)
        self.add(os.path.dirname(path), "attributes", ADD)

    def open(self, path: str, flags: int) -> None:
        """Add the opening of a file, which may create or empty it."""
        if flags & os.O_CREAT and not os.path.lexists(path):
            self.change_name(path)
            return
        aspects = {}
        if flags & os.O_TRUNC and not flags & os.O_EXCL:
            aspects = {"content": WRITE, "attributes": WRITE}
        self.use_file(path, aspects, follows_links=not flags & os.O_NOFOLLOW)

    def use_file(self, path: str, aspects: Mapping[str, str], *, follows_links: bool) -> None:
        """Add the use of the file that this path leads to."""
        path = self._follow(path, follows_links=follows_links)
        for aspect, kind in aspects.items():
            self.add(path, aspect, kind)

    def use_in_any_way(self, paths: Sequence[str]) -> None:
        """Add what is not known: of SQLite, and of what scenarios announce themselves."""
        for path in paths:
            self.use_file(path, {"content": WRITE, "attributes": WRITE}, follows_links=True)
        if not paths:
            self.effects["anything"] = WRITE

    def _follow(self, path: str, *, follows_links: bool) -> str:
        """Add what the kernel reads to find the file: directories and links.

        Return the path to which the links lead.
        """
        for _ in range(_MAX_LINKS):
            directory, name = os.path.split(path)
            directory = os.path.realpath(directory)
            path = os.path.join(directory, name)
            self.add(path, "name", READ)
            # The directories directly in the root belong to the lab, and are never renamed.
            while os.path.dirname(directory).startswith(f"{self._root}/"):
                self.add(directory, "name", READ)
                directory = os.path.dirname(directory)
            if not follows_links or not os.path.islink(path):
                break
            path = os.path.join(os.path.dirname(path), os.readlink(path))
        return path
