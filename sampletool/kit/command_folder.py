"""A Typer group whose commands are the files of a folder, imported on demand.

The file name is the command name and a sub-folder is a group: adding a command is adding a file. A file provides
`spec` and `command`. All mistakes of a command line are collected, on every level, for one answer.
"""

import os
import re
from copy import copy
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from .contract.command_spec import written_out
from .contract.errors import CommandIncomplete, Mistake, UsageMistakes, did_you_mean
from .global_options import (
    HelpRequested,
    command_of,
    describe,
    described_options,
    global_options,
    parameters_of,
    take_given,
)
from .parts import TOP
from .program import PROGRAM, __version__

if TYPE_CHECKING:
    from .command_line import GlobalOptions
    from .context import Context
    from .contract.fields import FieldTree
    from .contract.help_page import Item, Page

_MISTAKES = f"{__name__}.mistakes"


class _Collecting:
    """A command that takes the options of `global_options`, and goes on after a mistake to find the others."""

    params: Any
    help: Any
    hints: Any
    """The annotations of its parameters."""
    spec: Any = None
    _may_have_options = True
    """Whether a word that is parsed here may be an option: making those of all commands takes as long as parsing."""

    def get_params(self, ctx: Any) -> Any:
        """Those of the command, then what every command takes."""
        everywhere = global_options() if self._may_have_options else ()
        return [self._lenient.get(param.name, param) for param in (*self.params, *everywhere)]

    @cached_property
    def _lenient(self) -> dict[str, Any]:
        """What takes the place of a parameter whose mistake has been seen."""
        return {}

    @cached_property
    def described(self) -> list[dict[str, Any]]:
        return describe(self.params, self.hints)

    def usage(self, command_path: str) -> str:
        arguments = [(param["metavar"], param["required"]) for param in self.described if "flags" not in param]
        pieces = [metavar if is_required or metavar[0] == "[" else f"[{metavar}]" for metavar, is_required in arguments]
        below = ["COMMAND [ARGS]..."] if isinstance(self, TyperGroup) else []
        return " ".join([command_path, "[OPTIONS]", *pieces, *below])

    def page(self, ctx: Any) -> "Page":
        """What every command takes is listed once, by the whole tool; else nobody would find a command's own."""
        from .contract.help_page import Page, option_item

        sections = self.commands_listed(ctx) if isinstance(self, CommandFolder) else []
        for title, has_flags in ("Arguments", False), ("Options", True):
            sections.append((title, [option_item(each) for each in self.described if ("flags" in each) == has_flags]))
        names = ", ".join(option["flags"][0] for option in described_options())
        footer = f"Every command also takes {names}: see `{PROGRAM} --help`."
        if ctx.parent is None:
            everywhere = [option_item(option) for option in described_options()]
            sections.append(("Every command takes, before or after its name", everywhere))
            footer = f"`{PROGRAM} help COMMAND` shows the options of a command and examples."
        examples = [(written_out(example), "") for example in (self.spec.examples if self.spec else ())]
        return Page(self.usage(ctx.command_path), self.help or "", [*sections, ("Examples", examples)], footer)

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        if ctx.parent is None and args[:1] == ["help"]:
            args = [*args[1:], "--help"]
        command = ".".join(ctx.command_path.split()[1:])
        command_line = replace(ctx.obj.command_line, command=command, spec=self.spec)
        ctx.obj.understand(command_line)
        mistakes: list[Mistake] = ctx.meta.setdefault(_MISTAKES, [])
        own = args[:1] if isinstance(self, TyperGroup) else args  # behind the name of a command all belongs to that
        self._may_have_options = ctx.resilient_parsing or not own or any(word[:1] == "-" for word in own)
        left: list[str] | None = list(args)
        rest: list[str] = []
        while left is not None:
            try:
                rest = super().parse_args(ctx, list(left))  # type: ignore[misc]
                break
            except typer.TyperException as error:
                mistake = _understand(error, [*self.described, *described_options()])
                if mistake.code != "EXTRA_ARGUMENT" or not any(m.code == "UNKNOWN_OPTION" for m in mistakes):
                    mistakes.append(mistake)
                if param := getattr(error, "param", None):
                    self._lenient[param.name] = taking = copy(param)
                    taking.process_value = lambda ctx, value: value
                else:
                    left = _leave_out(left, mistake.param)
        if self._may_have_options:
            given = take_given(ctx)
            asks_for_help = given.pop("help", False)
            if ctx.params.get("raw") and command_line.options.format is None:
                given.setdefault("format", "raw")
            command_line = command_line.with_options(given)
            ctx.obj.understand(replace(command_line, dry_run=bool(ctx.params.get("dry_run"))))
            if asks_for_help and not ctx.resilient_parsing:
                raise HelpRequested(self.page(ctx).text)
            if ctx.parent is None and ctx.params.get("version"):
                raise HelpRequested(lambda width, bold: __version__)
        if mistakes and not isinstance(self, TyperGroup):
            is_about_arguments = any(mistake.code in ("MISSING", "EXTRA_ARGUMENT") for mistake in mistakes)
            raise UsageMistakes(mistakes, ctx.command_path, self.usage(ctx.command_path) if is_about_arguments else "")
        return rest


