"""A Typer group whose commands are the files of a folder. Adding a command is adding a file.

The name of a file is the name of its command, and a folder in the folder is a group of commands.
A name that Python reserves has an underscore: `import_.py` is the command `import`. Only the file
of the command that runs is imported.

A command file defines `spec`, what the command promises, and `command`, a function with annotated
parameters for Typer. FileCommand and CommandFolder are Typer's classes for a command and a group,
with three changes: they take the global options, collect all mistakes of a command line (see
lenient_parsing.py), and show our help pages. The parser tells the context what it understands (see
parse_level.py).
"""

import os
from collections.abc import Mapping
from importlib import import_module
from keyword import iskeyword
from typing import TYPE_CHECKING, Any, get_type_hints

from typer.core import TyperCommand, TyperGroup

from .contract.command_spec import CommandSpec
from .contract.errors import CommandIncomplete, Mistake, UsageMistakes, did_you_mean
from .contract.fields import read_fields
from .contract.manifest import schema_of
from .global_options import HelpRequested, described_options
from .lenient_parsing import CommandLevel
from .parse_level import parse_level
from .part_discovery import directory_of
from .program import PROGRAM, __version__
from .settings_notices import show_settings
from .typer_parameters import TyperParameter, command_of, describe, parameters_of

if TYPE_CHECKING:
    from .contract.help_page import ItemSection, Page


