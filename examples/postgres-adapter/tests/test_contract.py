"""The adapter keeps the contract of adapters; `ENSUE_POSTGRES` is the address of a database."""

import os
from itertools import count

from ensue.federation.adapters import Service
from ensue.testing.adapters import AdapterContract

numbers = count(1)


class TestPostgres(AdapterContract):
    def service(self) -> Service:
        return Service(
            name=f"s{next(numbers)}",
            kind="postgres",
            url=os.environ["ENSUE_POSTGRES"],
            address=f"suite.{os.getpid()}.{next(numbers)}",
        )

    def unreachable(self) -> Service:
        return Service(name="s", kind="postgres", url="postgresql://nobody@127.0.0.1:1/none")
