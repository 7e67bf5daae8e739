"""Help without the words of Python: `LIB...` instead of `{LIB}...` and `LIB <list[Path]>`.

Typer shows the annotation of every argument. Here an argument has its metavar in the usage line and
in the list, as our help texts speak of it. A Typer that works otherwise is left alone.
"""

from __future__ import annotations

from typing import Any


def tell_plainly(command: Any) -> None:
    """Have the arguments of a command, and of the commands below it, shown by their metavars."""
    for each in command.params:
        if getattr(each, "param_type_name", "") == "argument" and hasattr(each, "display_name_raw"):
            each.display_type_rich = _no_type
            each._usage_display_name = _usage_of(each)
    for each in getattr(command, "commands", {}).values():
        tell_plainly(each)


def _no_type(ctx: Any) -> str:  # noqa: ARG001
    return ""


def _usage_of(argument: Any) -> Any:
    def usage() -> str:
        name: str = argument.display_name_raw
        several = argument.nargs != 1 and "..." not in name
        return f"{name}..." if several else name

    return usage
