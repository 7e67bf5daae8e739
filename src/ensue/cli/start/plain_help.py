"""Help without Python annotations: `LIB...` instead of `{LIB}...` and `LIB <list[Path]>`.

Typer shows the annotation of every argument. Here the usage line and the list of arguments show the
metavar, which the help texts use as well. With a Typer of another structure nothing is changed.
"""

from __future__ import annotations

from typing import Any


def show_metavars(command: Any) -> None:
    """Show the arguments of a command and its subcommands by their metavars."""
    for each in command.params:
        if getattr(each, "param_type_name", "") == "argument" and hasattr(each, "display_name_raw"):
            each.display_type_rich = _no_type
            each._usage_display_name = _usage_of(each)
    for each in getattr(command, "commands", {}).values():
        show_metavars(each)


def _no_type(ctx: Any) -> str:  # noqa: ARG001
    return ""


def _usage_of(argument: Any) -> Any:
    def usage() -> str:
        name: str = argument.display_name_raw
        several = argument.nargs != 1 and "..." not in name
        return f"{name}..." if several else name

    return usage
