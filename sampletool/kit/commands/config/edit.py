"""Edit a settings file in a text editor, without losing what other processes change meanwhile.

1. Read the file, and note its version.
2. Open a private copy in the editor. No lock is held now: the user may take an hour.
3. Check the copy when the editor is closed: it must be TOML, and the tool must accept its settings.
4. Lock the file. If it is still at the version of step 1, replace it, else fail.

If step 3 or 4 fails, the copy is kept and the error names it, so that no typing is lost. Nothing is
removed that cannot be compared with the file of step 1.
"""

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from ...context import PATIENT_WAIT_SECONDS, Context
from ...contract.command_spec import CommandSpec
from ...contract.errors import InvalidValues, Mistake, ToolError, VersionConflict
from ...contract.expected import EXPECTED, to_tool_error
from ...contract.response import Effect
from ...global_options import DryRunOption
from ...places import toml_lock
from ...program import PROGRAM
from ...safety.atomic_file import read_regular
from ...safety.errors import InvalidToml, NotFlushed, UnsafePath
from ...safety.toml_file import (
    TomlEdit,
    TomlText,
    editing_toml,
    parse,
    read_toml,
    refuse_unwritable,
    resolve,
)
from ...safety.toml_limits import MAX_TOML_BYTES
from ...settings.known import all_settings, check
from ...settings.precedence import Scope, ScopeName, table_of
from ...settings.toml_key import parse_key, value_at
from ._editor import (
    EditorFailed,
    NoEditor,
    NoTerminal,
    find_editor,
    refuse_without_terminal,
    run_editor,
)
from ._options import ChangeUserFileOption, scope_to_change


class ChangedMeanwhile(VersionConflict):
    """Another process changed the file while it was open in the editor."""

    sentence = (
        "Another process changed {path} while it was open in the editor. "
        "Your version was not written."
    )  # fmt: skip

    def __init__(self, *, path: str, copy: str, expected: str, actual: str) -> None:
        """Name both files. `expected` is the version that was opened."""
        # VersionConflict itself has a message about --if-version, which this command does not have.
        ToolError.__init__(self, path=path, copy=copy, expected=expected, actual=actual)
        diff = shlex.join(["diff", path, copy])
        self.with_paths_in_hint(f"To see the difference, run `{diff}`.")


spec = CommandSpec(
    effect="settings",
    errors=(NoTerminal, NoEditor, EditorFailed, ChangedMeanwhile),
    locks=("settings file",),
    reads=("settings",),
    destroys="The settings that you remove or replace in the editor.",
    needs_terminal=True,
    examples=("config edit", "config edit --global"),
)


@dataclass(frozen=True)
class Edited:
    """A settings file after the edit."""

    effect: Effect
    scope: ScopeName
    path: str
    version: str

    def lines(self) -> list[str]:
        """Return what happened to the file."""
        return [f"{self.path}: {self.effect}"]


def command(
    ctx: typer.Context,
    in_user_file: ChangeUserFileOption = False,
    dry_run: DryRunOption = False,
) -> Edited:
    """Edit a settings file in your text editor.

    Outside of a workspace, this edits your personal settings. It opens a copy of the file in
    $VISUAL or $EDITOR. When you close the editor, your changes are checked and saved. If they are
    invalid, or if another process has changed the file in the meantime, nothing is saved. Your copy
    is kept, and the error tells you where to find it.

    With --dry-run, your changes are checked and then discarded.
    """
    context: Context = ctx.obj
    refuse_without_terminal()
    editor = find_editor()
    scope = scope_to_change(context, in_user_file)
    before = read_toml(resolve(scope.path))
    # Without this, the user would learn only after an hour in the editor that nothing can be saved.
    refuse_unwritable(before)
    with _private_copy(before, context) as copy:
        run_editor(editor, copy, context)
        after = _read_copy(copy, editor)
        if after.text == before.text:
            _refuse_other_files(copy, editor)
            return _result("unchanged", scope, before.version)
        _check(scope, after)
        if dry_run:
            return _result(_effect_of_writing(before), scope, before.version)
        with _lock_for_writing(context, scope, before) as file:
            _refuse_if_changed(file.before, before, copy)
            file.text = after.text
            file.write()
            return _result(_effect_of_writing(before), scope, file.version)


