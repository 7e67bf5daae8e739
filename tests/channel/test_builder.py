"""A channel has the parts that were asked for; the others are not even loaded."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from ensue.channel import Block, Builder, DropOldest, build, from_toml, want
from ensue.errors import UsageError
from tests.channel.making import LIBRARY, empty, event, eventually

PARTS = {
    "index",
    "unfiltered",
    "conditions",
    "correlation",
    "pool",
    "asyncio_loop",
    "timeouts",
    "asyncio_api",
    "federation",
    "inprocess",
    "tcp.links",
    "threads",
    "process",
    "toml_config",
    "wakeup",
}


def loaded(code: str) -> set[str]:
    """Which parts a program has loaded at its end, and `asyncio` if it has."""
    program = (
        "from ensue.channel import *\nfrom ensue import Event\nimport sys\n"
        f"{code}\nprint(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    modules = set(done.stdout.split())
    channel = [each for each in modules if each.startswith("ensue.channel.")]
    parts = {part for part in PARTS if any(each.endswith(f".{part}") for each in channel)}
    return parts | ({"asyncio"} & modules)


USE = (
    "channel.consumers.connect('one', lambda event: None)\n"
    "channel.suppliers.connect('two').send('Notify')\n"
    "channel.close()"
)


@pytest.mark.parametrize(
    ("configuration", "parts"),
    [
        ("multiplexer", {"unfiltered"}),
        ("dispatching", {"unfiltered", "pool", "wakeup"}),
        ("filtering", {"index"}),
        ("full", {"index", "pool", "wakeup"}),
    ],
)
def test_each_configuration_loads_its_own_parts_only(configuration: str, parts: set[str]) -> None:
    assert loaded(f"channel = build({configuration!r}).done()\n{USE}") == parts


def test_a_part_is_loaded_when_it_is_first_asked_for() -> None:
    code = (
        "channel = build('filtering').clock(VirtualClock()).done()\n"
        "channel.consumers.connect('one', print, all_of('A', 'B')).every('1 s')\n"
        "channel.federation.link(build('multiplexer').done())"
    )

    assert loaded(code) == {
        "index",
        "conditions",
        "timeouts",
        "federation",
        "inprocess",
        "unfiltered",
    }


def test_a_multiplexer_gives_everything_to_everybody() -> None:
    channel, got = build("multiplexer").done(), empty()
    channel.consumers.connect("one", got.append)
    channel.consumers.connect("two", got.append)

    channel.push(event("Anything"))

    assert len(got) == 2


def test_asking_for_a_part_that_was_left_out_says_so() -> None:
    plain = build("multiplexer").done()

    with pytest.raises(UsageError, match="without filtering"):
        plain.consumers.connect("one", print, "Notify")
    with pytest.raises(UsageError, match="without filtering"):
        plain.consumers.connect("one", print, want(where=lambda _: True))
    with pytest.raises(UsageError, match="without timeouts"):
        plain.consumers.connect("one", print).every("1 s")
    from ensue.channel import correlated

    filtering = build("filtering").correlation(False).done()
    with pytest.raises(UsageError, match="without correlation"):
        filtering.consumers.connect("one", print, correlated(LIBRARY, "Both"))


def test_a_consumer_that_is_refused_leaves_nothing_behind() -> None:
    plain = build("multiplexer").done()
    with pytest.raises(UsageError):
        plain.consumers.connect("one", print, "Notify")

    plain.consumers.connect("one", print)

    assert len(plain.consumers) == 1


TOML = """
[channel]
name = "cockpit"
configuration = "full"
library = "types.cor"
correlation = false

[dispatching]
strategy = "pool"
threads = 2

