"""A cache of parsers: the tables of a grammar, kept between processes.

In come the text of a grammar and Lark's options; out goes a parser. To build its tables takes a
fifth of a second, a good part of the start of a command. So they are kept as plain data (in the
format of Python's compiled modules) in the cache folder of the user; the name of the file is a
digest of the grammar, its options and the version of Lark. If the folder cannot be written, or the
file cannot be read, the parser is built.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import lark
from lark import Lark
from lark.grammar import Rule
from lark.lexer import TerminalDef

FOLDER = "ENSUE_CACHE"
"""The environment variable with another cache folder; empty for no cache."""


def parser_of(grammar: str, **options: Any) -> Lark:
    """The parser of a grammar, from its cached tables if there are any."""
    place = _place(grammar, options)
    if place is None:
        return Lark(grammar, **options)
    with suppress(Exception):
        # Whatever is wrong with cached tables, they can be built again.
        return _loaded(place)
    built = Lark(grammar, **options)
    with suppress(OSError):
        _keep(built, place)
    return built


def _place(grammar: str, options: dict[str, Any]) -> Path | None:
    given = os.environ.get(FOLDER)
    if given == "":
        return None
    named = given or os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(named) if named else Path.home() / ".cache"
    except RuntimeError:
        # The process has no home directory.
        return None
    said = repr((sys.implementation.cache_tag, lark.__version__, sorted(options.items()), grammar))
    digest = hashlib.sha256(said.encode()).hexdigest()[:32]
    return folder / "ensue" / f"parser-{digest}"


def _loaded(place: Path) -> Lark:
    data, memo = marshal.loads(place.read_bytes())
    parser: Lark = Lark._load_from_dict(data, memo)  # type: ignore[no-untyped-call]
    return parser


def _keep(built: Lark, place: Path) -> None:
    data, memo = built.memo_serialize([TerminalDef, Rule])
    written = marshal.dumps((data, memo))
    place.parent.mkdir(parents=True, exist_ok=True)
    # Other processes may read or write at the same moment.
    with tempfile.NamedTemporaryFile(dir=place.parent, delete=False) as file:
        file.write(written)
    Path(file.name).replace(place)
