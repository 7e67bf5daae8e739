"""History: what was published, each with its interval of time, and filters asked over it.

`History` is what users hold. It keeps publications (`publication`) in a store behind one small
interface (`store`): in memory, in a database or in Parquet files (`stores`), and asks filters of
them (`asking`). Terms of a filter that are not temporal become keys, which a store finds by an
index (`narrowing`, `postings`).
"""

from ensue.history.history import History

__all__ = ["History"]