[consumers]
capacity = 7
overflow = "block"
within = "50 ms"
failures = 5
"""


def test_a_channel_can_be_written_down_as_toml(tmp_path: Path) -> None:
    (tmp_path / "types.cor").write_text("eventtype A {}; eventtype B : A {};")
    (tmp_path / "cockpit.toml").write_text(TOML)
    channel, got = from_toml(tmp_path / "cockpit.toml").done(), empty()
    consumer = channel.consumers.connect("one", got.append, "A")

    channel.push(event("B"))
    channel.close()

    assert (channel.name, channel.strategy, len(got)) == ("cockpit", "pool", 1)
    assert consumer.quality.capacity == 7
    assert consumer.quality.overflow == Block("50 ms")
    assert consumer.quality.failures == 5


def test_the_file_in_the_documentation_can_be_read(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "channel.md").read_text("utf-8")
    shown = next(each for each in page.split("```") if each.startswith("text\n[channel]"))
    (tmp_path / "rules.cor").write_text("eventtype A {};")
    (tmp_path / "flight.toml").write_text('[[operation]]\nname = "a"\nperiod = "1 s"\n')
    (tmp_path / "link.secret").write_text("a secret of some length")
    (tmp_path / "plant.toml").write_text(shown.removeprefix("text\n"))

    assert isinstance(from_toml(tmp_path / "plant.toml"), Builder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[channel", "no TOML"),
        ("[channel]\nconfiguration = 'half'", "no configuration `half`; choose one of `full`"),
        ("[channel]\ncolour = 'red'", "`colour` is no key of \\[channel\\]"),
        ("[chanel]\nname = 'a'", "`chanel` is no table of a channel"),
        ("[dispatching]\nstrategy = 'magic'", "no strategy `magic`"),
        ("[dispatching]\nspeed = 3", "`speed` is no key of .*there are `strategy`, `threads`"),
        ("[dispatching]\nthreads = 'two'", "`dispatching.threads`: expected `int"),
        ("[consumers]\noverflow = 'explode'", "no overflow `explode`; choose one of `block`"),
        ("[consumers]\ncolour = 'red'", "`colour` is no key of .*there are `priority`"),
        ("[consumers]\nwithin = '1 s'\noverflow = 'drop oldest'", "is allowed only with `overflow"),
        ("[consumers]\ncapacity = 0", "holds at least one event; given is a capacity of 0"),
        ("[listen]\nport = 1", "`listen`: expected `array`"),
        ("[[link]]\nhost = 'there'", "`link.0.`: object missing required field `port`"),
        ("[[link]]\nhost = 'there'\nport = 1\nbufer = 2", "`bufer` is no key of .*`buffer`"),
        ("[[link]]\nhost = 'there'\nport = 1", "`there` can be reached from other machines"),
        ("[[listen]]\nsecret_file = 'none'", "no secret: the file"),
        ("[[listen]]\noverflow = 'explode'", "no overflow `explode`; choose one of `block`"),
    ],
)
def test_a_mistake_in_the_toml_is_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "bad.toml").write_text(text)

    with pytest.raises(UsageError, match=message):
        from_toml(tmp_path / "bad.toml").done()


def test_threads_alone_keep_the_strategy_of_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "plant.toml").write_text("[dispatching]\nthreads = 2")
    channel = from_toml(tmp_path / "plant.toml").done()

    assert (channel.name, channel.strategy) == ("plant", "pool")
    channel.close()


def test_ends_of_links_can_be_written_down(tmp_path: Path) -> None:
    (tmp_path / "there.toml").write_text("[[listen]]\nport = 0\nbuffer = 5\npatience = '1 s'")
    there = from_toml(tmp_path / "there.toml").done()
    port = there.federation.addresses[0][1]
    (tmp_path / "here.toml").write_text(f"[[link]]\nhost = '127.0.0.1'\nport = {port}")
    here = from_toml(tmp_path / "here.toml").done()

    assert eventually(lambda: len(here.federation.reachable) == 1)
    here.close()
    there.close()


def test_a_channel_that_cannot_listen_leaves_nothing_running() -> None:
    first = build("full").listen().done()
    port = first.federation.addresses[0][1]
    before = threading.active_count()

    with pytest.raises(UsageError, match="cannot listen on"):
        build("full").dispatching("pool", threads=4).listen(port=port).done()
    assert eventually(lambda: threading.active_count() <= before)
    first.close()


@pytest.mark.parametrize(
    ("promises", "message"),
    [
        ({"overflow": "block"}, "`overflow` is one of `Block"),
        ({"capacity": "ten"}, "`capacity` is an integer; given is `'ten'`"),
        ({"priority": 1.5}, "`priority` is an integer"),
    ],
)
def test_a_promise_of_the_wrong_kind_is_refused(promises: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build("filtering").consumers(**promises)


def test_a_consumer_that_cannot_be_called_or_wants_a_list_is_refused() -> None:
    channel = build("filtering").done()

    with pytest.raises(UsageError, match="needs a function to call with events"):
        channel.consumers.connect("a", 3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="`any_of`"):
        channel.consumers.connect("a", print, ["A", "B"])  # type: ignore[arg-type]
    channel.close()


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        from_toml(tmp_path / "none.toml")


def test_defaults_of_the_channel_can_be_overridden_by_a_consumer() -> None:
    channel = build("filtering").consumers(capacity=5).done()

    assert channel.consumers.connect("a", print).quality.capacity == 5
    own = channel.consumers.connect("b", print, capacity=9, overflow=DropOldest()).quality
    assert (own.capacity, own.overflow) == (9, DropOldest())


def test_the_public_names_are_these() -> None:
    import ensue.channel

    assert ensue.channel.__all__ == sorted(
        ensue.channel.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)
    )
    assert all(hasattr(ensue.channel, name) for name in ensue.channel.__all__)
