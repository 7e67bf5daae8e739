"""A server as its clients call it: which one, with which token, and its answers in plain words.

Servers have names, called contexts, in a file of the user's configuration folder. A command takes
`--url`, else `--context`, else `ENSUE_URL` of the environment, else the context in use, else the
address on which `ensue serve` listens by default. A token stands in a context by reference
(`${env:NAME}`, `${file:PATH}`), or comes from `ENSUE_TOKEN`. Refusals become errors with the detail
that the server gives. Which version of a library was seen last stands in a file of the user's
state folder, so that a command replaces nothing else.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensue.configuration.secrets import replaced
from ensue.configuration.toml import read_settings_file
from ensue.errors import EnsueError, UsageError

if TYPE_CHECKING:
    import httpx

DEFAULT_URL = "http://127.0.0.1:8420"
TRIES = 10
COME_AGAIN = (429, 502, 503, 504)
"""Answers of a server, or of a proxy before it, that is not there for the moment."""
PATIENCE_SECONDS = 600.0
"""How long a stream that is lost is tried again."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0


class RequestRefusedError(EnsueError):
    """A request that the server has refused, with its problem document."""

    def __init__(self, status: int, document: Mapping[str, Any]) -> None:
        self.status = status
        self.document = dict(document)
        super().__init__(status, self.document)

    def __str__(self) -> str:
        lines = [f"the server refuses ({self.status}): {self.document.get('detail', '')}"]
        lines += [each["shown"] for each in self.document.get("diagnostics", [])]
        lines += [f"  {each}" for each in self.document.get("problems", [])]
        if self.status == 401:
            lines.append(
                "  commands take it from `ENSUE_TOKEN`, or from a context: `ensue context`"
            )
        return "\n".join(lines)


class UnreachableError(UsageError):
    """A server that does not answer."""


# --- contexts -----------------------------------------------------------------------------------


def contexts_file() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(folder) / "ensue" / "contexts.toml"


def read_contexts() -> dict[str, Any]:
    """`{"in_use": name, "context": {name: {"url": ..., "token": ...}}}`."""
    file = contexts_file()
    if not file.exists():
        return {"in_use": "", "context": {}}
    found = read_settings_file(file, "correct it, or delete it").tables
    read = {"in_use": found.get("in_use", ""), "context": found.get("context", {})}
    if problem := _problem_of(read):
        raise UsageError(f"`{file}`: {problem}: correct it, or delete it")
    return read


def _problem_of(contexts: Mapping[str, Any]) -> str:
    """What is wrong with the contexts of a file, if anything is."""
    if not isinstance(contexts["in_use"], str):
        return "`in_use` is no text"
    if not isinstance(contexts["context"], dict):
        return "`context` is no table"
    for name, each in contexts["context"].items():
        if not isinstance(each, dict) or not isinstance(each.get("url"), str):
            return f"context `{name}` has no `url`"
        if not all(isinstance(value, str) for value in each.values()):
            return f"context `{name}` has a value that is no text"
    return ""


def write_contexts(contexts: Mapping[str, Any]) -> None:
    file = contexts_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [f"in_use = {json.dumps(contexts['in_use'])}"]
    for name, each in sorted(contexts["context"].items()):
        lines += ["", f"[context.{json.dumps(name)}]"]
        lines += [f"{key} = {json.dumps(value)}" for key, value in each.items()]
    _replace(file, "\n".join(lines) + "\n")


def _replace(file: Path, text: str) -> None:
    """Write a file for this user alone. The old text stays until the new one is written."""
    fresh = file.with_name(f".{file.name}.{os.getpid()}.part")
    fresh.touch(mode=0o600)
    try:
        fresh.write_text(text, "utf-8")
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)


# --- what was seen ------------------------------------------------------------------------------


def _seen_file() -> Path:
    folder = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(folder) / "ensue" / "seen.json"


