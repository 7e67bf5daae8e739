"""The server for assistants: tools and pages over the Model Context Protocol.

Each tool is described for a model here, with what its arguments mean; what it does stands in
`ensue.assistants.tools`, and runs in a process of its own. The MCP library speaks the protocol over
the standard streams, and nothing else in the package imports it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import anyio.to_thread
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.resources import TextResource
from mcp.types import ToolAnnotations
from pydantic import Field

from ensue.assistants.reach import Reach
from ensue.assistants.texts import PAGES, page
from ensue.assistants.tools import GivenEvents, GivenRules, GivenSpan
from ensue.assistants.worker import ToolFailure, ToolProcess
from ensue.version import __version__

INSTRUCTIONS = """\
Ensue finds what follows from what: rules over events, written in a small language. Read the
resource ensue://language before you write a rule, and ensue://cookbook for rules to copy. Write a
rule, `check` it until it is good, `run` it over a few events to see that it does what is meant, and
keep those as golden cases for `test`. `explain` tells a rule in words; `compare` tells whether two
rules put something out at the same moments, with a shortest sequence of events that tells them
apart."""

Library = Annotated[
    str | None,
    Field(description="The text of a library (event types and rules). Give this or `files`."),
]
Files = Annotated[
    list[str] | None,
    Field(
        description="Paths of library files (*.cor) that form one library, instead of `library`."
    ),
]
Parameters = Annotated[
    dict[str, str | int | float | bool] | None,
    Field(
        description='Values for parameters that the library declares, as {"limit": 10, "pause":'
        ' "5 min"}; the others keep those of the text.'
    ),
]
RuleName = Annotated[str, Field(description="The name of a rule (correlation or ecl) in it.")]
Limit = Annotated[int, Field(description="How many events to answer with at most.", ge=1)]
Since = Annotated[str | None, Field(description="The first time that counts, RFC 3339.")]
Until = Annotated[str | None, Field(description="The first time that no longer counts.")]
HistoryUrl = Annotated[
    str, Field(description="The history: sqlite:FILE or parquet:FOLDER, or one that is allowed.")
]
READS_ONLY = ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)


def assistants_server(reach: Reach) -> tuple[MCPServer[Any], ToolProcess]:
    """A server with all tools and pages, and the worker that its tools run in."""
    server: MCPServer[Any] = MCPServer(
        "ensue", instructions=INSTRUCTIONS, version=__version__, log_level="WARNING"
    )
    worker = ToolProcess(reach)
    _add_rules(server, worker)
    _add_events(server, worker)
    for name, (title, description) in PAGES.items():
        resource = TextResource(
            uri=f"ensue://{name}",
            name=name,
            title=title,
            description=description,
            mime_type="text/markdown",
            text=page(name),
        )
        server.add_resource(resource)
    return server, worker


async def _ask(worker: ToolProcess, tool: str, **arguments: Any) -> dict[str, Any]:
    try:
        return await anyio.to_thread.run_sync(worker.call, tool, arguments)
    except ToolFailure as failure:
        raise ToolError(str(failure)) from None


def _add_rules(server: MCPServer[Any], worker: ToolProcess) -> None:
    @server.tool(title="Check a library", annotations=READS_ONLY)
    async def check(
        library: Library = None, files: Files = None, parameters: Parameters = None
    ) -> dict[str, Any]:
        """Check a library: every error and warning with its place, its line and what to write.

        Also says what its rules keep for each key. Mend errors first: a library with errors does
        not run.
        """
        return await _ask(worker, "check", rules=GivenRules(library, files, parameters))

    @server.tool(title="Explain a rule", annotations=READS_ONLY)
    async def explain(
        rule: RuleName,
        library: Library = None,
        files: Files = None,
        format: Annotated[  # noqa: A002 - the name that users know
            Literal["text", "json", "mermaid", "dot"],
            Field(description="Words (text), or the rule's machine as a drawing."),
        ] = "text",
        parameters: Parameters = None,
    ) -> dict[str, Any]:
        """Explain a rule in words: what it waits for, its ports and clauses, what it puts out."""
        return await _ask(
            worker,
            "explain",
            rules=GivenRules(library, files, parameters),
            rule=rule,
            format=format,
        )

    @server.tool(title="Compare two rules", annotations=READS_ONLY)
    async def compare(
        first: RuleName,
        second: RuleName,
        library: Library = None,
        files: Files = None,
        parameters: Parameters = None,
    ) -> dict[str, Any]:
        """Compare two rules of a library: equivalent, contained, contains, different or undecided.

        They are compared by the moments at which they put something out. A shortest sequence of
        events that tells them apart is the witness.
        """
        rules = GivenRules(library, files, parameters)
        return await _ask(worker, "compare", rules=rules, first=first, second=second)

    @server.tool(title="Run golden cases", annotations=READS_ONLY)
    async def test(
        cases: Annotated[
            str | None,
            Field(
                description="Golden cases as TOML: [[case]] tables with name, why, library, events"
                " and outputs. Give this or `files`."
            ),
        ] = None,
        files: Annotated[
            list[str] | None, Field(description="Paths of case files, or folders of them.")
        ] = None,
        only: Annotated[
            str | None, Field(description="Only cases with this text in their name.")
        ] = None,
        parameters: Parameters = None,
    ) -> dict[str, Any]:
        """Run golden cases: a library, events, and what must come of them.

        A case that fails is told side by side with what came, and why nothing came.
        """
        return await _ask(
            worker, "test", cases=cases, files=files, only=only, parameters=parameters
        )


def _add_events(server: MCPServer[Any], worker: ToolProcess) -> None:
    @server.tool(title="Run a library", annotations=READS_ONLY)
    async def run(
        library: Library = None,
        files: Files = None,
        events: Annotated[
            list[dict[str, Any]] | None,
            Field(
                description="CloudEvents: objects with type, time (RFC 3339) and data; id and"
                " source may be left out. Give this or `events_file`."
            ),
        ] = None,
        events_file: Annotated[
            str | None, Field(description="A file of events: JSON lines, CSV, Parquet or Arrow.")
        ] = None,
        columns: Annotated[
            dict[str, str] | None,
            Field(description='Which column is what, as {"time": "ts:ms", "type": "event"}.'),
        ] = None,
        until: Annotated[
            str | None, Field(description="Let timers fire up to this time, RFC 3339.")
        ] = None,
        limit: Limit = 100,
        parameters: Parameters = None,
    ) -> dict[str, Any]:
        """Run a library over events: what its rules put out, and why a rule has put out nothing.

        Events are read in the order of their times. Events that do not fit their type are refused
        and named; the others are run all the same.
        """
        given = GivenEvents(events, events_file, columns)
        rules = GivenRules(library, files, parameters)
        return await _ask(worker, "run", rules=rules, given=given, until=until, limit=limit)

    @server.tool(title="Find stored events", annotations=READS_ONLY)
    async def history_find(
        history: HistoryUrl,
        filter: Annotated[  # noqa: A002
            str,
            Field(
                description="A filter such as level = 'error' AND start AFTER(10 s) (type = 'D')."
            ),
        ] = "TRUE",
        since: Since = None,
        until: Until = None,
        limit: Limit = 100,
    ) -> dict[str, Any]:
        """Find the events of a history that match a filter, by start and then by arrival."""
        span = GivenSpan(since, until)
        return await _ask(
            worker, "history_find", history=history, filter=filter, span=span, limit=limit
        )

    @server.tool(title="Run rules over stored events", annotations=READS_ONLY)
    async def history_replay(
        history: HistoryUrl,
        library: Library = None,
        files: Files = None,
        filter: Annotated[  # noqa: A002
            str | None, Field(description="A subscription to try, instead of a library.")
        ] = None,
        since: Since = None,
        until: Until = None,
        limit: Limit = 100,
        parameters: Parameters = None,
    ) -> dict[str, Any]:
        """Run a library, or try a filter, over a span of a history, as it would have been live."""
        return await _ask(
            worker,
            "history_replay",
            history=history,
            rules=GivenRules(library, files, parameters),
            filter=filter,
            span=GivenSpan(since, until),
            limit=limit,
        )
