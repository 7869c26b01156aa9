"""Every mechanism by name, and those that other packages define by entry points.

These are imported when asked for by name or as ``"package:Class"``; a ledger takes them
only with the curator's word, for nobody here has proved them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from importlib.metadata import EntryPoint, entry_points
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from blowfish_fast import mechanisms
from blowfish_fast._support.plug_ins import blamed_on
from blowfish_fast._support.validation import as_truth, quoted
from blowfish_fast.errors import InputError, nearest

from .base import Mechanism
from .chosen_tables import ChosenTables
from .contingency import Contingency
from .laplace import Gaussian
from .sparse import SparseGaussian, SparseLaplace

TABLE_MECHANISMS: dict[str, type[Mechanism]] = {
    Contingency.name: Contingency,
    ChosenTables.name: ChosenTables,
}
"""Mechanisms that release many tables. Whoever tries mechanisms on one histogram leaves
them out, since they answer no other workload."""

LIST_MECHANISMS: dict[str, type[Mechanism]] = {SparseLaplace.name: SparseLaplace}
"""Mechanisms that list heavy cells, of a domain of any size, and estimate no others."""

RHO_MECHANISMS: dict[str, type[Mechanism]] = {Gaussian.name: Gaussian}
"""Mechanisms that take no epsilon alone; all others take either currency."""

RHO_LIST_MECHANISMS: dict[str, type[Mechanism]] = {SparseGaussian.name: SparseGaussian}
"""Mechanisms that list heavy cells, paid in rho."""

MECHANISMS: dict[str, type[Mechanism]] = {
    kind.name: kind
    for kind in (getattr(mechanisms, name) for name in mechanisms.__all__)
    if issubclass(kind, Mechanism)
    and kind not in (Mechanism, *TABLE_MECHANISMS.values(), Gaussian)
    and kind not in (SparseGaussian, SparseLaplace)
}
"""Mechanisms that estimate every cell of a histogram, and are paid in epsilon. Command
line, explorer, audits and benchmarks walk these."""

OWN = {
    **MECHANISMS,
    **TABLE_MECHANISMS,
    **LIST_MECHANISMS,
    **RHO_MECHANISMS,
    **RHO_LIST_MECHANISMS,
}
"""Every mechanism that the package defines, and has proved."""

GROUP = "blowfish_fast.mechanisms"
"""Entry points under which installed packages offer mechanisms."""

MechanismName = str | type[Mechanism]
"""A name of the registry or of an entry point, ``"package:Class"``, or a class."""

HOME = __name__.partition(".")[0]
"""The name of this package."""
READERS = {"numpy", "scipy", "numba", "pandas", "pyarrow", "polars", "duckdb", "ibis"}
"""Packages that hold arrays and tables, which data and workloads are made of."""
TRUSTED = sys.stdlib_module_names | READERS | {HOME}
"""Packages whose classes may be parts of a question without anybody's word."""
PLAIN = frozenset([type(None), bool, int, float, str, Fraction])
"""Types whose values hold no other object, so that a walk need not look inside."""


def offered_mechanisms() -> dict[str, EntryPoint]:
    """Return what installed packages offer, by name; nothing is imported."""
    return {entry_point.name: entry_point for entry_point in entry_points(group=GROUP)}


def is_outside(name: str) -> bool:
    """Return whether a name is that of a mechanism of another package."""
    return name not in OWN and (":" in name or name in offered_mechanisms())


def find_mechanism(named: Any) -> type[Mechanism]:
    """Return the class of a mechanism of the package or from outside."""
    kind = named
    if isinstance(named, str):
        kind = OWN.get(named) or _imported(named)
    if not isinstance(kind, type) or not issubclass(kind, Mechanism):
        raise InputError(
            f"a mechanism is a subclass of Mechanism; received {quoted(named)}"
        )
    name = getattr(kind, "name", None)
    if not isinstance(name, str) or OWN.get(name, kind) is not kind:
        raise InputError(
            "a mechanism from outside needs a name of its own, a class attribute that "
            f"no mechanism of the package has; {kind.__name__} has {name!r}"
        )
    return kind


def _imported(named: str) -> Any:
    if not is_outside(named):
        names = [*OWN, *offered_mechanisms()]
        raise InputError(
            f"there is no mechanism {named!r}{nearest(named, names)}; there are "
            f"{', '.join(names)}, and package:Class for one of your own"
        )
    place = offered_mechanisms().get(named) or EntryPoint(named, named, GROUP)
    try:
        return place.load()
    except Exception as problem:
        # What fails while somebody else's module is run may be anything.
        raise InputError(
            "a mechanism from outside is a class in a module that can be imported",
            received=f"{place.value!r}: {type(problem).__name__}, {problem}",
            way_out="Install its package, or run the command in the folder of the file",
        ) from problem


def outside_parts(mechanism: Mechanism, data: Any = None) -> list[str]:
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
        places[_place_of(kinds[0])] = None
    return list(places)


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
            if not _is_trusted(part):
                yield _place_of(part)
            if isinstance(part, MethodType):
                yield from self.outside(part.__self__)
            return
        if not _is_trusted(kind):
            yield _place_of(kind)
        yield from self._inside(part)

    def _inside(self, part: Any) -> Iterator[str]:
        if isinstance(part, np.ndarray):
            if part.dtype.hasobject:
                yield from self._each(part.reshape(-1).tolist())
            return
        if isinstance(part, Mapping):
            yield from self._each(part.keys())
            yield from self._each(part.values())
        elif isinstance(part, list | tuple | set | frozenset):
            yield from self._each(part)
        held = getattr(part, "__dict__", {})
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
            yield f"{_place_of(type(part))}.{name}, replaced on the object"


def _home_of(defined: Any) -> str:
    return str(getattr(defined, "__module__", None)).partition(".")[0]


def _is_trusted(defined: Any) -> bool:
    home = _home_of(defined)
    # Functions of a C library name no module.
    return home in TRUSTED or (home == "None" and not isinstance(defined, type))


def _place_of(defined: Any) -> str:
    return f"{defined.__module__}:{defined.__qualname__}"


def built(kind: Any, *arguments: Any, **options: Any) -> Any:
    """Make a mechanism; a fault of one from outside is said to be its own.

    Parameters
    ----------
    kind : type
        Its class.
    *arguments : object
        What it takes.
    **options : object
        What it takes by name.

    Returns
    -------
    Mechanism
        The mechanism.

    Raises
    ------
    PlugInError
        If the class was defined outside the package, and failed.
    """
    with blamed_on(lambda: [] if _is_trusted(kind) else [_place_of(kind)]):
        return kind(*arguments, **options)


def check_vouched(
    mechanisms: Iterable[Mechanism], *, vouched: bool, data: Any = None
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
