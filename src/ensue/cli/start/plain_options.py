"""Conversion of options that are texts or paths, without pydantic.

Typer converts the value of every option by pydantic, also of options that were not given, and
loading pydantic takes longer than most commands take to run. Here texts and paths are converted
directly, and options that were not given not at all; numbers and choices are left to Typer. With a
Typer of another structure nothing is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any


def _paths(values: Iterable[str]) -> list[Path]:
    return [Path(each) for each in values]


_PLAIN: Mapping[Any, Callable[[Any], Any]] = {
    str: str,
    Path: Path,
    list[str]: list,
    list[Path]: _paths,
}


class _PlainValue:
    """Replaces Typer's converter of the value of an option."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        convert = _PLAIN.get(param.type_descriptor.annotation)
        if convert is not None:
            return convert(value)
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def convert_plainly(command: Any) -> None:
    """Convert the options of a command and its subcommands without pydantic where possible."""
    for each in command.params:
        _convert_plainly(each)
    help_of = command.get_help_option

    def plain_help(ctx: Any) -> Any:
        option = help_of(ctx)
        if option is not None:
            _convert_plainly(option)
        return option

    command.get_help_option = plain_help
    for each in getattr(command, "commands", {}).values():
        convert_plainly(each)


def _convert_plainly(option: Any) -> None:
    if getattr(option, "_runtime_param", option) is None:
        option._runtime_param = _PlainValue()
