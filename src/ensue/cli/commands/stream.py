"""`ensue stream`: the Spark pipeline from a source to a sink, configured by a TOML file.

While it runs, the files of the rules are watched. When they change, the query is stopped and
started again from its checkpoint with the new rules, in the same session. If the new rules have
mistakes, these are printed, and the old rules go on.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ensue.cli.libraries import (
    OntologyFiles,
    SetOption,
    given_parameters,
    load_ontology,
    mention_warnings,
    pointing_at,
)
from ensue.cli.outputs import silent_at_first
from ensue.cli.sampled import Sampled, hints_of_sample
from ensue.cli.terminal import counted, listed, say, show_findings
from ensue.errors import JobError, LibraryError, UsageError
from ensue.events.sources.contents import Given
from ensue.lang.parsing.importing import imports_of
from ensue.library import Library, load

if TYPE_CHECKING:
    from ensue.spark.streaming.config import PipelineConfig
    from ensue.spark.streaming.figures import Figures
    from ensue.spark.streaming.rules_table import WatchedTable

SECONDS_BETWEEN_LOOKS = 0.5

StreamFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="LIB... CONFIG",
        help="Library files (*.cor) or folders of them, then the TOML file of the stream.",
        show_default=False,
    ),
]


def stream(files: StreamFiles, ontology: OntologyFiles = None, settings: SetOption = None) -> None:
    """Run rules over a stream with Spark, from a source to a sink.

    One line for each micro-batch goes to the standard error. After a stop or a crash, the same
    command goes on from its checkpoint; in a file sink nothing is lost or written twice. Rules that
    are added, replaced or removed in their files take effect at the next micro-batch. Without
    library files, the rules come from the table that `[rules]` of the configuration names.

    \b
    Example:
      ensue stream rules.cor stream.toml

    \b
    Exit codes:
      0  the whole source has been read, or the user has stopped the stream
      2  unusable library, configuration or source, or the stream has failed
    """
    *libraries, config_path = files
    try:
        from ensue.spark.streaming.config import load_config

        _check_call(libraries, config_path)
        config = load_config(config_path)
        if (config.rules is None) != bool(libraries):
            raise UsageError(
                "rules come either from files, as in `ensue stream rules.cor stream.toml`, or from"
                " the table in `[rules]` of the configuration: give exactly one of them"
            )
        if config.rules is not None and ontology:
            raise UsageError(
                "`--ontology` is allowed only for rules from files, and `[rules]` names a table:"
                " leave out `--ontology`"
            )
        from ensue.spark.failures import FAILURES, reason_with_advice
        from ensue.spark.session import open_session
        from ensue.spark.streaming import pipeline
        from ensue.spark.streaming.rules_table import WatchedTable
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pyspark", "py4j", "pandas"):
            raise
        raise UsageError(
            "`ensue stream` needs PySpark and Java: pip install 'ensue[spark]', and install Java 17"
            " or newer"
        ) from None
    watched: WatchedRules | WatchedTable
    given = given_parameters(settings)
    parameters = {**config.parameters, **given}
    if config.rules is None:
        watched = WatchedRules(libraries, ontology, parameters)
        with pointing_at(given, WatchedRules(libraries, ontology, config.parameters).load):
            library = watched.load()
        mention_warnings(library, watched.files)
    else:
        watched = WatchedTable(open_session(), config.rules, parameters)
        library = watched.load()
    resumed = pipeline.is_resumed(config)
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", UserWarning)
            running = RunningStream(open_session(), library, config)
        for each in dict.fromkeys(str(each.message) for each in told):
            say(each, "yellow")
        rules = counted(len(library.correlations), "rule")
        how = "going on from" if resumed else "starting with"
        say(f"{rules} over `{config.source.name}`; {how} checkpoint `{config.stream.checkpoint}`")
        _follow(running, watched)
    except FAILURES as failure:
        raise JobError(
            f"the stream has failed: {reason_with_advice(failure, config.stream.checkpoint)}"
        ) from None


def _check_call(libraries: Sequence[Path], config_path: Path) -> None:
    """Raise `UsageError` for a library in the place of the configuration."""
    if config_path.suffix == ".cor" or (libraries and config_path.is_dir()):
        raise UsageError(
            f"`ensue stream` needs library files and then a TOML file; given last is"
            f" `{config_path}`: write `ensue stream rules.cor stream.toml`"
        )


class WatchedRules:
    """The files of a library, and their texts when they were last loaded."""

    def __init__(
        self,
        paths: Sequence[Path],
        ontology: Sequence[Path] | None = None,
        parameters: Mapping[str, object] | None = None,
    ) -> None:
        self._paths = tuple(paths)
        self._ontology = ontology
        self._parameters = parameters or {}
        self._told = ""
        self._texts = self._seen = self._read()

    @property
    def files(self) -> list[Path]:
        return list(self._texts)

    def have_changed(self) -> bool:
        """Whether the files differ from the loaded ones, and are unchanged since the last call.

        A file that is being written may be read in half or empty, and rules would be dropped with
        their state. So a change counts only once the files are stable. Raises `UsageError` if a
        file cannot be read, but not again for the same reason at the next call.
        """
        before = self._seen
        try:
            self._seen = self._read()
        except OSError as error:
            told, self._told = self._told, f"`{error.filename}`: {(error.strerror or '').lower()}"
            if told == self._told:
                return False
            raise UsageError(self._told) from None
        self._told = ""
        if self._seen == self._texts or self._seen != before:
            return False
        self._texts = self._seen
        return True

    def load(self) -> Library:
        return load(
            *self.files, ontology=load_ontology(self._ontology), parameters=self._parameters
        )

    def _read(self) -> dict[Path, bytes | None]:
        """The texts by their files; None for a file that was named and is missing."""
        files: list[Path] = []
        for path in self._paths:
            files += sorted(path.glob("*.cor")) if path.is_dir() else [path]
        texts: dict[Path, bytes | None] = {}
        # The list grows by what the files import.
        for path in files:
            if path in texts:
                continue
            try:
                texts[path] = path.read_bytes()
            except FileNotFoundError:
                # Loading reports a named file that is missing; one of a folder was deleted.
                if path in self._paths:
                    texts[path] = None
                continue
            text = (texts[path] or b"").decode("utf-8-sig", "replace")
            files += [path.parent / name for name, _, _ in imports_of(text)]
        return texts


class RunningStream:
    """A query, the rules that it runs, and how much of its progress has been printed."""

    def __init__(self, spark: Any, library: Library, config: PipelineConfig) -> None:
        from ensue.spark.streaming import pipeline

        self._spark = spark
        self._config = config
        self._pipeline = pipeline
        self._last_told = -1
        self._without_topics_is_told = False
        self._silent = silent_at_first(library.checked)
        self.library = library
        self.query = pipeline.start(spark, library, config, alone=True)

    def tell(self) -> None:
        """Print a line for each micro-batch that was completed since the last call."""
        from ensue.spark.streaming.figures import figures_of
        from ensue.spark.streaming.sources import without_topics

        for progress in self.query.recentProgress:
            missing = without_topics(self._config.source, progress)
            if missing is not None and not self._without_topics_is_told:
                say(missing, "yellow")
                self._without_topics_is_told = True
            if progress.batchId > self._last_told and progress.numInputRows:
                self._last_told = progress.batchId
                figures = figures_of(progress)
                self._silent -= {name for name, count in figures.outputs.items() if count}
                say(line_of(figures))

    def give_hints(self) -> None:
        """Say of rules without outputs which attributes the first events of files do not have."""
        from ensue.spark.streaming.config import LINE_FORMATS

        source = self._config.source
        if self._silent and source.path is not None:
            given = source.given if source.format in LINE_FORMATS else Given()
            sampled = Sampled([source.path], given, self._config.mapping)
            for each in hints_of_sample(self.library.checked, sampled, self._silent):
                say(each, "yellow")

    def change(self, library: Library) -> None:
        """Run other rules from the next micro-batch on.

        Raises the error of unusable rules before anything has changed, and `JobError` if the stream
        was stopped for the new rules and cannot be started again.
        """
        self._pipeline.plan(self._spark, library, self._config)
        self.query.stop()
        self.tell()
        try:
            self.query = self._pipeline.start(self._spark, library, self._config, alone=True)
        except UsageError as error:
            raise JobError(
                "the stream was stopped to load changed rules, and cannot be started again:"
                f" {error}; the same command goes on from the checkpoint"
            ) from None
        self.library = library
        self._silent = silent_at_first(library.checked)


def _follow(running: RunningStream, watched: WatchedRules | WatchedTable) -> None:
    """Print a line for each micro-batch until the stream ends. Raises the error of the stream."""
    try:
        while True:
            active = running.query.isActive
            running.tell()
            if not active:
                break
            _update_rules(running, watched)
            time.sleep(SECONDS_BETWEEN_LOOKS)
    except KeyboardInterrupt:
        running.query.stop()
        running.give_hints()
        say("stopped; the same command goes on from the checkpoint")
        return
    failure = running.query.exception()
    if failure is not None:
        raise failure
    running.give_hints()
    say("the whole source has been read")


def _update_rules(running: RunningStream, watched: WatchedRules | WatchedTable) -> None:
    """Load rules that have changed, or say why not and keep the running rules."""
    before = {each.name: each for each in running.library.correlations}
    try:
        if not watched.have_changed():
            return
        library = watched.load()
        running.change(library)
    except LibraryError as error:
        show_findings(error.diagnostics, to_stderr=True)
        say("the rules have changed and cannot be used; the old rules go on", "yellow")
        return
    except UsageError as error:
        say(f"the rules have changed and cannot be used, so the old rules go on: {error}")
        return
    after = {each.name: each for each in library.correlations}
    told = {
        "added": [name for name in after if name not in before],
        "replaced": [n for n, each in after.items() if n in before and before[n] != each],
        "removed": [name for name in before if name not in after],
    }
    parts = [f"{word} {listed(names)}" for word, names in told.items() if names]
    say(f"the rules have changed: {'; '.join(parts) or 'all rules mean the same as before'}")


def line_of(figures: Figures) -> str:
    outputs = sum(figures.outputs.values())
    parts = [
        f"batch {figures.batch}: {counted(figures.events, 'event')}",
        counted(outputs, "output"),
        f"{figures.late} late",
        *([f"{figures.rejected} rejected"] if figures.rejected else []),
        f"state {figures.state_bytes / 1024:,.0f} kB",
        f"{figures.seconds:.1f} s",
    ]
    if figures.latest is not None:
        parts.append(f"up to {figures.latest:%Y-%m-%dT%H:%M:%SZ}")
    return ", ".join(parts)
