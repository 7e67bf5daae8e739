"""`ensue bench`: the measurements of a checkout, which are no part of the installed package."""

from __future__ import annotations

from ensue.errors import UsageError

try:
    from ensue_bench.command import bench
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "ensue_bench":
        raise
    raise UsageError(
        "`ensue bench` needs the measurements, which are not installed with Ensue: they stand in"
        " `benchmarks/` of its source; run `make setup` in a checkout, and `ensue bench` there"
    ) from None

__all__ = ["bench"]
