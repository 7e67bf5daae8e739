"""Options that are texts or paths, read as they stand.

Typer asks pydantic for the value of every option, given or not, and loading pydantic takes longer
than most commands take to run. Here an option that was not given has no value, and texts and paths
are taken as they are; numbers and choices are left to Typer. A Typer that works otherwise is left
alone.
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
    """Stands where Typer keeps how the value of an option is made."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        convert = _PLAIN.get(param.type_descriptor.annotation)
        if convert is not None:
            return convert(value)
        param._runtime_param = None
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def read_plainly(command: Any) -> None:
    """Have the options of a command, and of the commands below it, read plainly."""
    for each in command.params:
        _read_plainly(each)
    help_of = command.get_help_option

    def plain_help(ctx: Any) -> Any:
        option = help_of(ctx)
        if option is not None:
            _read_plainly(option)
        return option

    command.get_help_option = plain_help
    for each in getattr(command, "commands", {}).values():
        read_plainly(each)


def _read_plainly(option: Any) -> None:
    if getattr(option, "_runtime_param", option) is None:
        option._runtime_param = _PlainValue()
