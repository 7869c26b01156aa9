"""A fingerprint of a question: mechanism, parameters, policy, never data.

It holds registered names, never paths of files (`registered_names`), so that a question
that was paid for is found again wherever its classes stand by then. Attributes with an
underscore and cached properties are by-products, and left out.
"""

from __future__ import annotations

import enum
import hashlib
import types
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from blowfish_fast.errors import LedgerError
from blowfish_fast.mechanisms import Mechanism
from blowfish_fast.policies import Policy

from .registered_names import REGISTERED_NAMES

PACKAGE = "blowfish_fast"

Named = type | types.FunctionType | types.BuiltinFunctionType
"""What is described by its name alone."""

DEEPEST = 40
"""Objects within objects, at most: a cycle would never end."""


Facts = dict[str, Any]
_KNOWN: WeakKeyDictionary[Mechanism, tuple[dict[str, Any], Facts]] = WeakKeyDictionary()

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
    if not (same and all(before[name] is part for name, part in parts.items())):
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
        return f"enum {_lasting_name(type(value))}", [value.name.encode()]
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
    if hasattr(value, "tocsr") and hasattr(value, "nnz"):
        # A sparse matrix, whose class stands in a private file of another library.
        rows = value.tocsr().sorted_indices()
        return "sparse", [
            rows.shape,
            rows.indptr.astype("<i8"),
            rows.indices.astype("<i8"),
            rows.data,
        ]
    if isinstance(value, tuple | list):
        if PLAIN.issuperset(map(type, value)):
            # One text for all: domains list thousands of edges or levels.
            return f"plain {type(value).__name__}", [repr(value).encode()]
        return type(value).__name__, list(value)
    if isinstance(value, Mapping):
        pairs = [_digest(pair, depth + 1) for pair in tuple(value.items())]
        return "mapping", sorted(pairs)
    if isinstance(value, set | frozenset):
        return "set", sorted(_digest(member, depth + 1) for member in value)
    if isinstance(value, Policy):
        # Equal policies over bins may stand for different bins of the parent.
        identity = [value.kind, value._identity, value.parent, value.buckets]
        return "policy", identity
    return _describe_object(value)


def _describe_object(value: Any) -> tuple[str, list[Any]]:
    if isinstance(value, Named):
        name = _lasting_name(value)
        if "<" in name:
            raise LedgerError(
                f"{name} has no name of its own, so the question has no fingerprint; "
                "define it at the top of a module"
            )
        return "named", [name.encode()]
    attributes = _attributes(value)
    if attributes is not None:
        return f"object {_lasting_name(type(value))}", [attributes]
    text = repr(value)
    if " at 0x" in text:
        raise LedgerError(
            f"the question holds a {_lasting_name(type(value))}, which does not say "
            "what it is, so it has no fingerprint; leave it out of the mechanism"
        )
    return f"object {_lasting_name(type(value))}", [text.encode()]


def _attributes(value: Any) -> dict[str, Any] | None:
    """Return what an object consists of; None if only its repr can tell."""
    attributes: dict[str, Any] = {}
    for owner in type(value).__mro__:
        slots = owner.__dict__.get("__slots__", ())
        names = (slots,) if isinstance(slots, str) else tuple(slots)
        attributes |= {
            name: getattr(value, name) for name in names if hasattr(value, name)
        }
    attributes |= getattr(value, "__dict__", {})
    later = _of_class(type(value), "_later_fields", ())
    public = {
        name: content
        for name, content in attributes.items()
        if not name.startswith("_")
        and not isinstance(_of_class(type(value), name, None), cached_property)
        # What came after the first ledgers leaves theirs as they are while it is None.
        and not (content is None and name in later)
    }
    return public if public or hasattr(value, "__dict__") else None


def _of_class(kind: type, name: str, default: Any) -> Any:
    """Return what a class or a class above it defines under a name.

    `getattr` would ask the metaclass about every name that is not there, and classes of
    this package answer that with a search for the nearest name.
    """
    for owner in kind.__mro__:
        if name in owner.__dict__:
            return owner.__dict__[name]
    return default


def _lasting_name(kind: Named) -> str:
    """Return the registered name of a class, or the module and name of a stranger's.

    No registered name has a dot and every other one has, so none is taken for another.
    What the package defines and nobody registered goes by its own name, without a file.
    """
    module, name = kind.__module__, kind.__qualname__
    if module.partition(".")[0] != PACKAGE:
        return f"{module}.{name}"
    return REGISTERED_NAMES.get(name, f"{PACKAGE}.{name}")
