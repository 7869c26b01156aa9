"""Which parts of a question were defined outside the package, and who vouches for them.

Nobody here has proved what a class from elsewhere does, so a ledger charges for one
only where a curator vouches for it. A question is a tree of objects, all of which are
looked at:

    mechanism ---- policy ------- domain
              |--- workload ----- domain
              `--- partition      any of these may be somebody else's class, or hold
                                  a method that was replaced on the object
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from blowfish_fast._support.validation import as_truth
from blowfish_fast.errors import InputError

HOME = __name__.partition(".")[0]
"""The name of this package."""
READERS = {"numpy", "scipy", "numba", "pandas", "pyarrow", "polars", "duckdb", "ibis"}
"""Packages that hold arrays and tables, which data and workloads are made of."""
TRUSTED = sys.stdlib_module_names | READERS | {HOME}
"""Packages whose classes may be parts of a question that nobody vouches for."""
PLAIN = frozenset([type(None), bool, int, float, str, Fraction])
"""Types whose values hold no other object, so that a walk need not look inside."""


def outside_parts(mechanism: Any, data: Any = None) -> list[str]:
    """Return where parts of a question come from that the package did not define.

    The whole of a mechanism is walked: policy, workload, partition, selector, strategy,
    domain and all that they hold in turn; then the kind of its data. A part comes from
    outside if its class was defined neither here nor in Python or in one of `READERS`,
    if it holds a function from elsewhere, or if a method was replaced on the object.

    Parameters
    ----------
    mechanism : Mechanism
        What is to be charged.
    data : Histogram, array or table, optional
        What it is to be run on; only its kind is looked at, never what it holds.

    Returns
    -------
    list of str
        ``"package:Class"`` for each such part, once; empty if there is none.
    """
    places = dict.fromkeys(_Walk().outside(mechanism))
    kinds = type(data).__mro__
    if any(_home_of(kind) == HOME for kind in kinds) and _home_of(kinds[0]) != HOME:
        places[place_of(kinds[0])] = None
    return list(places)


def check_vouched(
    mechanisms: Iterable[Any], *, vouched: bool, data: Any = None
) -> None:
    """Refuse what was defined outside the package, unless somebody vouches for it.

    Parameters
    ----------
    mechanisms : Iterable[Mechanism]
        What a ledger is to run.
    vouched : bool
        Whether the curator vouches for it.
    data : object, optional
        What it is to run on.

    Raises
    ------
    InputError
        If one comes from outside, and nobody vouches.
    """
    if as_truth(vouched, "vouched"):
        return
    for mechanism in mechanisms:
        strange = outside_parts(mechanism, data)
        if strange:
            raise InputError(
                f"{', '.join(strange)} was defined outside blowfish_fast, which has "
                "not proved its privacy; a ledger takes it from a curator who vouches "
                "for it",
                way_out="Write release(..., vouched=True). Nothing was charged",
                code="not_vouched",
            )


class _Walk:
    """Look at every object that a question consists of, each once."""

    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}

    def outside(self, part: Any) -> Iterator[str]:
        """Yield the place of every part that was defined elsewhere."""
        kind = type(part)
        if kind in PLAIN or id(part) in self._seen:
            return
        # Kept, so that no other object gets its number while the walk lasts.
        self._seen[id(part)] = part
        if isinstance(part, type | FunctionType | MethodType | BuiltinFunctionType):
            if not is_trusted(part):
                yield place_of(part)
            if isinstance(part, MethodType):
                yield from self.outside(part.__self__)
            return
        if not is_trusted(kind):
            yield place_of(kind)
        yield from self._inside(part)

    def _inside(self, part: Any) -> Iterator[str]:
        if isinstance(part, np.ndarray):
            if part.dtype.hasobject:
                yield from self._each(part.reshape(-1).tolist())
            return
        # Copies are walked through: other threads share a plan's policy and workload,
        # and whatever one of them derives for the first time is entered meanwhile.
        if isinstance(part, Mapping):
            entries = dict(part)
            yield from self._each(entries.keys())
            yield from self._each(entries.values())
        elif isinstance(part, list | tuple | set | frozenset):
            yield from self._each(tuple(part))
        held = dict(getattr(part, "__dict__", {}))
        if _home_of(type(part)) == HOME:
            yield from _replaced_methods(part, held)
        yield from self._each(held.values())
        for owner in type(part).__mro__:
            slots = owner.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if name not in ("__dict__", "__weakref__"):
                    yield from self.outside(getattr(part, name, None))

    def _each(self, parts: Iterable[Any]) -> Iterator[str]:
        if not PLAIN.issuperset(map(type, parts)):
            for part in parts:
                yield from self.outside(part)


def _replaced_methods(part: Any, held: Mapping[str, Any]) -> Iterator[str]:
    """Yield methods that somebody put on one object in place of those of its class."""
    for name, value in held.items():
        if callable(value) and isinstance(
            getattr(type(part), name, None), FunctionType
        ):
            yield f"{place_of(type(part))}.{name}, replaced on the object"


def _home_of(defined: Any) -> str:
    return str(getattr(defined, "__module__", None)).partition(".")[0]


def is_trusted(defined: Any) -> bool:
    """Return whether a class or function needs nobody who vouches for it."""
    home = _home_of(defined)
    # Functions of a C library name no module.
    return home in TRUSTED or (home == "None" and not isinstance(defined, type))


def place_of(defined: Any) -> str:
    """Return ``"package:Class"`` of a class or function."""
    return f"{defined.__module__}:{defined.__qualname__}"
