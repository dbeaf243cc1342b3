"""The effects of a call on shared files: what it reads, and what it changes.

Two calls of different processes can be swapped without changing the result if their effects do not
conflict. A search through schedules relies on this to leave schedules out. So a missing effect
hides schedules, and a superfluous effect only costs time.

A *resource* is one aspect of one path:

* `name`: which file the path leads to, or that there is none.
* `content` and `attributes`: what is in the file, and what stat() returns.
* `lock`: the lock of flock().
* `entries`: the list of names in a directory.

For example, a call of os.write() on the file `/count` has the effects `{"content /count": "write",
"attributes /count": "write"}`.

Calls on a descriptor affect the path that the file has at this moment. A call that creates, renames
or removes a file changes all aspects of the file. So it conflicts with every other call on the
file, including calls that use a descriptor.
"""

import fcntl
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .protocol import BLOCKED

READ = "read"
WRITE = "write"
ADD = "add"
"""A change that can be swapped with another ADD, such as adding two names to one directory."""
TAKE = "take"
"""Taking a lock. It conflicts like WRITE. But unlike a WRITE, it is possible only after a release,
so it cannot be swapped with the release before it.
"""

PROCESSES = "processes"
"""The resource for the set of live processes. The end of a process is an ADD."""

Effects = dict[str, str]
"""The resources that a call reads or changes. Each value is READ, WRITE, ADD or TAKE."""

# The aspects of a path. A resource is an aspect, a space and a path.
_NAME = "name"
_CONTENT = "content"
_ATTRIBUTES = "attributes"
_LOCK = "lock"
_ENTRIES = "entries"
_ALL_ASPECTS = (_NAME, _CONTENT, _ATTRIBUTES, _LOCK, _ENTRIES)

_MAX_LINKS = 40
"""The number of symbolic links that the kernel follows."""


def is_lock(resource: str) -> bool:
    """Return whether a resource is a lock."""
    return resource.startswith(f"{_LOCK} ")


