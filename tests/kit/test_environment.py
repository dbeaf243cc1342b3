"""sampletool/kit/environment.py: the table of the variables is complete."""

import re

from sampletool.kit.environment import ENVIRONMENT
from sampletool.kit.program import PACKAGE, env_variable
from sampletool.kit.project import ROOT
from sampletool.kit.settings.known import all_settings

_NAMED_IN_CODE = re.compile(r'\benv_variable\("([A-Z_]+)"\)')


def test_the_variables_that_are_no_settings_are_in_the_table() -> None:
    assert list(ENVIRONMENT) == [
        "TOOL_SESSION_ID",
        "TOOL_TIMEOUT",
        "TOOL_TRACE_ID",
        "TOOL_CONFIG_DIR",
        "TOOL_STATE_DIR",
        "TOOL_CEILING_DIRECTORIES",
        "TMPDIR",
        "CI",
        "NO_COLOR",
        "FORCE_COLOR",
        "CLICOLOR_FORCE",
        "CLICOLOR",
        "TERM",
        "COLUMNS",
    ]


def test_every_variable_that_the_context_reads_is_in_the_table_or_a_setting() -> None:
    code = (ROOT / PACKAGE / "kit" / "context.py").read_text()
    settings = {env_variable(name) for name in all_settings()}

    read = {env_variable(name) for name in _NAMED_IN_CODE.findall(code)}

    assert len(read) >= 3
    assert read - settings - ENVIRONMENT.keys() == set()


def test_each_meaning_is_a_sentence() -> None:
    for name, meaning in ENVIRONMENT.items():
        assert meaning[0].isupper() or meaning[0].isdigit() or meaning.startswith("dumb: "), name
        assert meaning.endswith((".", "]")), name
