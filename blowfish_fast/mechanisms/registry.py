"""Every mechanism by name, and those that other packages define by entry points.

These are imported when asked for by name or as ``"package:Class"``; a ledger takes them
only with the curator's word, for nobody here has proved them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from blowfish_fast import mechanisms
from blowfish_fast._support.validation import as_truth, quoted
from blowfish_fast.errors import InputError, nearest
from blowfish_fast.measure.linear_strategy import LinearStrategy
from blowfish_fast.measure.selectors.partitions.base import Partition

from .base import Mechanism
from .contingency import Contingency
from .laplace import Gaussian
from .sparse import SparseGaussian, SparseLaplace

TABLE_MECHANISMS: dict[str, type[Mechanism]] = {Contingency.name: Contingency}
"""Mechanisms of many tables: who wants one histogram does not walk them."""

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
    and kind not in (Mechanism, Contingency, Gaussian, SparseGaussian, SparseLaplace)
}

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
PLAIN = frozenset([type(None), bool, int, float, str])


def offered_mechanisms() -> dict[str, EntryPoint]:
    """Return what installed packages offer, by name; nothing is imported."""
    return {one.name: one for one in entry_points(group=GROUP)}


def is_outside(name: str) -> bool:
    """Return whether a name is that of a mechanism of another package."""
    return name not in OWN and (":" in name or name in offered_mechanisms())


def find_mechanism(named: Any) -> type[Mechanism]:
    """Return the class of a mechanism of the package or from outside."""
    found = named
    if isinstance(named, str):
        found = OWN.get(named) or _imported(named)
    if not isinstance(found, type) or not issubclass(found, Mechanism):
        raise InputError(
            f"a mechanism is a subclass of Mechanism; received {quoted(named)}"
        )
    name = getattr(found, "name", None)
    if not isinstance(name, str) or OWN.get(name, found) is not found:
        raise InputError(
            "a mechanism from outside needs a name of its own, a class attribute that "
            f"no mechanism of the package has; {found.__name__} has {name!r}"
        )
    return found


def _imported(named: str) -> Any:
    if not is_outside(named):
        known = [*OWN, *offered_mechanisms()]
        raise InputError(
            f"there is no mechanism {named!r}{nearest(named, known)}; there are "
            f"{', '.join(known)}, and package:Class for one of your own"
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


def outside_parts(mechanism: Mechanism) -> list[str]:
    """Return where parts of a mechanism come from that the package did not define."""
    return list(dict.fromkeys(_outside(mechanism)))


def _outside(part: Any) -> Iterator[str]:
    if type(part) in PLAIN:
        return
    kind = part if isinstance(part, type) else type(part)
    if issubclass(kind, Mechanism | Partition | LinearStrategy):
        if kind.__module__.partition(".")[0] != HOME:
            yield f"{kind.__module__}:{kind.__qualname__}"
        if issubclass(kind, Mechanism) and kind is not part:
            for one in vars(part).values():
                yield from _outside(one)
    elif isinstance(part, Mapping):
        for one in part.values():
            yield from _outside(one)
    elif isinstance(part, list | tuple):
        for one in part:
            yield from _outside(one)


def check_vouched(mechanisms: Iterable[Mechanism], *, vouched: bool) -> None:
    """Refuse what was defined outside the package, unless somebody vouches for it."""
    if as_truth(vouched, "vouched"):
        return
    for one in mechanisms:
        strange = outside_parts(one)
        if strange:
            raise InputError(
                f"{', '.join(strange)} was defined outside blowfish_fast, which has "
                "not proved its privacy; a ledger takes it from a curator who vouches "
                "for it",
                way_out="Write release(..., vouched=True). Nothing was charged",
                code="not_vouched",
            )
