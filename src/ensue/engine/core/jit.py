"""How loops are compiled.

A kernel takes arrays, or named tuples of arrays, and returns how far it came. A kernel that lacks
something (an entry of a table that has not been worked out, room in an array) stops there; Python
provides it and calls the kernel again, from the same place. Compiled code is cached on disk, so
that a new process only loads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core.cgutils import get_or_insert_function
from numba.extending import intrinsic

from ensue.events.kernels.compiling import compiled, uncounted

__all__ = ["FAR", "compiled", "inlined", "lowered", "prefetch", "uncounted"]

FAR = 2**62
"""The start of what needs no earlier event; its negative says that a state is not active."""

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
inlined: Decorator = njit(inline="always")
lowered: Decorator = intrinsic


@lowered
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:  # noqa: ARG001
    """Prefetch an item of an array, to be read and written."""
    signature = types.void(array, index)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        held = context.make_array(signature.args[0])(context, builder, arguments[0])
        at = builder.gep(held.data, [arguments[1]])
        word = ir.IntType(32)
        pointer = builder.bitcast(at, ir.IntType(8).as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        name = "llvm.prefetch.p0"
        function = get_or_insert_function(builder.module, kind, name)  # type: ignore[no-untyped-call]
        builder.call(function, [pointer, word(1), word(3), word(1)])
        return context.get_dummy_value()

    return signature, generate
