"""Damaged and hostile files of settings, by seed, for every reader of TOML.

In comes a seed; out goes a file for one reader: a right one of which values are replaced, keys
added, tables doubled or bytes changed. `attack` runs the reader and lets nothing but our own
errors, or settings, come out.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ensue import parse
from ensue.casefile.reading import read_cases
from ensue.channel import from_toml
from ensue.errors import EnsueError
from ensue.federation.configuration import read_file
from ensue.federation.configuration import read_settings as read_gateway
from ensue.federation.placement import Sites, place
from ensue.server.settings import read_settings
from ensue.spark.streaming.config import load_config

LIBRARY = parse(
    "eventtype A { attribute long n; }; eventtype B { attribute string s; };"
    "A correlation R (A a, B b) a ; b within 10 s { case true: push a; }"
)

SERVER = """
[server]
listen = "127.0.0.1:0"
data = "data"
lateness = "1 s"
clock = "wall"
[history]
url = "memory:"
max_age = "1 d"
max_count = 5
[limits]
body_bytes = 5
query_seconds = 2.5
ahead = "1 h"
[webhooks]
networks = ["10.0.0.0/8"]
[[token]]
name = "a"
roles = ["admin"]
secret = "0123456789abcdef"
events_per_second = 5
[[channel]]
name = "other"
lateness = "5 s"
[[link]]
from = "main"
to = "other"
kinds = ["output"]
where = "n > 5"
"""
GATEWAY = """
[gateway]
name = "roadside"
listen = "127.0.0.1:9464"
patience = "10 s"
beat = 1.5
[[service]]
name = "cars"
kind = "mqtt"
url = "mqtt://127.0.0.1:1883"
address = "traffic/cars"
qos = 1
[[service]]
name = "office"
kind = "kafka"
url = "kafka://127.0.0.1:6379"
partitions = 3
settings = { "linger.ms" = "5" }
[[subscribe]]
at = "office"
from = ["cars"]
where = "speed > 50"
[[map]]
at = "cars"
direction = "in"
rename = { a = "b" }
retype = { b = "long" }
compute = { c = "b + 1" }
remove = ["d"]
subject = "x/{b}"
split = "{a}/{b}"
[site]
name = "plant"
sites = "sites.toml"
library = "rules.cor"
from = ["cars"]
lateness = "1 s"
beat = "1 s"
clock = "wall"
"""
SITES = """
[[site]]
name = "plant"
types = ["A"]
sources = ["press-*"]
where = "n < 4"
rates = { A = 200 }
[[site]]
name = "office"
types = ["B"]
[[place]]
rule = "R"
at = "office"
"""
STREAM = """
[source]
format = "parquet"
path = "events/"
schema = "id string"
timezone = "UTC"
type = "A"
[columns]
time = "ts:ms"
n = { column = "m", unit = "s" }
[stream]
checkpoint = "checkpoint/"
lateness = "10 s"
idle = "1 min"
max_jump = "1 d"
trigger = "5 s"
buckets = 4
[rules]
path = "rules/"
every = "10 s"
[sink]
format = "parquet"
path = "matches/"
partition_by = ["a"]
[spark]
"spark.x" = 5
"""
CHANNEL = """
[channel]
configuration = "full"
name = "here"
filtering = true
[dispatching]
strategy = "reactive"
[consumers]
priority = 3
capacity = 100
overflow = "block"
within = "1 s"
deadline = "5 s"
failures = 3
[[listen]]
host = "127.0.0.1"
port = 0
buffer = 5
patience = "5 s"
[[link]]
host = "127.0.0.1"
port = 5
backoff = "1 s"
"""
CASES = """
[[case]]
name = "one"
why = "it is so"
library = "eventtype A {}; A correlation R (A a) a { case true: push a; }"
events = ["1 A", { time = 2.5, type = "A", id = 7, data = { n = 1.5 } }]
outputs = ["1 A", { time = 2.5, labels = "" , causes = ["7"], data = {} }]
until = 9
lateness = "1 s"
late = []
rejected = []
warnings = ["3:4 some-code"]
[[case]]
name = "two"
why = "read"
library = "eventtype A {};"
events_file = "events.jsonl"
columns = { time = "ts:ms", type = "kind" }
timezone = "UTC"
outputs = []
"""

BIG = "9" * 3_999
HOSTILE = (
    *("0", "-1", "1", "65536", "99999999999999999999", BIG, f"-{BIG}", "9" * 5_000),
    *("1e308", "1e999", "-1e999", "1e999999", "1e99999999999", "nan", "inf", "-inf", "0.0000001"),
    *('""', '" "', '"\\u0000"', '"a\\u0000b"', '"\\u202e"', '"\\n"', '"x y"', '"a,b"', '"${env:X"'),
    *('"${env:}"', '"${env:NOT_SET_HERE}"', '"${file:/nowhere}"', '"${file:}"', '"${file:/}"'),
    *('"${file:/dev/zero}"', '"${file:\\u0000}"', '"${file:~nobody-such/x}"', '"${env:\\u0000}"'),
    *('"0 s"', '"-1 s"', f'"{BIG} d"', '"1e9 d"', '"99999999999999999999 d"', '"1.0000000001 s"'),
    *('"127.0.0.1:99999"', '"[::1"', '"http://[::1"', '"mqtt://a:b:c@[x"', '":"', '"::"', '"a:-1"'),
    *('"127.0.0.1:٣"', '"a:²"', '"kafka://"', '"\\ud7ff"', '"../../etc/passwd"', '"."', '"/"'),
    *("true", "false", "[]", "{}", "[[]]", "[{}]", "[1, 'a', {}]", "{ a = 1 }", "[1]", "[{a=1}]"),
    *(f'"a:{"9" * 5_000}"', '"a:65536"', '"a:"', '"\\uffff:1"'),
    *("2024-01-01", "2024-01-01T00:00:00", "9999-12-31T23:59:59.999999-12:00", "07:00:00"),
    *("0001-01-01T00:00:00+14:00", "[" * 90 + "]" * 90, "[" * 101 + "]" * 101, "[" * 5_000),
    *("{a=" * 60 + "1" + "}" * 60, "{a=" * 400, "[" * 50_000, "'" + "(" * 20_000 + "'"),
    *(f'"{"(" * 300}n{")" * 300} > 1"', '"' + "NOT " * 5_000 + 'n"', '"' + "n AND " * 5_000 + 'n"'),
    *(
        f'"{"x" * 100_000}"',
        '"n IN (' + ",".join(map(str, range(3_000))) + ')"',
        "\"n MATCHES '('\"",
    ),
    *('"%"', '"{a"', '"{}"', '"{a}}"', '"os:system"', '"no_such_module:x"', '"a.b"', "'\\'", '"#"'),
)
NAMES = ("x", '""', '"\\u0000"', '"a.b"', "a.b", "__class__", "name", "kind", '"\\n"', "x" * 5_000)


@dataclass(frozen=True)
class Reader:
    """A reader of files, and a right file for it."""

    name: str
    right: str
    read: Callable[[Path], Any]


def _gateway(path: Path) -> Any:
    return read_gateway(read_file(path), str(path))


def _sites(path: Path) -> Any:
    return place(LIBRARY.checked, Sites.read(path, LIBRARY.checked))


READERS = (
    Reader("server", SERVER, read_settings),
    Reader("gateway", GATEWAY, _gateway),
    Reader("both", SERVER + GATEWAY, read_settings),
    Reader("sites", SITES, _sites),
    Reader("stream", STREAM, load_config),
    Reader("channel", CHANNEL, from_toml),
    Reader("cases", CASES, read_cases),
)


def damaged(right: str, seed: int) -> bytes:
    """A file that differs from a right one in one to four places."""
    dice = random.Random(seed)
    lines = right.strip().splitlines()
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        number = dice.randrange(len(lines))
        line = lines[number]
        key, equals, _ = line.partition(" = ")
        way = dice.randrange(10)
        if way < 6 and equals:
            lines[number] = f"{key} = {dice.choice(HOSTILE)}"
        elif way == 6:
            lines.insert(number + 1, f"{dice.choice(NAMES)} = {dice.choice(HOSTILE)}")
        elif way == 7:
            del lines[number]
            lines = lines or [""]
        elif way == 8:
            again = dice.choice((2, 50, 2_000))
            lines += [each for _ in range(again) for each in (f"[[{line.strip('[]')[:20]}]]",)]
        else:
            content = bytearray("\n".join(lines).encode())
            for _ in range(dice.choice((1, 3, 20))):
                content[dice.randrange(len(content))] = dice.randrange(256)
            return bytes(content)
    return "\n".join(lines).encode()


def attack(reader: Reader, seed: int, folder: Path) -> str:
    """What came of one damaged file: `read`, or the first line of the refusal."""
    path = folder / "attacked.toml"
    path.write_bytes(damaged(reader.right, seed))
    try:
        reader.read(path)
    except EnsueError as error:
        told = str(error)
        assert told, "a refusal that says nothing"
        return told.splitlines()[0]
    return "read"
