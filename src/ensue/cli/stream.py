"""`ensue stream`: the Spark pipeline from a source to a sink, as a TOML file says."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue.cli.libraries import load_library, mention_warnings
from ensue.cli.terminal import EXIT_UNUSABLE, counted, say
from ensue.errors import UsageError

if TYPE_CHECKING:
    from ensue.spark.streaming.figures import Figures

SECONDS_BETWEEN_LOOKS = 0.5

StreamFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="LIB... CONFIG",
        help="Library files (*.cor), and last the TOML file of the stream.",
        show_default=False,
    ),
]


def stream(files: StreamFiles) -> None:
    """Run rules over a stream with Spark: from a source to a sink, as a TOML file says.

    One line for each micro-batch goes to the standard error. Stopped or killed at any point, the
    same command goes on from its checkpoint, with nothing lost and nothing twice in a file sink.

    \b
    Example:
      ensue stream rules.cor stream.toml

    \b
    Exit codes:
      0  all that was there has been read, or the user has stopped it
      2  unusable library, configuration or source, or the stream has failed
    """
    if len(files) < 2:
        raise UsageError(
            "`ensue stream` takes library files and then a configuration:"
            " `ensue stream rules.cor stream.toml`"
        )
    *libraries, config_path = files
    try:
        from ensue.spark.streaming.config import load_config

        config = load_config(config_path)
        library = load_library(libraries)
        from ensue.spark.command import session
        from ensue.spark.streaming import pipeline
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pyspark", "py4j", "pandas"):
            raise
        raise UsageError("`ensue stream` needs PySpark: install `ensue[spark]`, and Java") from None
    mention_warnings(library, libraries)
    resumed = pipeline.remembered(config)
    query = pipeline.start(session(), library, config)
    rules = counted(len(library.correlations), "rule")
    how = "going on from" if resumed else "begun, with"
    say(f"{rules} over `{config.source.path}`; {how} checkpoint `{config.stream.checkpoint}`")
    _follow(query)


def _follow(query: Any) -> None:
    """A line for each micro-batch, until the stream ends."""
    from ensue.spark.streaming.figures import figures_of

    last = -1
    try:
        while True:
            active = query.isActive
            for progress in query.recentProgress:
                if progress.batchId > last and progress.numInputRows:
                    last = progress.batchId
                    say(line_of(figures_of(progress)))
            if not active:
                break
            time.sleep(SECONDS_BETWEEN_LOOKS)
    except KeyboardInterrupt:
        query.stop()
        say("stopped; the same command goes on from here")
        return
    failure = query.exception()
    if failure is not None:
        say(f"ensue: the stream has failed: {_reason(str(failure))}", "red")
        raise typer.Exit(EXIT_UNUSABLE)
    say("all that was there has been read")


def line_of(figures: Figures) -> str:
    outputs = sum(figures.outputs.values())
    parts = [
        f"batch {figures.batch}: {counted(figures.events, 'event')}",
        counted(outputs, "output"),
        f"{figures.late} late",
        f"state {figures.state_bytes / 1024:,.0f} kB",
        f"{figures.seconds:.1f} s",
    ]
    if figures.latest is not None:
        parts.append(f"up to {figures.latest:%Y-%m-%dT%H:%M:%SZ}")
    return ", ".join(parts)


def _reason(text: str) -> str:
    """The line of a failure that says most: the last one of a worker's traceback, if there is."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if "Error: " in line]
    return told[-1] if told else (lines[0] if lines else "no reason was given")
