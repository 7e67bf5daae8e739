"""The compiled loops that put firings in the order of the stream.

In come firings as the drivers of `core/stepping/visits` have written them, key by key; out goes the
order in which they stand in the stream. Rows and times are put in order by counting; only alarms
that are close to each other are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ensue.engine.core.jit import compiled

_MOST_CLOSE = 64
"""The most alarms in one interval of time that are inserted one by one."""


@compiled
def order_alarms(rows: Any, rules: Any, when: Any, fired: int) -> Any:
    """Firings that alarms have caused, by time, then by rule, then by the key's last event.

    Returns how many there are, or -1 if too many of them are close to each other.
    """
    alarms = np.empty(fired, np.int64)
    count = 0
    for each in range(fired):
        if rows[each] < 0:
            alarms[count] = each
            count += 1
    if count == 0:
        return alarms, 0
    first = last = when[alarms[0], 0]
    for place in range(count):
        time = when[alarms[place], 0]
        first = min(first, time)
        last = max(last, time)
    shift = np.int64(0)
    while (last - first) >> shift > count:
        shift += 1
    parts = ((last - first) >> shift) + 1
    begins = np.zeros(parts + 1, np.int64)
    for place in range(count):
        begins[((when[alarms[place], 0] - first) >> shift) + 1] += 1
    for part in range(parts):
        if begins[part + 1] > _MOST_CLOSE:
            return alarms, -1
        begins[part + 1] += begins[part]
    ends = begins.copy()
    order = np.empty(count, np.int64)
    for place in range(count):
        alarm = alarms[place]
        time, rule, last_read = when[alarm, 0], rules[alarm], when[alarm, 1]
        part = (time - first) >> shift
        to = ends[part]
        ends[part] += 1
        while to > begins[part]:
            other = order[to - 1]
            is_later = when[other, 0] > time
            if when[other, 0] == time:
                is_later = rules[other] > rule
                if rules[other] == rule:
                    is_later = when[other, 1] > last_read
            if not is_later:
                break
            order[to] = other
            to -= 1
        order[to] = alarm
    return order, count


@compiled
def order_firings(rows: Any, fired: int, times: Any, first: int, alarms: Any, when: Any) -> Any:
    """All firings by row; firings of one row keep their order. The rows begin with `first`.

    The alarms are in order already, and each comes before the first row of its time.
    """
    begins = np.zeros(times.size, np.int64)
    for each in range(fired):
        if rows[each] >= 0:
            begins[rows[each] - first] += 1
    order = np.empty(fired, np.int64)
    to = done = 0
    for row in range(times.size):
        while done < alarms.size and when[alarms[done], 0] <= times[row]:
            order[to] = alarms[done]
            to += 1
            done += 1
        of_row = begins[row]
        begins[row] = to
        to += of_row
    while done < alarms.size:
        order[to] = alarms[done]
        to += 1
        done += 1
    for each in range(fired):
        if rows[each] >= 0:
            row = rows[each] - first
            order[begins[row]] = each
            begins[row] += 1
    return order


@compiled
def take_firings(order: Any, rules: Any, at: Any, actions: Any, ports: Any) -> Any:
    """Firings in an order: their rules, rows, actions and what their ports are bound to."""
    count, width = order.size, ports.shape[1]
    rules_of, rows = np.empty(count, np.int64), np.empty(count, np.int64)
    actions_of, bound = np.empty(count, np.int64), np.empty((count, width), np.int64)
    for place in range(count):
        each = np.uint64(order[place])
        rules_of[place] = rules[each]
        rows[place] = at[each]
        actions_of[place] = actions[each]
        for port in range(width):
            bound[place, port] = ports[each, port]
    return rules_of, rows, actions_of, bound
