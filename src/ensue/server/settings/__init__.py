"""The settings of a server: the tables of its TOML file, read and checked."""

from ensue.server.settings.reading import Settings, read_settings

__all__ = ["Settings", "read_settings"]
