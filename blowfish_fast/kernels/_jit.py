"""The one place with compiler settings.

An ``exact_kernel`` may fuse a multiplication with an addition, which removes a rounding
and therefore keeps every error bound of the exact samplers. With
``NUMBA_DISABLE_JIT=1``, or where the process has too little to do
(``COMPILER.wanted``), kernels run as plain Python and Numba is not loaded, so each
intrinsic has a plain twin of the same name.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from blowfish_fast._support.compiler_watch import COMPILER

F = TypeVar("F", bound=Callable[..., Any])

COMPILED = COMPILER.wanted and os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")

if COMPILED:
    import numba
    from numba.core import event

    from blowfish_fast.kernels._cache import KernelCache

    class _Listener(event.Listener):  # type: ignore[misc]
        """Passes on when functions are compiled; what comes from the cache is not."""

        def on_start(self, event: Any) -> None:
            COMPILER.begin()

        def on_end(self, event: Any) -> None:
            COMPILER.end()

    event.register("numba:compile", _Listener())


def _compile(function: F, part: str = "", **settings: Any) -> F:
    if not COMPILED:
        return function
    # No kernel is handed to another as a pointer: an entry less to compile for each.
    settings["no_cfunc_wrapper"] = True
    compiled: Any = numba.njit(nogil=True, **settings)(function)
    # Code typed at a prompt has no file: it is compiled anew in each process.
    with suppress(RuntimeError):
        compiled._cache = KernelCache(function, part)
    if not part:
        # Other kernels call a twin without an entry for Python: less to compile.
        settings["no_cpython_wrapper"] = True
        twin: Any = cache(lambda: _compile(function, ".inner", **settings))
        compiled.get_call_template = lambda *types: twin().get_call_template(*types)
        compiled.get_overload = lambda signature: twin().get_overload(signature)
    return compiled  # type: ignore[no-any-return]


def kernel(function: F) -> F:
    """Compile `function` lazily, cached on disk, free of the interpreter lock."""
    return _compile(function, fastmath=False)


def exact_kernel(function: F) -> F:
    """Like `kernel`, with fused multiply-add allowed: it only removes roundings."""
    return _compile(function, fastmath={"contract"})


def helper(function: F) -> F:
    """Compile `function` so that the kernels that call it inline it."""
    return _compile(function, fastmath=False, inline="always")


if COMPILED:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def popcount(typing_context: Any, word: Any) -> Any:
        """Return the number of ones in a 64-bit word, as int64."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            count = builder.module.declare_intrinsic("llvm.ctpop", [ir.IntType(64)])
            return builder.call(count, [values[0]])

        return types.int64(types.uint64), generate

    @intrinsic  # type: ignore[untyped-decorator]
    def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
        """Ask the processor to bring ``array[index]`` near, for writing."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            from numba.core import cgutils
            from numba.np.arrayobj import make_array

            data = make_array(signature.args[0])(context, builder, values[0]).data
            address = builder.bitcast(
                builder.gep(data, [values[1]]), ir.IntType(8).as_pointer()
            )
            flag = ir.IntType(32)
            function_type = ir.FunctionType(
                ir.VoidType(), [address.type, flag, flag, flag]
            )
            function = cgutils.get_or_insert_function(
                builder.module, function_type, "llvm.prefetch.p0"
            )
            builder.call(function, [address, flag(1), flag(3), flag(1)])
            return context.get_dummy_value()

        return types.void(array, types.int64), generate

else:

    def popcount(word: Any) -> Any:
        """Plain twin of the intrinsic."""
        return int(word).bit_count()

    def prefetch(array: Any, index: Any) -> None:
        """Plain twin of the intrinsic: nothing to do."""
