"""The settings of a server: the tables of its TOML file, read and checked."""

from ensue.server.settings.reading import read_settings
from ensue.server.settings.settings import Settings

__all__ = ["Settings", "read_settings"]
