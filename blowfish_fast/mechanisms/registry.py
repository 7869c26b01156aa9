"""Every mechanism by name, and those that other packages define by entry points.

These are imported when asked for by name or as ``"package:Class"``; a ledger takes them
only with the curator's word, for nobody here has proved them.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any

from blowfish_fast import mechanisms
from blowfish_fast._support.plug_ins import is_trusted, place_of
from blowfish_fast._support.validation import quoted
from blowfish_fast.errors import InputError, PlugInError, nearest
from blowfish_fast.measure.unseen import ended_by_signal

from .base import FAILED_OUTSIDE, Mechanism, blamed_on
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
    except (ImportError, AttributeError) as problem:
        raise InputError(
            "a mechanism from outside is a class in a module that can be imported",
            received=f"{place.value!r}: {type(problem).__name__}, {problem}",
            way_out="Install its package, or run the command in the folder of the file",
        ) from problem
    except (Exception, SystemExit) as problem:
        if ended_by_signal(problem):
            raise
        # What fails while somebody else's module is run may be anything.
        raise PlugInError(
            f"the module of {place.value!r}, {FAILED_OUTSIDE} while it was imported",
            received=f"{type(problem).__name__}: {problem}",
            way_out="The fault is in that file: mend it there, or ask its author",
            code="plug_in_failed",
        ) from problem


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
    with blamed_on(lambda: [] if is_trusted(kind) else [place_of(kind)]):
        return kind(*arguments, **options)
