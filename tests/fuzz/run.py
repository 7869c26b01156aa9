"""One input through one door: what came of it, and whether that is documented."""

from __future__ import annotations

import contextlib
import traceback
import warnings
from typing import NamedTuple

import numpy as np

import blowfish_fast as bf

REFUSALS = (bf.BlowfishError,)
"""What a door may raise."""

KERNEL_REFUSALS = (bf.BlowfishError, ValueError, TypeError, OverflowError, MemoryError)
"""What a kernel may raise: it is handed arrays, and refuses those that do not fit."""

MOST_CELLS = 2**12


class Failure(NamedTuple):
    """An input that was neither accepted nor refused as it should be."""

    door: str
    given: str
    trace: str

    def __str__(self):
        return f"{self.door}({self.given})\n{self.trace}"


def try_door(door, rng):
    """Return whether the input was accepted, or a `Failure`."""
    given, named = door.arguments(rng)
    refusals = KERNEL_REFUSALS if door.kernel else REFUSALS
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            value = door.call(*given, **named)
            if not door.kernel:
                use(value)
        return True
    except refusals:
        return False
    except Exception:
        return Failure(door.name, _shown(given, named), traceback.format_exc(limit=-6))


def use(value):
    """Ask what was read for everything that costs nothing."""
    repr(value)
    domain = getattr(value, "domain", None)
    if isinstance(value, bf.policies.Policy):
        value.describe()
        assert value.edge_count >= 0
    if isinstance(value, bf.Release) and domain and domain.size <= MOST_CELLS:
        cells = bf.workloads.Identity(domain)
        for ask in ("answer", "intervals", "standard_errors"):
            with contextlib.suppress(bf.BlowfishError):
                getattr(value, ask)(cells)
    if hasattr(value, "to_bytes"):
        value.to_bytes()


def _shown(given, named):
    text = ", ".join(
        [repr(one) for one in given] + [f"{k}={v!r}" for k, v in named.items()]
    )
    return text if len(text) < 2000 else text[:2000] + " ..."
