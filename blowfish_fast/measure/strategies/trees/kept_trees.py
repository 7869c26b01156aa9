"""Trees that were tuned to public queries, kept from one process to the next.

::

    CACHE/trees/NAME    SHA-256 of the rest | objective | fan-out | weight of each node

A name is a digest of all that a tree follows from: queries and leaves, which are
public, the sources that tune it, and the machine whose arithmetic did. Nothing about
data, noise or buckets that were drawn is among it. A file is written beside its place
and moved there, so that whoever reads sees all of it or none; one that is damaged is
tuned anew. Whatever it held, a guarantee would not suffer: prices are worked out from
the weights that are used. ``BLOWFISH_CACHE_DIR`` names another folder, and keeps
nothing where it is empty.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import struct
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from blowfish_fast import kernels
from blowfish_fast._support.machine import cache_folder
from blowfish_fast._support.typing import FloatArray

MOST_FILES = 128
"""The latest so many are kept, of at most half a megabyte each."""
DIGEST_BYTES = 32
_HEAD = struct.Struct("<dq")
# Where tuning happens: weights follow from what these hold.
_ROOMS = ("", "graph", "space", "tree", "tree_scaling")


class TunedWeights(NamedTuple):
    """Weights of one tree, and the error that they promise.

    Attributes
    ----------
    fan_out : int
        The most children of a node.
    node_weights : ndarray of float64, shape (nodes,)
        The weights.
    objective : float
        Its error in units of 2 / epsilon^2 or 1 / (2 rho).
    """

    fan_out: int
    node_weights: FloatArray
    objective: float


def kept_tree(facts: tuple[object, ...], leaves: int) -> TunedWeights | None:
    """Return the tree that was kept for the same public facts.

    Parameters
    ----------
    facts : tuple
        What the tree was tuned to: words, numbers and bytes.
    leaves : int
        Number of its leaves.

    Returns
    -------
    TunedWeights or None
        None where nothing was kept, or what was kept is damaged.
    """
    try:
        content = _place(facts).read_bytes()
    except OSError:
        return None
    digest, body = content[:DIGEST_BYTES], content[DIGEST_BYTES:]
    whole = len(body) > _HEAD.size and len(body) % 8 == 0
    if not whole or hashlib.sha256(body).digest() != digest:
        return None
    objective, fan_out = _HEAD.unpack_from(body)
    weights = np.frombuffer(body, "<f8", offset=_HEAD.size).astype(np.float64)
    # By another program: a digest that agrees says nothing about the numbers.
    sound = math.isfinite(objective) and 2 <= fan_out <= 2 * leaves
    sound = sound and weights.size == kernels.regular_tree(leaves, fan_out).nodes
    sound = sound and bool(((weights >= 0.0) & (weights <= 1.0)).all())
    return TunedWeights(fan_out, weights, objective) if sound else None


def keep_tree(facts: tuple[object, ...], tuned: TunedWeights) -> None:
    """Keep a tree for other processes, if there is room for it.

    Parameters
    ----------
    facts : tuple
        What it was tuned to, as `kept_tree` is asked.
    tuned : TunedWeights
        The tree. A folder that cannot be written costs time alone.
    """
    weights = tuned.node_weights.astype("<f8").tobytes()
    body = _HEAD.pack(tuned.objective, tuned.fan_out) + weights
    with suppress(OSError):
        place = _place(facts)
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(dir=place.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(body).digest() + body)
            Path(beside).replace(place)
        except OSError:
            Path(beside).unlink(missing_ok=True)
            raise
        _remove_oldest(place.parent)


def _remove_oldest(folder: Path) -> None:
    with os.scandir(folder) as entries:
        by_age = sorted((entry.stat().st_mtime_ns, entry.path) for entry in entries)
    for _, path in by_age[:-MOST_FILES]:
        Path(path).unlink(missing_ok=True)


def _place(facts: tuple[object, ...]) -> Path:
    """Return where a tree is kept; it raises an `OSError` where nothing is."""
    folder = cache_folder()
    digest = hashlib.sha256(_makers())
    for fact in facts:
        part = fact if isinstance(fact, bytes) else repr(fact).encode()
        digest.update(len(part).to_bytes(8, "little") + part)
    return folder / "trees" / digest.hexdigest()


@cache
def _makers() -> bytes:
    """Return a digest of what tunes: sources, libraries and the machine."""
    here = Path(__file__).parent
    package = here.parents[2]
    folders = [here, *(package / "kernels" / room for room in _ROOMS)]
    files = sorted(path for folder in folders for path in folder.glob("*.py"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files))
    # Powers are those of the system's library: on another one they may round otherwise.
    digest.update(f"{platform.platform()} {sys.version} {np.__version__}".encode())
    return digest.digest()
