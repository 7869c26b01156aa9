"""A fingerprint of a question: mechanism, parameters, policy, never data.

Attributes with an underscore and cached properties are by-products, and left out.
"""

from __future__ import annotations

import enum
import hashlib
import re
import types
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from blowfish_fast.errors import LedgerError
from blowfish_fast.measure.budgets import Budget
from blowfish_fast.mechanisms import Mechanism
from blowfish_fast.policies import Policy

DEEPEST = 40
"""Objects within objects, at most: a cycle would never end."""


Facts = dict[str, Any]
_KNOWN: WeakKeyDictionary[Mechanism, tuple[dict[str, Any], Facts]] = WeakKeyDictionary()

FIRST_ROOMS = {
    "measure.selectors.partitions": "DyadicRectangles DyadicTree KBuckets "
    "ThresholdedSort",
    "mechanisms": "Gaussian Matching OrderedHierarchical Privelet",
    "mechanisms.baselines": "Ahp Efpa Mwem NoiseFirst Php StructureFirst",
    "mechanisms.maps": "AdaptiveGrid HierarchicalKdTree HybridTree KdTree QuadTree "
    "UniformGrid",
    "workloads": "Identity Marginals Rectangles Union",
}
"""Where classes that moved since stood when ledgers first knew them, each in a file."""
FIRST_HOMES = {
    name: f"{room}.{re.sub('(?<!^)(?=[A-Z])', '_', name).lower()}"
    for room, names in FIRST_ROOMS.items()
    for name in names.split()
} | {"Sum": "workloads.sums", "Total": "workloads.identity"}
FIRST_HOMES["WorstQuery"] = "measure.selectors.selections.by_cost"

ADDED_LATER = {"Axis": ("steps", "keys")}
"""Fields that a class got since: where they are None, ledgers know it without them."""

PLAIN = frozenset([type(None), bool, int, float, complex, str])
"""Whose ``repr`` tells everything, and tells it apart from any other."""


def question_digest(*question: Any) -> str:
    """Return a fingerprint in hexadecimal; refuse what has no lasting description."""
    return _digest(question, 0).hex()


def _digest(value: Any, depth: int) -> bytes:
    if type(value) in PLAIN:
        return _plain_digest(type(value).__name__, repr(value))
    if not isinstance(value, Mechanism):
        return _whole_digest(value, depth)
    facts = facts_of(value)
    if "digest" not in facts:
        facts["digest"] = _whole_digest(value, depth)
    digest: bytes = facts["digest"]
    return digest


def facts_of(mechanism: Mechanism) -> Facts:
    """Return what is remembered of a mechanism while it holds the same objects."""
    parts = _attributes(mechanism) or {}
    before, facts = _KNOWN.get(mechanism, ({}, {}))
    same = before.keys() == parts.keys()
    if not (same and all(before[name] is one for name, one in parts.items())):
        facts = {}
        _KNOWN[mechanism] = parts, facts
    return facts


def _whole_digest(value: Any, depth: int) -> bytes:
    if depth > DEEPEST:
        raise LedgerError("objects within objects without end have no fingerprint")
    kind, parts = _describe(value, depth)
    total = hashlib.sha256(kind.encode())
    for part in parts:
        inner = part if isinstance(part, bytes) else _digest(part, depth + 1)
        total.update(len(inner).to_bytes(8, "little"))
        total.update(inner)
    return total.digest()


@lru_cache(maxsize=4096)
def _plain_digest(kind: str, text: str) -> bytes:
    """Return what `_digest` finds for a plain value; names come again and again."""
    content = text.encode()
    length = len(content).to_bytes(8, "little")
    return hashlib.sha256(kind.encode() + length + content).digest()


def _describe(value: Any, depth: int) -> tuple[str, list[Any]]:
    """Return the kind of a value and its parts: bytes, or values in turn."""
    if isinstance(value, enum.Enum):
        return f"enum {_class_name(value)}", [value.name.encode()]
    if value is None or isinstance(value, bool | int | float | complex | str):
        return type(value).__name__, [repr(value).encode()]
    if isinstance(value, bytes | bytearray | memoryview):
        return "bytes", [bytes(value)]
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        shape = repr((array.dtype.str, array.shape)).encode()
        if array.dtype.hasobject:
            return "array", [shape, array.reshape(-1).tolist()]
        return "array", [shape, np.ascontiguousarray(array).tobytes()]
    if isinstance(value, tuple | list):
        if PLAIN.issuperset(map(type, value)):
            # One text for all: domains list thousands of edges or levels.
            return f"plain {type(value).__name__}", [repr(value).encode()]
        return type(value).__name__, list(value)
    if isinstance(value, Mapping):
        pairs = [_digest(pair, depth + 1) for pair in value.items()]
        return "mapping", sorted(pairs)
    if isinstance(value, set | frozenset):
        return "set", sorted(_digest(one, depth + 1) for one in value)
    if isinstance(value, Policy):
        # Equal policies over bins may stand for different bins of the parent.
        identity = [value.kind, value._identity, value.parent, value.buckets]
        return "policy", identity
    return _describe_object(value)


def _describe_object(value: Any) -> tuple[str, list[Any]]:
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        name = f"{value.__module__}.{value.__qualname__}"
        if "<" in name:
            raise LedgerError(
                f"{name} has no name of its own, so the question has no fingerprint; "
                "define it at the top of a module"
            )
        return "named", [name.encode()]
    attributes = _attributes(value)
    if attributes is not None:
        return f"object {_class_name(value)}", [attributes]
    text = repr(value)
    if " at 0x" in text:
        raise LedgerError(
            f"the question holds a {_class_name(value)}, which does not say what it "
            "is, so it has no fingerprint; leave it out of the mechanism"
        )
    return f"object {_class_name(value)}", [text.encode()]


def _attributes(value: Any) -> dict[str, Any] | None:
    """Return what an object consists of; None if only its repr can tell."""
    found: dict[str, Any] = {}
    for owner in type(value).__mro__:
        slots = owner.__dict__.get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else tuple(slots)
        found |= {name: getattr(value, name) for name in names if hasattr(value, name)}
    found |= getattr(value, "__dict__", {})
    later = ADDED_LATER.get(type(value).__qualname__, ())
    public = {
        name: one
        for name, one in found.items()
        if not name.startswith("_")
        and not (one is None and name in later)
        and not isinstance(getattr(type(value), name, None), cached_property)
    }
    budget = public.get("budget")
    if (
        isinstance(value, Mechanism)
        and isinstance(budget, Budget)
        and budget.power == 1
    ):
        # Ledgers written before there was rho know a mechanism by its epsilon.
        del public["budget"]
        public["epsilon"] = value.budget.amount
    return public if public or hasattr(value, "__dict__") else None


def _class_name(value: Any) -> str:
    name, home = type(value).__qualname__, type(value).__module__
    if home.startswith("blowfish_fast.") and name in FIRST_HOMES:
        home = f"blowfish_fast.{FIRST_HOMES[name]}"
    return f"{home}.{name}"
