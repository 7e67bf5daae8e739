"""Places on the earth, and the areas in which events are valid."""

from __future__ import annotations

from math import asin, cos, radians, sin, sqrt
from typing import NamedTuple

EARTH_METRES = 6_371_008.8
"""The mean radius (IUGG)."""


class GeoPosition(NamedTuple):
    """A point on the earth, in degrees."""

    latitude: float
    longitude: float

    @classmethod
    def parse(cls, text: str) -> GeoPosition:
        """`latitude,longitude`. Raises `ValueError`."""
        parts = [float(each) for each in text.split(",")]
        if len(parts) != 2:
            raise ValueError(f"`{text}` is no position: as `53.34,-6.26`")
        return cls(*parts)._checked()

    def _checked(self) -> GeoPosition:
        if not (-90 <= self.latitude <= 90 and -180 <= self.longitude <= 180):
            raise ValueError(f"`{self.latitude},{self.longitude}` is no place on the earth")
        return self

    def metres_to(self, other: GeoPosition) -> float:
        """The distance on a sphere, by the haversine formula."""
        one, two = radians(self.latitude), radians(other.latitude)
        across = sin((two - one) / 2) ** 2
        along = sin(radians(other.longitude - self.longitude) / 2) ** 2
        return 2 * EARTH_METRES * asin(sqrt(min(1.0, across + cos(one) * cos(two) * along)))


class Area(NamedTuple):
    """A circle on the earth: its centre, and its radius in metres."""

    centre: GeoPosition
    metres: float

    @classmethod
    def parse(cls, text: str) -> Area:
        """`latitude,longitude,metres`. Raises `ValueError`."""
        place, _, metres = text.rpartition(",")
        return cls(GeoPosition.parse(place), float(metres))

    def __contains__(self, position: object) -> bool:
        return isinstance(position, GeoPosition) and self.centre.metres_to(position) <= self.metres

    def __str__(self) -> str:
        return f"{self.centre.latitude},{self.centre.longitude},{self.metres:g}"
