"""What an assistant may reach and how much it may ask for: folders, rows, bytes, seconds.

Paths are resolved, links included, and must then lie under one of the roots. A history is a file or
a folder under a root, or an address that the person who started the server has allowed. What is
refused names what is allowed, so that a model can ask again.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ensue.errors import UsageError

LIBRARY_BYTES = 1_000_000
"""The most bytes of the text of a library, or of a file of cases."""
EVENT_BYTES = 64_000_000
"""The most bytes of a file of events."""


@dataclass(frozen=True, slots=True)
class Reach:
    """`histories` are addresses of databases that may be asked beside files under the roots.

    `ontology` are the files of the one that rules and filters ask.
    """

    roots: tuple[Path, ...]
    histories: tuple[str, ...] = ()
    ontology: tuple[Path, ...] = ()
    most_rows: int = 1_000
    most_bytes: int = 200_000
    seconds: float = 30.0

    def file(self, given: str, most_bytes: int) -> Path:
        """A file under a root that is not too large. Raises `UsageError`."""
        path = self.inside(given)
        if not path.is_file():
            near = sorted(each.name for each in path.parent.glob(f"*{path.suffix}"))[:8]
            beside = f"; beside it there is {', '.join(near)}" if near else ""
            raise UsageError(f"there is no file `{given}`{beside}")
        size = path.stat().st_size
        if size > most_bytes:
            raise UsageError(
                f"`{given}` has {size:,} bytes, and {most_bytes:,} are allowed: give a part of it"
            )
        return path

    def inside(self, given: str) -> Path:
        """A path under a root; a relative one counts from the first root that has it."""
        tried = [Path(given)] if Path(given).is_absolute() else [r / given for r in self.roots]
        allowed = [each.resolve() for each in tried if self.holds(each)]
        if not allowed:
            shown = ", ".join(f"`{each}`" for each in self.roots)
            raise UsageError(f"`{given}` lies outside of what may be read: give a path in {shown}")
        return next((each for each in allowed if each.exists()), allowed[0])

    def holds(self, path: Path) -> bool:
        try:
            resolved = path.resolve()
        except (OSError, RuntimeError, ValueError):
            return False
        return any(resolved.is_relative_to(root) for root in self.roots)

    def history(self, url: str) -> str:
        """The address of a history that is there. Raises `UsageError`."""
        if url in self.histories:
            return url
        scheme, _, place = url.partition(":")
        if scheme not in ("sqlite", "parquet") or not place:
            known = "".join(f", `{each}`" for each in self.histories)
            raise UsageError(
                f"`{url}` is no history that may be asked: give `sqlite:FILE` or"
                f" `parquet:FOLDER`{known}"
            )
        path = self.inside(place)
        if not (path.is_file() if scheme == "sqlite" else path.is_dir()):
            raise UsageError(f"there is no history `{url}`: `ensue history add` makes one")
        return f"{scheme}:{path}"

    def rows(self, asked: int) -> int:
        """How many rows are answered with. Raises `UsageError` for a number that is not allowed."""
        if not 1 <= asked <= self.most_rows:
            raise UsageError(f"`limit` is {asked}, and 1 to {self.most_rows:,} is allowed")
        return asked
