"""Search help, errors and pages for words that readers found strange, and for long sentences.

Blind readers compared our texts with those of other projects. These words sounded translated to
them, or could mean several things. Everything else about good English is for readers to judge.
"""

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module

from sampletool.kit.app import root_command
from sampletool.kit.commands.manifest import describe, find_commands
from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.library_errors import TABLE, from_library_error
from sampletool.kit.environment import ENVIRONMENT
from sampletool.kit.help_topics import TOPICS
from sampletool.kit.part_discovery import offered
from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from sampletool.kit.safety.errors import (
    DeadlineExceeded,
    Deadlock,
    Interrupted,
    LockTimeout,
    PathFailure,
    SafetyError,
)
from sampletool.kit.safety.holder import Holder, Owners
from sampletool.kit.settings.known import SETTINGS

STRANGE = (
    "nobody's",
    "anew",
    "for ever",
    "stands in",
    "lies in",
    "is asked for",
    "goes on",
    "tells of",
)
MAX_SENTENCE_WORDS = 30

_STRANGE = re.compile(rf"\b({'|'.join(STRANGE)})\b", re.IGNORECASE)
_CODE_BLOCK = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`]+`")
_FACT = re.compile(r"\{[^}]*\}")
_END_OF_SENTENCE = re.compile(r"(?<=[.?!])\s+|\n\s*\n|\n\s*\* ")


@dataclass(frozen=True)
class Text:
    """A text that users read."""

    place: str
    """The file or folder that it comes from, from the root of the project."""
    title: str
    """Which of the texts of this place it is. It is empty for a page."""
    words: str
    is_page: bool = False
    """Whether it is a page. A page may have long sentences."""

    def problems(self) -> list[str]:
        """Return what to change, each as a sentence."""
        where = f"{self.place}: {self.title}" if self.title else self.place
        found = []
        # In a code block, there may be the words of another program.
        words = _CODE_BLOCK.sub("", self.words)
        one_line = " ".join(words.split())
        for match in _STRANGE.finditer(one_line):
            around = one_line[max(match.start() - 40, 0) : match.end() + 40]
            found.append(f"{where}: replace “{match[0]}” in “{around}”")
        if self.is_page:
            return found
        for sentence in long_sentences(words):
            found.append(f"{where}: make shorter sentences of “{sentence}”")
        return found


def long_sentences(text: str) -> list[str]:
    """Return the sentences with more than 30 words. A piece of code counts as one word."""
    simple = _FACT.sub("FACT", _CODE.sub("CODE", text))
    found = []
    for sentence in _END_OF_SENTENCE.split(simple):
        if len(sentence.split()) > MAX_SENTENCE_WORDS:
            found.append(" ".join(sentence.split()))
    return found


def all_texts() -> list[Text]:
    """Return the help, the errors and the pages of the kit and of the parts."""
    return [*help_texts(), *error_texts(), *pages()]


def help_texts() -> Iterator[Text]:
    """Yield what help and the manifest say about commands, options, settings and variables."""
    yield from _texts_of_commands()
    yield from _texts_of_settings()
    for topic, build_page in TOPICS.items():
        # Each item of a topic begins on a line of its own.
        page = build_page().text(1000, False).replace("\n", "\n\n")
        yield Text(f"{PACKAGE}/kit", f"topic {topic}", page)


def _texts_of_commands() -> Iterator[Text]:
    groups = set()
    for name, command in find_commands(root_command()):
        module = command.callback.__module__
        place = _folder_of(module)
        groups.add(module.rpartition(".")[0])
        described = describe(name, command)
        for member in ("summary", "help", "destroys"):
            yield Text(place, f"{member} of {name}", described.get(member) or "")
        for param in [*described["arguments"], *described["options"]]:
            yield Text(place, f"{param['name']} of {name}", param.get("help", ""))
    for group in sorted(groups):
        yield Text(_folder_of(group), f"help of {group}", import_module(group).__doc__ or "")


def _texts_of_settings() -> Iterator[Text]:
    """Yield what is said about settings and variables."""
    for setting, facts in SETTINGS.items():
        yield Text(f"{PACKAGE}/kit", f"setting {setting}", facts["help"])
    for module_of_part in offered("settings"):
        for setting, facts in module_of_part.SETTINGS.items():
            yield Text(_folder_of(module_of_part.__name__), f"setting {setting}", facts["help"])
    for variable, meaning in ENVIRONMENT.items():
        yield Text(f"{PACKAGE}/kit", f"variable {variable}", meaning)


def error_texts() -> Iterator[Text]:
    """Yield the message, the hint and the meaning of each error.

    The commands must be imported, so that their errors exist. `help_texts` does this.
    """
    for error_class in sorted(_subclasses(ToolError), key=lambda found: found.__name__):
        place = _folder_of(error_class.__module__)
        if place.split("/")[0] != PACKAGE:
            continue
        yield Text(place, f"message of {error_class.__name__}", error_class.sentence)
        yield Text(place, f"hint of {error_class.__name__}", error_class.advice)
        yield Text(place, f"meaning of {error_class.__name__}", error_class.__doc__ or "")
    for library_class, row in TABLE.items():
        place = f"{PACKAGE}/kit"
        yield Text(place, f"meaning of {library_class.__name__}", row.meaning)
        for sample in _samples(library_class):
            error = from_library_error(sample)
            yield Text(place, f"message of {library_class.__name__}", error.message)
            yield Text(place, f"hint of {library_class.__name__}", error.suggestion)


def pages() -> Iterator[Text]:
    """Yield the pages of the project, and those that are next to the code of the kit."""
    files = [ROOT / "README.md", ROOT / "AGENTS.md", *(ROOT / "docs").rglob("*.md")]
    files += (ROOT / PACKAGE / "kit").glob("*.md")
    for file in sorted(files):
        yield Text(file.relative_to(ROOT).as_posix(), "", file.read_text(), is_page=True)


def _samples(error_class: type[Exception]) -> list[SafetyError]:
    """Return errors of this class with all texts that depend on their facts."""
    if issubclass(error_class, PathFailure):
        return [error_class("/a/path", "it is a link")]
    running = Holder(pid=7, state="running", verified=False, command="config.set", age_ms=1000)
    orphaned = Holder(pid=7, state="orphaned", verified=True, children=(8, 9))
    locked = [
        LockTimeout("build", Owners([])),
        LockTimeout("build", Owners([running])),
        LockTimeout("build", Owners([orphaned])),
        LockTimeout("build", Owners([running, running], shared=True)),
    ]
    samples: dict[type[Exception], list[SafetyError]] = {
        LockTimeout: [*locked],
        Deadlock: [Deadlock("build")],
        Interrupted: [
            Interrupted(signal.SIGTERM),
            Interrupted(signal.SIGTERM, uncertain_change="the order"),
        ],
        DeadlineExceeded: [
            DeadlineExceeded(1, waiting_for=locked[1]),
            DeadlineExceeded(1, uncertain_change="the order"),
        ],
    }
    return samples[error_class]


def _subclasses(error_class: type[ToolError]) -> set[type[ToolError]]:
    found = set()
    for subclass in error_class.__subclasses__():
        found.add(subclass)
        found |= _subclasses(subclass)
    return found


def _folder_of(module: str) -> str:
    """Return the folder of the kit or of the part that a module belongs to."""
    return "/".join(module.split(".")[:2])
