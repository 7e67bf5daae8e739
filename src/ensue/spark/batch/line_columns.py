"""Typed columns that lines of CSV or JSON become, where columns can hold all that rules read.

In come a library and the names in a file: the header of CSV, or for JSON what types declare. Out go
the columns, each with its kind; None where events must stay whole, because an attribute has no
one kind, a rule reads what no column holds, or an event is sent on. Workers read the lines
accordingly (`spark.worker.files.line_chunks`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from ensue.errors import UsageError
from ensue.events.cloudevents import TEXT_ATTRIBUTES
from ensue.events.columns import CONTEXT_COLUMNS, extension_column, is_attribute_column
from ensue.events.mapping import Mapping as UserMapping
from ensue.events.sources.contents import Content, Given, content_of
from ensue.events.types import TypeSystem
from ensue.library import Library
from ensue.spark.plan import plan_of
from ensue.spark.sql.scan import names_read
from ensue.spark.worker.files.line_chunks import KINDS
from ensue.spark.worker.files.line_places import first_line, name_of
from ensue.spark.worker.files.line_records import header_names

Fields = tuple[tuple[str, str], ...]
"""Names of columns, each with its kind."""
FIRST_LINES = 16
"""A log of Zeek says in fewer lines how it is to be read."""


def first_lines(lines: DataFrame) -> tuple[str, list[bytes]]:
    """The name of a file and its first lines, of the lines of all files."""
    rows = lines.filter(sf.col("start") == 0).select("file", "value").head(FIRST_LINES)
    head = [bytes(row["value"] or b"") for row in rows if row["file"] == rows[0]["file"]]
    return (name_of(rows[0]["file"]) if rows else ""), head


def csv_header(
    name: str, head: Sequence[bytes], where: str, given: Given
) -> tuple[tuple[str, ...], Content]:
    """The names of the columns of CSV, and how its cells are read, by the beginning of a file."""
    first = first_line(head[0]) if head else b""
    text = b"\n".join([first, *head[1:], b""])
    cells = content_of(name, text, given)
    if cells.header is not None:
        return cells.header, cells
    if not first.strip() and any(each.strip() for each in head):
        raise UsageError(
            f"the first line of `{name}` is blank, where executors look for the names of columns:"
            " take it out, or choose another engine"
        )
    if not first.strip():
        raise UsageError(f"{where} is empty: the first line of a CSV file names its columns")
    return header_names(first, cells.delimiter, name), cells


def mapped_names(header: Sequence[str], mapping: UserMapping) -> tuple[str, ...]:
    """The names of columns as events have them."""
    moved = mapping.moved(header)
    kept = [name for name in header if name not in moved and name not in mapping.columns]
    if mapping.type is not None:
        kept = [name for name in kept if name != "type"] + ["type"]
    return (*kept, *mapping.columns)


def csv_fields(library: Library, names: Sequence[str]) -> Fields | None:
    """The columns of events in CSV by name, each with its kind; None if events must be whole.

    A cell of an attribute that a type does not declare is text, which a column of numbers cannot
    hold; a `data` cell may hold anything; and an event that is sent on is sent on whole.
    """
    types = library.checked.types
    kinds = _kinds(names, types)
    if kinds is None or "data" in names or not _columns_suffice(library, names):
        return None
    texts = [name for name in names if not is_attribute_column(name) and name != "specversion"]
    context = dict.fromkeys(("id", "source", "type", *(n for n in texts if n != "time")))
    attributes = [(n, kinds.get(n, "string")) for n in names if is_attribute_column(n)]
    return (*((name, "string") for name in context), ("time", "timestamp"), *attributes)


def json_fields(library: Library, mapping: UserMapping) -> Fields | None:
    """As `csv_fields`, for JSON: what types declare, and what else of CloudEvents is read."""
    types = library.checked.types
    declared = {name for each in types for name in types.attributes(each.name)}
    kinds = _kinds(tuple(declared), types)
    if kinds is None or not all(map(is_attribute_column, declared)):
        return None
    rules = [rule for group in plan_of(library.checked).groups for rule in group.rules]
    read = {name for rule in rules for name in names_read(rule)}
    extensions = [n for n in mapping.columns if n.startswith("ce_")]
    known = declared | CONTEXT_COLUMNS | {n.removeprefix("ce_") for n in extensions}
    if not read <= known or not _columns_suffice(library, tuple(declared)):
        return None
    texts = [extension_column(name) for name in sorted(TEXT_ATTRIBUTES & read)]
    context = ("id", "source", "type", *texts, *extensions)
    attributes = [(name, kinds[name]) for name in sorted(declared)]
    return (*((name, "string") for name in context), ("time", "timestamp"), *attributes)


def _kinds(names: Sequence[str], types: TypeSystem) -> dict[str, str] | None:
    """The kind of each declared attribute among the columns; None if one column cannot hold it.

    An attribute may be of different kinds in different types, a sequence, or an integer of 64 bits
    without a sign, for none of which there is a column.
    """
    found: dict[str, str] = {}
    for declared in types:
        for name, type_ in types.attributes(declared.name).items():
            if name not in names or not is_attribute_column(name):
                continue
            if type_.kind not in KINDS or type_.name == "unsigned long long":
                return None
            if found.setdefault(name, type_.kind) != type_.kind:
                return None
    return found


def _columns_suffice(library: Library, names: Sequence[str]) -> bool:
    """Whether columns hold all that rules read, as the types of their ports declare it."""
    types = library.checked.types
    declared = {name for each in types for name in types.attributes(each.name)}
    rules = [rule for group in plan_of(library.checked).groups for rule in group.rules]
    if any(rule.sends_on for rule in rules):
        return False
    for rule in rules:
        for port in rule.outside_ports:
            for type_name in types.subtypes(port.type):
                own = types.attributes(type_name)
                if not own.keys() <= set(names):
                    return False
                if not set(names_read(rule)) & declared <= own.keys():
                    return False
    return True
