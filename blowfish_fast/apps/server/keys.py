"""Secrets of curators, analysts and monitors: made here, kept as hashes.

    keys.json    {"curator": {"curator": "<salt>$<hash>"}, "analyst": {"ann": ...},
                  "monitor": {"prometheus": ...}}

A secret is 256 random bits, so a plain salted hash cannot be guessed back; comparing
takes the same time whichever part differs.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import threading
from pathlib import Path
from typing import Literal, NamedTuple

from blowfish_fast.errors import InputError

Role = Literal["curator", "analyst", "monitor"]
ROLES: tuple[Role, ...] = ("curator", "analyst", "monitor")
CURATOR = "curator"
"""The first curator, whose secret the command line makes."""

LONGEST_NAME = 64


class Caller(NamedTuple):
    """Who is asking."""

    role: Role
    name: str


class Keys:
    """The secrets of one workspace, in a file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._hashes: dict[str, dict[str, str]] = {role: {} for role in ROLES}
        if path.exists():
            self._hashes |= json.loads(path.read_text())

    def make(self, role: Role, name: str) -> str:
        """Make a new secret for someone; an older one stops working."""
        plain = name.isprintable() and "/" not in name and name == name.strip()
        if not 0 < len(name) <= LONGEST_NAME or not plain:
            raise InputError(
                f"a name has 1 to {LONGEST_NAME} printable characters and no slash"
            )
        if any(name in self._hashes[one] for one in ROLES if one != role) or (
            name == CURATOR and role != "curator"
        ):
            raise InputError(f"{name!r} is somebody in another role; choose a name")
        secret = secrets.token_urlsafe(32)
        salt = secrets.token_hex(16)
        with self._lock:
            self._hashes[role][name] = f"{salt}${_hash(salt, secret)}"
            self._write()
        return secret

    def revoke(self, role: Role, name: str) -> None:
        """Forget a secret; the last curator keeps hers."""
        with self._lock:
            known = self._hashes[role]
            if role == "curator" and name in known and len(known) == 1:
                raise InputError("this is the only curator; add another one first")
            known.pop(name, None)
            self._write()

    def names(self, role: Role) -> list[str]:
        """Return the names of all in a role."""
        return sorted(self._hashes[role])

    def identify(self, secret: str) -> Caller | None:
        """Return whose secret it is; None if nobody's. All are compared."""
        found: Caller | None = None
        for role in ROLES:
            for name, kept in list(self._hashes[role].items()):
                salt, expected = kept.split("$", 1)
                if hmac.compare_digest(_hash(salt, secret), expected):
                    found = Caller(role, name)
        return found

    def _write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".new")
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(handle, "w") as file:
            json.dump(self._hashes, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.path)


def _hash(salt: str, secret: str) -> str:
    return hashlib.sha256(f"{salt}:{secret}".encode()).hexdigest()