def conflict(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    """Return whether the order of two steps with these effects may make a difference."""
    # Most steps have no resource in common. This test is much faster than the loop.
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
    """Return the effects of a step that consists of two calls."""
    combined = dict(first)
    for resource, kind in second.items():
        is_same_kind = combined.get(resource, kind) == kind
        if is_same_kind:
            combined[resource] = kind
        else:
            # Two different kinds become WRITE, which conflicts with every kind.
            combined[resource] = WRITE
    return combined


def effects_of(
    event: str,
    paths: Sequence[str],
    facts: Mapping[str, Any],
    root: str,
    is_lock_free: Callable[[int], bool],
) -> Effects:
    """Return the effects that a call would have now on paths in the directory `root`.

    `event` is the name of the call, such as `os.rename`. `is_lock_free` is a function that returns
    whether the lock of a descriptor is free.
    """
    collector = _EffectCollector(root)
    if event in _CHANGE_NAMES:
        collector.change_names(_changed_names(event, paths), succeeds=_would_succeed(event, paths))
    elif event == "open":
        collector.open(paths[0], facts["flags"])
    elif event in ("fcntl.flock", BLOCKED):
        # BLOCKED comes before another attempt to take a lock that was not free.
        collector.add(paths[0], _LOCK, _effect_on_lock(facts, is_lock_free))
    elif event == "os.close":
        # It is an event only if it releases the lock of the file.
        collector.add(paths[0], _LOCK, WRITE)
    elif event in _ASPECTS_BY_EVENT:
        follows_links = event not in _READ_LINKS_THEMSELVES
        for path, aspects in zip(paths, _ASPECTS_BY_EVENT[event], strict=False):
            collector.use_file(path, aspects, follows_links=follows_links)
    elif event == "os.kill":
        # It is an event only if it tests whether a process is alive.
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
    """Return False if the call would fail because a name exists already, or does not exist."""
    if event in _CREATE_NAMES:
        return not os.path.lexists(paths[-1])
    return os.path.lexists(paths[0])


def _effect_on_lock(facts: Mapping[str, Any], is_lock_free: Callable[[int], bool]) -> str:
    """Return the effect of a flock() call: WRITE, READ or TAKE."""
    operation = facts["operation"]
    if operation & fcntl.LOCK_UN:
        return WRITE
    if operation & fcntl.LOCK_NB and not is_lock_free(facts["descriptor"]):
        # An attempt that fails changes nothing.
        return READ
    return TAKE


_WITHOUT_EFFECT = frozenset({"os.fsync", "os.fdatasync", "os.sync"})
"""The calls that change nothing that another process can see."""

_CREATE_NAMES = frozenset({"os.link", "os.mkdir", "os.symlink"})
"""The calls that fail if the name exists already."""
_CHANGE_NAMES = _CREATE_NAMES | {"os.remove", "os.rename", "os.rmdir"}
"""The calls that create, rename or remove names."""

# The effects of common kinds of calls on the file at their only path: the aspects that they use.
_READS_ATTRIBUTES = ({_ATTRIBUTES: READ},)
_WRITES_ATTRIBUTES = ({_ATTRIBUTES: WRITE},)
_READS_CONTENT = ({_CONTENT: READ},)
_WRITES_CONTENT = ({_CONTENT: WRITE, _ATTRIBUTES: WRITE},)

_ASPECTS_BY_EVENT: dict[str, tuple[dict[str, str], ...]] = {
    "os.access": _READS_ATTRIBUTES,
    "os.chmod": _WRITES_ATTRIBUTES,
    "os.chown": _WRITES_ATTRIBUTES,
    "os.copy_file_range": (*_READS_CONTENT, *_WRITES_CONTENT),
    "os.fstat": _READS_ATTRIBUTES,
    "os.getxattr": _READS_ATTRIBUTES,
    "os.listdir": ({_ENTRIES: READ},),
    "os.listxattr": _READS_ATTRIBUTES,
    "os.lseek": _READS_ATTRIBUTES,
    "os.lstat": _READS_ATTRIBUTES,
    "os.posix_fallocate": _WRITES_CONTENT,
    "os.pread": _READS_CONTENT,
    "os.preadv": _READS_CONTENT,
    "os.pwrite": _WRITES_CONTENT,
    "os.pwritev": _WRITES_CONTENT,
    "os.read": _READS_CONTENT,
    "os.readlink": _READS_ATTRIBUTES,
    "os.readv": _READS_CONTENT,
    "os.removexattr": _WRITES_ATTRIBUTES,
    "os.scandir": ({_ENTRIES: READ},),
    "os.sendfile": (*_WRITES_CONTENT, *_READS_CONTENT),
    "os.setxattr": _WRITES_ATTRIBUTES,
    "os.splice": (*_READS_CONTENT, *_WRITES_CONTENT),
    "os.stat": _READS_ATTRIBUTES,
    "os.truncate": _WRITES_CONTENT,
    "os.utime": _WRITES_ATTRIBUTES,
    "os.write": _WRITES_CONTENT,
    "os.writev": _WRITES_CONTENT,
}
"""The effects of each call on the file at each of its paths."""

_READ_LINKS_THEMSELVES = frozenset({"os.lstat", "os.readlink"})
"""The calls that read a symbolic link itself instead of the file to which it leads."""


class _EffectCollector:
    """Collects the effects of one call on paths in the directory `root`."""

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
        """Add the creation, renaming or removal of these names. A call that fails only reads."""
        for path in paths:
            if succeeds:
                self.change_name(path)
            else:
                self._find_file(path, follows_links=False)

    def change_name(self, path: str) -> None:
        """Add the creation, renaming or removal of the file with this name."""
        path = self._find_file(path, follows_links=False)
        for aspect in _ALL_ASPECTS:
            self.add(path, aspect, WRITE)
        self.add(os.path.dirname(path), _ENTRIES, ADD)
        self.add(os.path.dirname(path), _ATTRIBUTES, ADD)

    def open(self, path: str, flags: int) -> None:
        """Add the opening of a file, which may create or empty it."""
        if flags & os.O_CREAT and not os.path.lexists(path):
            self.change_name(path)
            return
        # With O_EXCL, the call fails, because the file exists.
        empties_file = flags & os.O_TRUNC and not flags & os.O_EXCL
        aspects = {}
        if empties_file:
            aspects = {_CONTENT: WRITE, _ATTRIBUTES: WRITE}
        follows_links = not flags & os.O_NOFOLLOW
        self.use_file(path, aspects, follows_links=follows_links)

    def use_file(self, path: str, aspects: Mapping[str, str], *, follows_links: bool) -> None:
        """Add the use of the file that this path leads to."""
        path = self._find_file(path, follows_links=follows_links)
        for aspect, kind in aspects.items():
            self.add(path, aspect, kind)

    def use_in_any_way(self, paths: Sequence[str]) -> None:
        """Add the effects of an unknown call, such as an SQL statement: it may change anything."""
        for path in paths:
            self.use_file(path, {_CONTENT: WRITE, _ATTRIBUTES: WRITE}, follows_links=True)
        if not paths:
            self.effects["anything"] = WRITE

    def _find_file(self, path: str, *, follows_links: bool) -> str:
        """Return the path of the file that a call finds, and add reads of the names on the way.

        If `follows_links`, this is the path to which symbolic links lead.
        """
        for _ in range(_MAX_LINKS):
            directory, name = os.path.split(path)
            path = os.path.join(os.path.realpath(directory), name)
            self._read_names(path)
            if not follows_links or not os.path.islink(path):
                break
            link_target = os.readlink(path)
            path = os.path.join(os.path.dirname(path), link_target)
        return path

    def _read_names(self, path: str) -> None:
        """Add a read of the name of a file, and of the names of the directories around it."""
        self.add(path, _NAME, READ)
        directory = os.path.dirname(path)
        # The directories directly in the root belong to the lab. They are never renamed.
        while os.path.dirname(directory).startswith(f"{self._root}/"):
            self.add(directory, _NAME, READ)
            directory = os.path.dirname(directory)