@contextmanager
def _private_copy(before: TomlText, context: Context) -> Iterator[Path]:
    """Yield the path of a copy that only this user can read.

    Remove the copy when the block ends. But if the block fails and the user has typed something,
    keep the copy, and name it in the hint and in the facts of the error.
    """
    directory = Path(tempfile.mkdtemp(prefix=f"{PROGRAM}-edit-"))
    copy = directory / before.path.name
    try:
        copy.write_text(before.text, encoding="utf-8", newline="")
    except OSError:
        # For example, the disk is full. The user has not typed anything yet.
        _remove(directory, context)
        raise
    try:
        yield copy
    except NotFlushed:
        # The settings file has the new text. Only its directory could not be flushed.
        _remove(directory, context)
        raise
    except EXPECTED as error:
        kept = _find_typed(copy, before)
        if kept is None:
            _remove(directory, context)
            raise
        tool_error = to_tool_error(error)
        hint = f"{before.path} is unchanged. Your version is in {kept}."
        if isinstance(error, InvalidToml):
            # The usual hint is about the settings file. Here, the mistake is in the copy.
            command_line = shlex.join(["cp", str(copy), str(before.path)])
            hint = f"{hint} Correct it there, then run `{command_line}`."
        else:
            hint = f"{tool_error.suggestion} {hint}"
        raise tool_error.with_kept_copy(str(kept), hint) from error
    _remove(directory, context)


def _find_typed(copy: Path, before: TomlText) -> Path | None:
    """Return the path of what the user has typed, or None if the user has typed nothing.

    This is the copy if it has another text than the original. It is the directory of the copy if
    that has other files, or if the copy is there but cannot be read.
    """
    directory = copy.parent
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return None
    except OSError:
        return directory
    if not names:
        return None
    try:
        content = read_regular(copy, MAX_TOML_BYTES, follow=False)
    except (UnsafePath, OSError):
        # The editor has put something else there, such as a link or a FIFO.
        return directory
    if content != before.text.encode():
        return copy
    if names != [copy.name]:
        # An editor that was terminated may have saved unwritten text in a recovery file.
        return directory
    return None


def _remove(directory: Path, context: Context) -> None:
    """Remove the directory of the copy. If this fails, warn: the command has done its work."""
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        context.warn("COPY_LEFT", f"Cannot remove {directory}. Remove it yourself.")


def _read_copy(copy: Path, editor: list[str]) -> TomlText:
    """Return what the editor has saved. Raise EditorFailed if it removed the file."""
    after = read_toml(copy)
    if after.links == 0:
        raise EditorFailed(editor=editor[0], reason="removed the file")
    return after


def _refuse_other_files(copy: Path, editor: list[str]) -> None:
    """Raise EditorFailed if there are other files next to the copy, which the user did not change.

    The user may have saved the changes under another name.
    """
    if os.listdir(copy.parent) != [copy.name]:
        raise EditorFailed(
            editor=editor[0],
            reason="created other files, but did not change the file that it opened",
            suggestion="Save your changes under the name that the editor has opened.",
        )


def _check(scope: Scope, after: TomlText) -> None:
    """Raise InvalidToml or InvalidValues, with all mistakes, if the tool cannot use the text."""
    table = table_of(scope, after)
    mistakes: list[Mistake] = []
    for name, known in all_settings().items():
        for written_name in (name, *known.get("former_names", ())):
            value = value_at(table, parse_key(written_name))
            if value is None:
                continue
            try:
                check(name, value, str(after.path))
            except InvalidValues as error:
                mistakes += error.mistakes
    if mistakes:
        raise InvalidValues(*mistakes)


def _lock_for_writing(
    context: Context,
    scope: Scope,
    before: TomlText,
) -> AbstractContextManager[TomlEdit]:
    """Return a context manager that locks the file for writing."""
    try:
        parse(before.text)
    except ValueError:
        # The file was not TOML before the edit. `context.editing` would fail, because it looks for
        # a lock_timeout in the settings. Then this command could not be used to repair the file.
        return editing_toml(scope.path, PATIENT_WAIT_SECONDS, context.make_lock, toml_lock)
    return context.editing(scope.path)


def _refuse_if_changed(now: TomlText, before: TomlText, copy: Path) -> None:
    if now.version != before.version or (now.links == 0) != (before.links == 0):
        raise ChangedMeanwhile(
            path=str(now.path),
            copy=str(copy),
            expected=before.version,
            actual=now.version,
        )


def _effect_of_writing(before: TomlText) -> Effect:
    if before.links == 0:
        return "created"
    return "updated"


def _result(effect: Effect, scope: Scope, version: str) -> Edited:
    return Edited(effect=effect, scope=scope.name, path=str(scope.path), version=version)