class FileCommand(TyperCommand):
    """The command of one file."""

    context_class = CommandLevel
    spec: CommandSpec

    @property
    def hints(self) -> dict[str, Any]:
        """The annotations of the parameters, and of what the command returns."""
        return get_type_hints(self.callback, include_extras=True)

    @property
    def described(self) -> list[dict[str, Any]]:
        """What the manifest says about the parameters."""
        return describe(self.params, self.hints)

    def get_params(self, ctx: Any) -> list[TyperParameter]:
        """Return the parameters to parse: those of the command, then the global options."""
        level: CommandLevel = ctx
        return level.parameters(self.params)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments and options of this command, and return those that are left over.

        The words before, such as `tool config`, were parsed by groups, which only collect mistakes.
        If there are mistakes, raise UsageMistakes with all of them.
        """
        level: CommandLevel = ctx
        parse_as_typer_does = super().parse_args
        left_over = parse_level(self, level, args, parse_as_typer_does)
        mistakes = level.mistakes + self._select_fields(level)
        if mistakes:
            raise self._usage_error(level, mistakes)
        return left_over

    def _usage_error(self, level: CommandLevel, mistakes: list[Mistake]) -> UsageMistakes:
        """Return the error for a command line with these mistakes.

        It shows the usage of the command if there are too few or too many arguments.
        """
        path = level.command_path
        for mistake in mistakes:
            if mistake.code in ("MISSING", "EXTRA_ARGUMENT"):
                return UsageMistakes(mistakes, path, self.usage(path))
        return UsageMistakes(mistakes, path)

    def _select_fields(self, level: CommandLevel) -> list[Mistake]:
        """Tell the context which fields --fields selects. Return the mistakes in it."""
        options = level.obj.options
        if options.fields is None:
            return []
        fields, mistakes = read_fields(options.fields, schema_of(self.hints.get("return")))
        if options.format in ("text", "raw"):
            message = f"--fields needs JSON output, but the format is {options.format}"
            mistakes.append(Mistake("--fields", "INVALID_VALUE", message))
        if not mistakes:
            level.obj.select_fields(fields)
        return mistakes

    def invoke(self, ctx: Any) -> Any:
        """Run the command, and return its result."""
        level: CommandLevel = ctx
        context = level.obj
        context.begin()
        if self.spec.deprecated:
            message = f"`{level.command_path}` is deprecated. {self.spec.deprecated}"
            context.warn("DEPRECATED", message)
        if context.options.verbose > 1:
            show_settings(context.settings, context.notice)
        return super().invoke(ctx)

    def usage(self, command_path: str) -> str:
        """Return the usage of the command, such as `tool config get [OPTIONS] KEY`."""
        # Importing this at the top would cost every command 2 ms.
        from .command_help import usage_line

        return usage_line(command_path, self.described, is_group=False)

    def page(self, level: CommandLevel) -> "Page":
        """Return the help page of the command."""
        # Importing this at the top would cost every command 2 ms.
        from .command_help import command_page

        return command_page(level.command_path, self.help or "", self.described, self.spec)


class CommandFolder(TyperGroup):
    """The commands of one folder. The commands of the whole tool are in a folder of each part."""

    context_class = CommandLevel
    spec: CommandSpec | None = None
    """None: a group promises nothing."""

    def __init__(
        self,
        packages: list[str],
        name: str,
        about: str | None,
        option_annotations: Mapping[str, Any] | None = None,
    ) -> None:
        """Find the commands in the folders of these packages, without importing them.

        `option_annotations` describes the options that only this group of commands takes. Typer
        creates options from annotations, here as for the parameters of a function.
        """
        self.packages = packages
        self.hints: Mapping[str, Any] = {}
        if option_annotations is not None:
            self.hints = option_annotations
        found: dict[str, str] = {}
        for package in packages:
            for command_name in _names_in(package):
                found[command_name] = package
        self._package_of = dict(sorted(found.items()))
        # Each name gets its command when the command is needed.
        not_loaded: dict[str, Any] = dict.fromkeys(self._package_of)
        super().__init__(
            name=name,
            help=about,
            params=parameters_of(self.hints) if self.hints else [],
            commands=not_loaded,
            add_help_option=False,
            rich_markup_mode=None,
            # `invoke` notices that no command follows, so Typer need not.
            invoke_without_command=True,
        )

    @property
    def described(self) -> list[dict[str, Any]]:
        """What the manifest says about the options that only this folder takes."""
        return describe(self.params, self.hints)

    def get_params(self, ctx: Any) -> list[TyperParameter]:
        """Return the options to parse: those of the folder, then the global options."""
        level: CommandLevel = ctx
        return level.parameters(self.params)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the options in front of the name of the command. Return the words after them.

        Mistakes are only collected here, because the words after them may contain more mistakes.
        """
        level: CommandLevel = ctx
        is_whole_tool = level.parent is None
        if is_whole_tool and args[:1] == ["help"]:
            # `tool help config` means `tool config --help`.
            args = [*args[1:], "--help"]
        parse_as_typer_does = super().parse_args
        words_after_options = parse_level(self, level, args, parse_as_typer_does)
        if level.params.pop("version", False):
            # The version is printed like a help page: as text, in place of a response.
            raise HelpRequested(_name_and_version)
        return words_after_options

    def invoke(self, ctx: Any) -> Any:
        """Run the command that follows, and return its result."""
        level: CommandLevel = ctx
        result = super().invoke(level)
        if level.invoked_subcommand is not None:
            return result
        # No command follows. The bare `tool` shows help, as people expect. But a program that asked
        # for JSON gets an error in JSON, and so does a caller who made another mistake.
        is_whole_tool = level.parent is None
        wants_json = level.obj.options.format in ("json", "jsonl")
        if is_whole_tool and not wants_json and not level.mistakes:
            raise HelpRequested(self.page(level).text)
        message = f"Missing command after `{level.command_path}`"
        raise self._usage_error(level, Mistake("COMMAND", "MISSING", message))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name, or None if there is none. Import its file if needed."""
        if cmd_name in self.commands and self.commands[cmd_name] is None:
            self.commands[cmd_name] = load(self._package_of[cmd_name], cmd_name)
        return self.commands.get(cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Return the name of the command that follows, the command, and the words after its name.

        `tool help …` leads to a help page, and the former name of a command to the command. Raise
        UsageMistakes if there is no such command.
        """
        level: CommandLevel = ctx
        is_whole_tool = level.parent is None
        if is_whole_tool and args[0] not in self.commands:
            args = self._resolve_help(level, args)
        name, *words_after_name = args
        command = self.get_command(level, name)
        if command is None and level.resilient_parsing:
            # The shell asks for completions. A wrong word is not an error then.
            return None, None, words_after_name
        if command is None:
            name = self._resolve_former_name(level, args)
            command = self.get_command(level, name)
        return name, command, words_after_name

    def _resolve_former_name(self, level: CommandLevel, args: list[str]) -> str:
        """Return the present name of a command that is called by a former one, and warn about it.

        Raise UsageMistakes if no command had this name.
        """
        former_name = args[0]
        name = self._find_former_name(former_name)
        if name is None:
            raise self._unknown_command(level, args)
        path = level.command_path
        message = f"`{path} {former_name}` is now called `{path} {name}`."
        level.obj.warn("DEPRECATED", message)
        return name

    def _resolve_help(self, level: CommandLevel, args: list[str]) -> list[str]:
        """Return the words with `--help` at their end in place of `help` at their beginning.

        So `help config set` means the same as `config set --help`. Raise HelpRequested if the words
        ask for the page of the tool or of a help topic.
        """
        # Importing this at the top would cost every command 2 ms.
        from .help_topics import TOPICS

        if args[0] == "help":
            # `parse_args` has not seen this one, because an option is in front of it, as in
            # `tool --color never help output`.
            args = [*args[1:], "--help"]
            names_nothing = all(word.startswith("-") for word in args)
            if names_nothing:
                raise HelpRequested(self.page(level).text)
        if args[0] in TOPICS and _asks_for_help(args):
            raise HelpRequested(TOPICS[args[0]]().text)
        return args

    def _find_former_name(self, former_name: str) -> str | None:
        """Return the present name of a command that had another name, or None."""
        for name in self._package_of:
            spec = self.get_command(None, name).spec
            if spec is not None and former_name in spec.former_names:
                return name
        return None

    def _unknown_command(self, level: CommandLevel, args: list[str]) -> UsageMistakes:
        """Return the error for a word that is not a command. Its hint has a similar word."""
        name = args[0]
        is_whole_tool = level.parent is None
        if is_whole_tool and _asks_for_help(args):
            message = f"No such command or help topic: {name}"
        else:
            message = f"No such command: {level.command_path} {name}"
        possible_words = self._possible_words(level, args)
        hint = did_you_mean(name, possible_words)
        mistake = Mistake("COMMAND", "UNKNOWN_COMMAND", message, name, hint)
        return self._usage_error(level, mistake)

    def _possible_words(self, level: CommandLevel, args: list[str]) -> list[str]:
        """Return the words that a caller may have meant instead of an unknown command."""
        words = list(self.commands)
        # For example, `tool version` instead of `tool --version`.
        for option in (*self.described, *described_options()):
            words += option["flags"]
        is_whole_tool = level.parent is None
        if is_whole_tool:
            # Importing this at the top would cost every command 2 ms.
            from .help_topics import TOPICS

            for topic in TOPICS:
                # `tool help outptu` needs the topic, and `tool outptu` needs `help` too.
                words.append(topic if _asks_for_help(args) else f"help {topic}")
        return words

    def _usage_error(self, level: CommandLevel, mistake: Mistake) -> UsageMistakes:
        """Return the error of a command line that ends with this mistake.

        It also has the mistakes that the parser found in the words before.
        """
        path = level.command_path
        if not mistake.suggestion:
            names = ", ".join(self.commands)
            hint = f"The commands are {names}. For help, run `{path} --help`."
            mistake = mistake._replace(suggestion=hint)
        return UsageMistakes([*level.mistakes, mistake], path)

    def usage(self, command_path: str) -> str:
        """Return the usage of the group, such as `tool config [OPTIONS] COMMAND [ARGS]...`."""
        # Importing this at the top would cost every command 2 ms.
        from .command_help import usage_line

        return usage_line(command_path, self.described, is_group=True)

    def page(self, level: CommandLevel) -> "Page":
        """Return the help page of the tool, or of a group."""
        # Importing this at the top would cost every command 2 ms.
        from .command_help import group_page, tool_page

        about = self.help or ""
        if level.parent is not None:
            return group_page(level.command_path, about, self._command_section("Commands"))
        sections = []
        for package in self.packages:
            title = first_line(import_module(package).__doc__).rstrip(".")
            sections.append(self._command_section(title, package))
        # The first package has the commands that every tool has, such as `config`. They come last,
        # below the commands that this tool is for. The largest section of those comes first.
        common_section = sections.pop(0)
        sections.sort(key=lambda section: len(section.items), reverse=True)
        sections.append(common_section)
        return tool_page(about, self.described, sections)

    def _command_section(self, title: str, package: str | None = None) -> "ItemSection":
        """Return the list of the commands in one package, or in all of them."""
        # Importing this at the top would cost every command 2 ms.
        from .command_help import command_item
        from .contract.help_page import ItemSection

        items = []
        for name, package_of_command in self._package_of.items():
            if package is not None and package_of_command != package:
                continue
            command = self.get_command(None, name)
            items.append(command_item(name, command.help or "", command.spec))
        return ItemSection(title, items)