class FileCommand(_Collecting, TyperCommand):
    """One command file."""

    def invoke(self, ctx: Any) -> Any:
        context: Context = ctx.obj
        if context.options.fields is not None:
            context.select_fields(self._read_fields(ctx))
        context.begin()
        return super().invoke(ctx)

    def _read_fields(self, ctx: Any) -> "FieldTree":
        from .contract.fields import read_fields
        from .contract.manifest import schema_of

        options: GlobalOptions = ctx.obj.options
        assert options.fields is not None
        fields, mistakes = read_fields(options.fields, schema_of(self.hints.get("return")))
        if options.format in ("text", "raw"):
            mistakes.append(Mistake("--fields", "INVALID_VALUE", "--fields is of JSON, not of text"))
        if mistakes:
            raise UsageMistakes(mistakes, ctx.command_path)
        return fields

    @cached_property
    def hints(self) -> dict[str, Any]:
        return get_type_hints(self.callback, include_extras=True)


class CommandFolder(_Collecting, TyperGroup):
    """One folder of command files."""

    def __init__(self, packages: list[str], name: str, about: str | None, options: Any = None) -> None:
        self._packages, self.hints = packages, options or {}
        found = [(name, package) for package in packages for name in _names_in(package)]
        self._package_of = dict(sorted(found))
        names: Any = dict.fromkeys(self._package_of)
        super().__init__(
            name=name,
            help=about,
            params=parameters_of(self.hints) if options else [],
            add_help_option=False,
            rich_markup_mode=None,
            commands=names,
        )

    def commands_listed(self, ctx: Any) -> "list[tuple[str, list[Item]]]":
        """Those of each part below its own heading: the largest part first, the kit last."""
        sections = []
        sources = list(self._package_of.values())
        for package in [*sorted(self._packages[1:], key=sources.count, reverse=True), self._packages[0]]:
            names = [name for name, other in self._package_of.items() if other == package]
            title = "Commands" if ctx.parent else first_line(import_module(package).__doc__).rstrip(".")
            sections.append((title, [(name, first_line(self.get_command(ctx, name).help)) for name in names]))
        return sections

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = load(self._package_of[cmd_name], cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        command = self.get_command(ctx, args[0])
        if command is None and not ctx.resilient_parsing:
            self._fail(ctx, "UNKNOWN_COMMAND", f"No such command: {ctx.command_path} {args[0]}", args[0])
        return args[0] if command else None, command, args[1:]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.TyperException as error:
            if vars(error).get("ctx") != ctx:
                raise
            if ctx.parent is None and not ctx.meta[_MISTAKES]:
                raise HelpRequested(self.page(ctx).text) from None
            self._fail(ctx, "MISSING", f"A command is missing after `{ctx.command_path}`")

    def _fail(self, ctx: Any, code: str, message: str, typed: str | None = None) -> NoReturn:
        known = list(self.commands)
        all_of_them = f"The commands are {', '.join(known)}; see `{ctx.command_path} --help`."
        flags = [flag for option in (*self.described, *described_options()) for flag in option["flags"]]
        suggestion = did_you_mean(typed or "", [*known, *flags]) or all_of_them
        mistake = Mistake("COMMAND", code, message, typed, suggestion)
        raise UsageMistakes([*ctx.meta[_MISTAKES], mistake], ctx.command_path)


def load(package: str, name: str) -> FileCommand | CommandFolder:
    module = import_module(f"{package}.{name.replace('-', '_')}")
    if hasattr(module, "__path__"):
        return CommandFolder([module.__name__], name, module.__doc__)
    missing = [part for part in ("spec", "command") if not hasattr(module, part)]
    if missing:
        raise CommandIncomplete(file=module.__name__.replace(".", "/") + ".py", missing=missing)
    command: FileCommand = command_of(module.command, FileCommand)
    command.spec = module.spec
    return command


def first_line(text: str | None) -> str:
    return (text or "").partition("\n")[0]


def _names_in(package: str) -> list[str]:
    """Read from its folder: importing what each part has would cost every call more than reading the settings."""
    files = os.listdir(f"{TOP}/{package.replace('.', '/')}")
    names = (name.removesuffix(".py") for name in files if name.endswith(".py") or "." not in name)
    return [name.replace("_", "-") for name in names if not name.startswith("_")]


def _understand(error: Any, known: list[dict[str, Any]]) -> Mistake:
    """What Typer says about one mistake, in our words."""
    option, param = getattr(error, "option_name", None), getattr(error, "param", None)
    metavar: dict[str, Any] = {
        flag: each.get("metavar") for each in known for flag in each.get("flags", (each["name"],))
    }
    if option is not None and hasattr(error, "possibilities"):
        is_number = re.fullmatch(r"-[0-9.]+", option)
        dashes = f"If {option} is the start of a value, write `--` before it."
        suggestion = dashes if is_number else did_you_mean(option, [flag for flag in metavar if flag[0] == "-"])
        return Mistake(option, "UNKNOWN_OPTION", f"No such option: {option}", suggestion=suggestion or None)
    message = error.format_message().rstrip(".")
    if option is not None:
        hint = f"Write {option} {metavar[option]}." if metavar.get(option) else None
        return Mistake(option, "INVALID_VALUE", message, suggestion=hint)
    if param is not None:
        name = param.opts[0] if param.param_type_name == "option" else metavar[param.name]
        code = "MISSING" if type(error).__name__ == "MissingParameter" else "INVALID_VALUE"
        return Mistake(name, code, message, *(getattr(error.__cause__, fact, None) for fact in ("value", "suggestion")))
    return Mistake("ARGUMENTS", "EXTRA_ARGUMENT", message)


def _leave_out(args: list[str], name: str) -> list[str] | None:
    """The command line without this mistake, to look for the next; None when there is nothing left to look at."""
    behind = args.index("--") if "--" in args else len(args)
    for position, token in enumerate(args[:behind]):
        if token.split("=")[0] == name or (len(name) == 2 and re.match(f"-[^-]*{re.escape(name[1])}", token)):
            return args[:position] + args[position + 1 :]
    return None
