"""Functions of other languages that CESQL lacks, each with the advice what to write instead."""

from __future__ import annotations

from collections.abc import Mapping

_BEFORE = (
    "give the event before a port of its own: `a ; b keep last bind latest`, and compare `b.Name` "
    "with `a.Name` in `having`"
)
_BRANCH = (
    "a value has no branches: declare a port for each, `Type high where n > 3`, label it in the "
    "filter, `x:high | y:low`, and write a `case` for each label"
)
_AGGREGATES = (
    "the aggregates are `count`, `distinct`, `sum`, `avg`, `min`, `max`, `first` and `last`"
)
_PARTS = "of a time there are `HOUR`, `MINUTE` and `WEEKDAY`; its text is `STRING(time)`"
_NOW = "the time of an event is its `time`; a rule does not ask the clock"

FOREIGN_FUNCTIONS: Mapping[str, str] = {
    **dict.fromkeys(("AVERAGE", "MEAN"), "write `avg(a.Name)`"),
    **dict.fromkeys(("PREV", "PREVIOUS", "LAG", "NEXT", "LEAD"), _BEFORE),
    **dict.fromkeys(("NOW", "CURRENT_TIMESTAMP", "GETDATE"), _NOW),
    **dict.fromkeys(
        ("STARTSWITH", "STARTS_WITH"), "write `Name LIKE 'text%'`: `%` stands for any text"
    ),
    **dict.fromkeys(
        ("ENDSWITH", "ENDS_WITH"), "write `Name LIKE '%text'`: `%` stands for any text"
    ),
    **dict.fromkeys(
        ("CONTAINS", "STRINGCONTAINS", "INSTR"),
        "write `Name LIKE '%text%'`: `%` stands for any text",
    ),
    **dict.fromkeys(
        ("REGEXP_LIKE", "MATCH", "RLIKE", "REGEX"), "write `Name MATCHES 'expression'`"
    ),
    **dict.fromkeys(("CIDRMATCH", "CIDR_MATCH"), "write `IN_NETWORK(Name, '10.0.0.0/8')`"),
    **dict.fromkeys(("IFNULL", "NVL", "ISNULL"), "write `COALESCE(Name, other)`"),
    **dict.fromkeys(
        ("COUNT_DISTINCT", "DCOUNT", "VALUE_COUNT", "APPROX_COUNT_DISTINCT"),
        "write `distinct(a.Name)`",
    ),
    **dict.fromkeys(("IF", "IIF", "IFF", "CASE", "DECODE", "NULLIF"), _BRANCH),
    **dict.fromkeys(
        ("STDDEV", "STDEV", "STD", "VARIANCE", "VAR", "MEDIAN", "PERCENTILE", "QUANTILE", "TOPK"),
        _AGGREGATES,
    ),
    **dict.fromkeys(
        ("ROUND",), "write `INT(x + 0.5)` for the nearest integer of what is not below 0"
    ),
    **dict.fromkeys(("FLOOR", "TRUNC", "TRUNCATE"), "write `INT(x)`, which cuts off"),
    **dict.fromkeys(("SQRT",), "compare squares: `x > 4 * 4` for `SQRT(x) > 4`"),
    **dict.fromkeys(("POW", "POWER"), "there is no power: write `x * x`"),
    **dict.fromkeys(("WILDCARD", "GLOB"), "write `Name LIKE 'text%'`: `%` stands for any text"),
    **dict.fromkeys(("YEAR", "MONTH", "DAY", "DATE", "SECOND", "DATE_TRUNC", "DATE_PART"), _PARTS),
    **dict.fromkeys(
        ("CAST", "CONVERT", "TO_CHAR", "STR"),
        "write `STRING(x)`, `INT(x)`, `DOUBLE(x)`, `BOOL(x)` or `TIMESTAMP(x)`",
    ),
    **dict.fromkeys(("FLOAT", "REAL", "TO_NUMBER", "TO_DOUBLE"), "write `DOUBLE(x)`"),
    **dict.fromkeys(
        ("STRPTIME", "TO_TIMESTAMP", "PARSE_DATE", "PARSE_TIMESTAMP", "STR_TO_DATE"),
        "write `TIMESTAMP(Name, '%d/%b/%Y %H:%M:%S')`, with the directives of `strptime`",
    ),
    **dict.fromkeys(
        ("REGEXP_EXTRACT", "REGEXP_SUBSTR", "SUBSTRING_REGEX", "GROK", "DISSECT", "REX"),
        "write `EXTRACT(Name, 'user=([a-z]+)')`, which gives the first group",
    ),
    **dict.fromkeys(("GREATEST", "LEAST"), "compare both: `x > 3 AND y > 3`"),
    **dict.fromkeys(("LEN", "STRLEN", "CHAR_LENGTH"), "write `LENGTH(Name)`"),
    **dict.fromkeys(("SUBSTR",), "write `SUBSTRING(Name, from, length)`"),
    **dict.fromkeys(("UCASE", "TOUPPER"), "write `UPPER(Name)`"),
    **dict.fromkeys(("LCASE", "TOLOWER"), "write `LOWER(Name)`"),
    **dict.fromkeys(("DAYOFWEEK", "DOW"), "write `WEEKDAY(Name)`: Monday is 0"),
    **dict.fromkeys(
        ("DATEDIFF", "TIMESTAMPDIFF", "TIMEDIFF"),
        "`b.time - a.time` is the seconds between two times",
    ),
}
"""By the name in upper case."""
