"""Build commands and parameters of Typer from functions and annotations.

Only the public interface of Typer is used, so that every version from 0.27 to 0.29 works: annotated
parameters, `typer.Typer().command()`, and subclasses of its command classes.
"""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature
from typing import Any

import typer
from typer.core import TyperCommand
from typer.main import get_command

from .contract.manifest import describe_param

TyperParameter = Any
"""An option or an argument of a command. Typer has no public name for the class of both."""


def command_of(function: Callable[..., Any], command_class: type[TyperCommand]) -> Any:
    """Return the command that Typer builds from a function. It is a `command_class`."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(cls=command_class, add_help_option=False)(function)
    return get_command(app)


def parameters_of(annotations: Mapping[str, Any]) -> list[TyperParameter]:
    """Return the parameters that Typer builds from annotations. Their default is None."""

    def function(**_values: object) -> None:
        """Do nothing: Typer only reads the signature."""

    signature = Signature(
        [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
            for name, annotation in annotations.items()
        ]
    )
    function.__signature__ = signature  # type: ignore[attr-defined]
    parameters: list[TyperParameter] = command_of(function, TyperCommand).params
    return parameters


def describe(
    parameters: list[TyperParameter],
    annotations: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Return the descriptions of parameters that the manifest and the help show."""
    return [describe_param(param, annotations[param.name]) for param in parameters]