def _seen_tags() -> dict[str, str]:
    try:
        found = json.loads(_seen_file().read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _resolved(text: str) -> str:
    def refuse(problem: str) -> None:
        raise UsageError(f"the token of the server cannot be had: {problem}")

    return replaced(text, refuse)


# --- requests -----------------------------------------------------------------------------------


class Server:
    """One server, for the length of a command or of a view."""

    def __init__(self, url: str | None = None, context: str | None = None) -> None:
        address, token = _chosen(url, context)
        driver = _httpx()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.url = address.rstrip("/")
        self._errors: type[Exception] = driver.HTTPError
        self.client: httpx.Client = driver.Client(base_url=self.url, headers=headers, timeout=60)

    def ask(self, method: str, path: str, **given: Any) -> Any:
        """The JSON of an answer. Where the server is busy, it is asked again when it says so."""
        return self._asked(method, path, given)[0]

    def ask_and_see(self, method: str, path: str, seen: str, **given: Any) -> Any:
        """As `ask`; what the answer shows is remembered as what was seen of `seen`."""
        found, tag = self._asked(method, path, given)
        tags = _seen_tags()
        key = f"{self.url} {seen}"
        if tags.get(key) != tag:
            tags.pop(key, None)
            # Where nothing can be written, nothing is remembered.
            with suppress(OSError):
                file = _seen_file()
                file.parent.mkdir(parents=True, exist_ok=True)
                _replace(file, json.dumps(tags | ({key: tag} if tag else {})))
        return found

    def seen(self, what: str) -> str | None:
        """The tag of what was seen last, if anything was."""
        return _seen_tags().get(f"{self.url} {what}")

    def _asked(self, method: str, path: str, given: dict[str, Any]) -> tuple[Any, str | None]:
        """The JSON of an answer, and its tag."""
        answer = self._answered(method, path, given)
        tries = 1
        while answer.status_code == 429 and tries < TRIES:
            time.sleep(min(60, int(answer.headers.get("retry-after", "1"))))
            answer = self._answered(method, path, given)
            tries += 1
        if answer.status_code >= 400:
            raise RequestRefusedError(answer.status_code, _document(answer))
        return answer.json() if answer.content else None, answer.headers.get("ETag")

    def _answered(self, method: str, path: str, given: dict[str, Any]) -> httpx.Response:
        try:
            return self.client.request(method, path, **given)
        except self._errors as error:
            raise self._unreachable(error) from None

    def stream(
        self, parameters: Mapping[str, str], on_break: Callable[[str], None]
    ) -> Iterator[tuple[str, str, str]]:
        """Kind, id and JSON of each delivery, for ever; goes on from the last id by itself.

        Where the connection breaks, `on_break` is told so, and when it is there again. A server
        that cannot be reached from the beginning is an error at once.
        """
        given = dict(parameters)
        lost_at: float | None = None
        is_first, pause = True, FIRST_PAUSE
        while True:
            try:
                with self.client.stream(
                    "GET", "/v1/events", params=given, timeout=httpx_timeout()
                ) as answer:
                    if answer.status_code in COME_AGAIN and not is_first:
                        raise self._errors(f"the server answers {answer.status_code}")
                    if answer.status_code >= 400:
                        answer.read()
                        raise RequestRefusedError(answer.status_code, _document(answer))
                    if lost_at is not None:
                        on_break("connected again")
                    is_first, lost_at, pause = False, None, FIRST_PAUSE
                    for kind, identity, body in _frames(answer.iter_lines()):
                        if kind == "problem":
                            problem = json.loads(body)
                            raise RequestRefusedError(problem["status"], problem)
                        given["after"] = identity or given.get("after", "")
                        if body:
                            yield kind, identity, body
                    error = "it was closed by the server"
            except self._errors as broken:
                if is_first:
                    raise self._unreachable(broken) from None
                error = str(broken)
            now = time.monotonic()
            if lost_at is None:
                lost_at = now
                on_break(f"the connection is lost ({error}); trying again")
            elif now - lost_at > PATIENCE_SECONDS:
                raise self._unreachable(error)
            time.sleep(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)

    def _unreachable(self, error: object) -> UnreachableError:
        return UnreachableError(
            f"the server `{self.url}` cannot be reached ({error}): is `ensue serve` running there?"
            " give another with `--url` or `--context`"
        )


def _chosen(url: str | None, context: str | None) -> tuple[str, str | None]:
    token = os.environ.get("ENSUE_TOKEN")
    if url is not None:
        return url, token
    known = read_contexts()
    name = context or ("" if os.environ.get("ENSUE_URL") else known["in_use"])
    if not name:
        return os.environ.get("ENSUE_URL", DEFAULT_URL), token
    if name not in known["context"]:
        listed = ", ".join(f"`{each}`" for each in sorted(known["context"])) or "none"
        raise UsageError(f"there is no context `{name}`; there is {listed}: see `ensue context`")
    found = known["context"][name]
    own = found.get("token")
    return found["url"], _resolved(own) if own else token


def _document(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        found = answer.json()
    except ValueError:
        return {"detail": answer.text[:200]}
    return found if isinstance(found, dict) else {"detail": str(found)[:200]}


def _frames(lines: Iterator[str]) -> Iterator[tuple[str, str, str]]:
    """Kind, id and data of each frame; one without data only says from where to go on."""
    fields: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(": ")
        if colon and name in ("event", "id", "data"):
            fields[name] = value
        elif not line and fields:
            yield fields.get("event", ""), fields.get("id", ""), fields.get("data", "")
            fields = {}


def httpx_timeout() -> Any:
    """Streams are quiet for as long as nothing happens; a sign of life comes every 15 seconds."""
    return _httpx().Timeout(10.0, read=60.0)


def _httpx() -> Any:
    try:
        import httpx
    except ModuleNotFoundError:
        raise UsageError(
            "talking to a server needs `httpx`, which is not installed: pip install 'ensue[server]'"
        ) from None
    return httpx
