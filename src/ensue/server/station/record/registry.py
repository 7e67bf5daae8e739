"""Libraries and their versions, the audit log and webhooks: the tables beside the journal.

In come the text of a library and its author; out go rows. A version, once written, is never
changed; which one is in force, and whether it runs, is told apart. Everything that writes is called
inside of `ServerJournal.write` by the thread of the line. Whether a text is right is not checked
here.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ensue.server.station.record.journal import ServerJournal

ACTIONS: Final = (
    "put", "roll back", "enable", "disable", "delete", "put webhook", "delete webhook", "reload",
)  # fmt: skip
"""What the audit log tells of."""


class Version(NamedTuple):
    name: str
    version: int
    text: str
    at: int
    author: str
    note: str


class InForce(NamedTuple):
    """The version of a library that is in force, and whether it is enabled."""

    name: str
    version: int
    enabled: bool


class Saved(NamedTuple):
    """The state of a library's run after the entry `seq`, and what it has counted until then."""

    name: str
    version: int
    seq: int
    state: bytes
    counts: bytes


class Audited(NamedTuple):
    number: int
    at: int
    author: str
    action: str
    subject: str
    detail: str


class SavedWebhook(NamedTuple):
    name: str
    author: str
    settings: bytes
    seq: int


class Registry:
    def __init__(self, journal: ServerJournal) -> None:
        self._journal = journal

    # --- libraries ------------------------------------------------------------------------------

    def in_force(self) -> list[InForce]:
        rows = self._journal.ask("SELECT name, version, enabled FROM libraries ORDER BY name")
        return self._journal.typed(
            InForce, [(name, version, bool(enabled)) for name, version, enabled in rows]
        )

    def versions(self, name: str) -> list[Version]:
        """The versions of a library, the latest first."""
        rows = self._journal.ask(
            "SELECT name, version, text, at, author, note FROM versions WHERE name = ?"
            " ORDER BY version DESC",
            (name,),
        )
        return self._journal.typed(Version, rows)

    def version(self, name: str, version: int) -> Version | None:
        rows = self._journal.ask(
            "SELECT name, version, text, at, author, note FROM versions"
            " WHERE name = ? AND version = ?",
            (name, version),
        )
        return self._journal.typed(Version, rows)[0] if rows else None

    def add_version(self, version: Version, keep: int) -> None:
        """Write a version, and give up the oldest beyond `keep`."""
        writer = self._journal.writer
        writer.execute("INSERT INTO versions VALUES (?, ?, ?, ?, ?, ?)", version)
        writer.execute(
            "DELETE FROM versions WHERE name = ? AND version <= ?",
            (version.name, version.version - keep),
        )

    def put_in_force(self, name: str, version: int, enabled: bool) -> None:
        self._journal.writer.execute(
            "INSERT OR REPLACE INTO libraries VALUES (?, ?, ?)", (name, version, int(enabled))
        )

    def remove(self, name: str, keep: int) -> None:
        """Take a library out of force. Its versions stay, so that it can be put back.

        Of libraries that are out of force, so many keep their versions: those changed last.
        """
        writer = self._journal.writer
        writer.execute("DELETE FROM libraries WHERE name = ?", (name,))
        writer.execute(
            "DELETE FROM versions WHERE name IN ("
            " SELECT name FROM versions WHERE name NOT IN (SELECT name FROM libraries)"
            " GROUP BY name ORDER BY max(at) DESC, name LIMIT -1 OFFSET ?)",
            (keep,),
        )
        self.forget_state(name)

    # --- the state of runs ----------------------------------------------------------------------

    def save_state(self, saved: Saved) -> None:
        self._journal.writer.execute(
            "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?)", saved
        )

    def forget_state(self, name: str) -> None:
        self._journal.writer.execute("DELETE FROM snapshots WHERE name = ?", (name,))

    def state(self, name: str) -> Saved | None:
        rows = self._journal.ask(
            "SELECT name, version, seq, state, counts FROM snapshots WHERE name = ?", (name,)
        )
        return self._journal.typed(Saved, rows)[0] if rows else None

    # --- the audit log --------------------------------------------------------------------------

    def audit(self, at: int, author: str, action: str, subject: str, detail: str = "") -> None:
        self._journal.writer.execute(
            "INSERT INTO audit (at, author, action, subject, detail) VALUES (?, ?, ?, ?, ?)",
            (at, author, action, subject, detail),
        )

    def audited(self, limit: int = 100, before: int | None = None) -> list[Audited]:
        rows = self._journal.ask(
            "SELECT number, at, author, action, subject, detail FROM audit"
            " WHERE number < ? ORDER BY number DESC LIMIT ?",
            (2**62 if before is None else before, limit),
        )
        return self._journal.typed(Audited, rows)

    # --- webhooks -------------------------------------------------------------------------------

    def webhooks(self) -> list[SavedWebhook]:
        rows = self._journal.ask("SELECT name, author, settings, seq FROM webhooks ORDER BY name")
        return self._journal.typed(SavedWebhook, rows)

    def put_webhook(self, webhook: SavedWebhook) -> None:
        self._journal.writer.execute("INSERT OR REPLACE INTO webhooks VALUES (?, ?, ?, ?)", webhook)

    def remove_webhook(self, name: str) -> None:
        self._journal.writer.execute("DELETE FROM webhooks WHERE name = ?", (name,))

    def advance_webhooks(self, positions: dict[str, int]) -> None:
        values: list[Any] = [(seq, name) for name, seq in positions.items()]
        self._journal.writer.executemany("UPDATE webhooks SET seq = ? WHERE name = ?", values)
