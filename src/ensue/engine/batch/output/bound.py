"""What the ports of outputs are bound to: their causes, and the names that a transformer asks for.

In come outputs of one statement (`bundles`), each with the readings that are in its places; out go
columns. Outputs may lack a port that others have: it is null there and no cause.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ensue.engine.batch.input.column import Column, Mask, Rows, absent
from ensue.engine.batch.input.texts import constant, written, written_if_there
from ensue.engine.batch.kernels import cause_writing
from ensue.engine.batch.many.group_tables import is_timer
from ensue.engine.batch.output.bundles import Bundle
from ensue.engine.batch.output.remembered import Remembered
from ensue.lang.expressions.names import Parts

_FEW = 3
"""Causes of so many ports have a loop of their own."""


class Bound:
    """`actions` and `places` are those of each output; of several places of a port one counts."""

    def __init__(
        self,
        bundle: Bundle,
        actions: Rows,
        places: npt.NDArray[np.int64],
        remembered: Remembered,
        bind_first: bool,
        computed: Mapping[Parts, Column],
    ) -> None:
        self._bundle = bundle
        self._actions = actions
        self._places = places
        self._remembered = remembered
        self._first = bind_first
        self._ports = [port for port in bundle.places if not is_timer(port)]
        self._readings: dict[str, Rows] = {}
        self._known: dict[Parts, Column] = dict(computed)

    def __len__(self) -> int:
        return len(self._places)

    def readings(self, port: str) -> Rows:
        """The reading that a port is bound to; for an unbound port, that of any bound port."""
        if port not in self._readings:
            held = self._held(port)
            lacking = self._lacking(port)
            if lacking is not None:
                held = np.where(lacking, self._any(), held)
            self._readings[port] = held
        return self._readings[port]

    def _held(self, port: str) -> Rows:
        places = self._bundle.places[port]
        if len(places) == 1:
            return np.asarray(self._places[:, places[0]])
        chosen = self._places[:, places]
        return np.asarray(chosen.min(axis=1) if self._first else chosen.max(axis=1))

    def _lacking(self, port: str) -> Mask | None:
        without = self._bundle.without(port)
        return None if without is None else without[self._actions]

    def _any(self) -> Rows:
        """For each output a reading that one of its ports is bound to."""
        found = np.zeros(len(self), np.int64)
        for port in self._ports:
            lacking = self._lacking(port)
            held = self._held(port)
            found = np.maximum(found, held if lacking is None else np.where(lacking, 0, held))
        return found

    def causes(self) -> pa.Array:
        """The ids of the bound events, each once, in the order in which they were read."""
        if not self._ports:
            return constant("", len(self))
        found = self._recent_causes()
        if found is not None:
            return found
        readings = np.column_stack([self.readings(port) for port in self._ports])
        old, new, places = self._remembered.ids(readings, None)
        room = len(self._ports) * (1 + max(old.mean, new.mean))
        return written(cause_writing.join_texts, len(self), room, old, new, places)

    def _recent_causes(self) -> pa.Array | None:
        """The causes if all of up to three ports are bound in the last batch; else None."""
        places = [self._bundle.places[port] for port in self._ports]
        recent = self._remembered.recent_ids()
        if recent is None or len(places) > _FEW or any(len(each) > 1 for each in places):
            return None
        ids, first, rows = recent
        ports = [*self._ports, *self._ports[-1:] * (_FEW - len(places))]
        columns = np.array([self._bundle.places[port][0] for port in ports], np.int64)
        room = len(places) * (1 + ids.mean)
        return written_if_there(
            cause_writing.join_few, len(self), room, ids,
            cause_writing.RecentPlaces(
                self._places, columns, first, rows, self._actions, self._bundle.lacks(ports)
            ),
        )  # fmt: skip

    def column(self, parts: Parts) -> Column:
        """The values of a name: a port, then a name in the event that is bound to it."""
        if parts not in self._known:
            self._known[parts] = self._column(parts)
        return self._known[parts]

    def _column(self, parts: Parts) -> Column:
        port, *rest = parts
        if port not in self._bundle.places:
            return absent(len(self))
        if not is_timer(port):
            if not rest:
                return absent(len(self))
            known = self._remembered.column(tuple(rest), self.readings(port))
        elif [each.lower() for each in rest] == ["time"]:
            known = Column("timestamp", self._held(port))
        else:
            return absent(len(self))
        lacking = self._lacking(port)
        if lacking is None:
            return known
        return Column(known.kind, known.values, known.missing_mask() | lacking)