def load(package: str, name: str) -> FileCommand | CommandFolder:
    """Import the file or the folder of a command, and return its command.

    Raise CommandIncomplete if the file does not define everything that it must define.
    """
    module = import_module(f"{package}.{module_name(name)}")
    if hasattr(module, "__path__"):
        return CommandFolder([module.__name__], name, module.__doc__)
    missing = [member for member in ("spec", "command") if not hasattr(module, member)]
    if missing:
        file = module.__name__.replace(".", "/") + ".py"
        raise CommandIncomplete(file=file, missing=missing)
    command: FileCommand = command_of(module.command, FileCommand)
    command.spec = module.spec
    return command


def first_line(text: str | None) -> str:
    """Return the first line of a docstring, or "" if there is none."""
    return (text or "").partition("\n")[0]


def _names_in(package: str) -> list[str]:
    """Return the names of the commands in a package: those of its files and folders."""
    # The files are not imported: importing all commands would take half a second.
    names = []
    for file_name in os.listdir(directory_of(package)):
        is_module = file_name.endswith(".py")
        is_folder = "." not in file_name
        if (is_module or is_folder) and not file_name.startswith("_"):
            names.append(command_name(file_name.removesuffix(".py")))
    return names


def command_name(module: str) -> str:
    """Return the name of a module's command: `dry-run` for `dry_run`, `import` for `import_`."""
    without_underscore = module.removesuffix("_")
    if iskeyword(without_underscore):
        return without_underscore
    return module.replace("_", "-")


def module_name(name: str) -> str:
    """Return the name of the module of a command. This is the reverse of `command_name`."""
    if iskeyword(name):
        return f"{name}_"
    return name.replace("-", "_")


def _asks_for_help(words: list[str]) -> bool:
    return "--help" in words or "-h" in words


def _name_and_version(_width: int, _bold: bool) -> str:
    return f"{PROGRAM} {__version__}"
