"""Who is known: secrets, log-ins of browsers, and how often each may ask.

    keys.json    {"curator": {"curator": "<salt>$<hash>"}, "analyst": {"ann": ...},
                  "monitor": {"prometheus": ...}}

Secrets and cookies are 256 random bits, so a plain hash of them cannot be guessed back;
comparing takes the same time whichever part differs.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from blowfish_fast.errors import InputError

Role = Literal["curator", "analyst", "monitor"]
ROLES: tuple[Role, ...] = ("curator", "analyst", "monitor")
CURATOR = "curator"
"""The first curator, whose secret the command line makes."""
LONGEST_NAME = 64
"""Characters of somebody's name."""
LASTS = 8 * 3600.0
"""Seconds until a log-in ends."""
MOST_SESSIONS = 10_000
"""Log-ins that are remembered; beyond that the oldest ends."""
MOST_BUCKETS = 10_000
"""Callers whose rate is remembered; then the one seen longest ago is forgotten."""


class Caller(NamedTuple):
    """Who is asking.

    Attributes
    ----------
    role : {"curator", "analyst", "monitor"}
        What the caller may do.
    name : str
        The name that the curator gave; one name may stand in several roles.
    """

    role: Role
    name: str


class Keys:
    """The secrets of one workspace, in a file that only its owner can read.

    Parameters
    ----------
    path : Path
        The file of hashes; it is read now if it exists, and made with the first
        secret.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._hashes: dict[str, dict[str, str]] = {role: {} for role in ROLES}
        self._seen: dict[str, Caller] = {}
        """By digests of secrets that were right since somebody's was last changed."""
        if path.exists():
            self._hashes |= json.loads(path.read_text())

    def make(self, role: Role, name: str) -> str:
        """Make a new secret for someone; an older one stops working.

        Parameters
        ----------
        role : {"curator", "analyst", "monitor"}
            What she may do.
        name : str
            Who she is; nobody may have the same name in another role.

        Returns
        -------
        str
            The secret. Only its hash is stored, so it cannot be shown again.

        Raises
        ------
        InputError
            If the name is not plain, or taken in another role.
        """
        plain = name.isprintable() and name == name.strip()
        if not 0 < len(name) <= LONGEST_NAME or not plain:
            raise InputError(
                f"a name has 1 to {LONGEST_NAME} printable characters and no blank "
                "before or after them"
            )
        if any(name in self._hashes[other] for other in ROLES if other != role) or (
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
        """Forget a secret; the last curator keeps hers.

        Parameters
        ----------
        role : {"curator", "analyst", "monitor"}
            Her role.
        name : str
            Her name; one that is not there changes nothing.

        Raises
        ------
        InputError
            If she is the only curator.
        """
        with self._lock:
            hashes = self._hashes[role]
            if role == "curator" and name in hashes and len(hashes) == 1:
                raise InputError("this is the only curator; add another one first")
            hashes.pop(name, None)
            self._write()

    def _write(self) -> None:
        # A new place for what was seen: whoever compares meanwhile fills the old one.
        self._seen = {}
        write_privately(self.path, self._hashes)

    def names(self, role: Role) -> list[str]:
        """Return the names of all in a role."""
        return sorted(self._hashes[role])

    def identify(self, secret: str) -> Caller | None:
        """Return whose secret it is; None if nobody's.

        secret that was right before is found by its digest. Any other is compared with
        every hash, so the time does not tell which came close.

        Parameters
        ----------
        secret : str
            What somebody sent.

        Returns
        -------
        Caller or None
            Role and name.
        """
        seen, digest = self._seen, _digest(secret)
        caller = seen.get(digest)
        for role in ROLES if caller is None else ():
            for name, stored_hash in list(self._hashes[role].items()):
                salt, expected = stored_hash.split("$", 1)
                if hmac.compare_digest(_hash(salt, secret), expected):
                    caller = seen[digest] = Caller(role, name)
        return caller


def write_privately(path: Path, plain: Any) -> None:
    """Replace a file of JSON in one step; only its owner reads it.

    Parameters
    ----------
    path : Path
        The file; beside it the draft stands for a moment, with the suffix ``.new``.
    plain : object
        What the JSON says.
    """
    draft = path.with_suffix(".new")
    with open(draft, "w", opener=partial(os.open, mode=0o600)) as file:
        json.dump(plain, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
    if os.name == "posix":
        # The name, too: a secret that was revoked is not back after a loss of power.
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@dataclass(frozen=True)
class Login:
    """A logged-in browser.

    Attributes
    ----------
    identity : Caller
        Who has logged in.
    csrf : str
        A second secret, drawn when the session begins. Requests that change something
        must bring it in a header, which pages of other sites cannot do.
    ends : float
        When the session ends, on the clock of ``time.monotonic``, in seconds.
    """

    identity: Caller
    csrf: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    ends: float = field(default_factory=lambda: time.monotonic() + LASTS)

    def allows(self, token: str | None) -> bool:
        """Return whether a request carries this session's second token."""
        return token is not None and hmac.compare_digest(
            token.encode(), self.csrf.encode()
        )


class Logins:
    """All sessions of one server, in memory: a restart ends them."""

    def __init__(self) -> None:
        self._sessions: dict[str, Login] = {}
        self._lock = threading.Lock()

    def open(self, identity: Caller) -> tuple[str, Login]:
        """Start a session; return the value of its cookie.

        Parameters
        ----------
        identity : Caller
            Who has logged in.

        Returns
        -------
        tuple of str and Login
            The value of the cookie, of which only a digest is stored, and the
            session.
        """
        cookie = secrets.token_urlsafe(32)
        session = Login(identity)
        with self._lock:
            self._forget(lambda login: login.ends < time.monotonic())
            if len(self._sessions) >= MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[_digest(cookie)] = session
        return cookie, session

    def find(self, cookie: str | None) -> Login | None:
        """Return the session of a cookie, unless it has ended.

        Parameters
        ----------
        cookie : str or None
            What the browser sent.

        Returns
        -------
        Login or None
            The session, if it has not ended.
        """
        if cookie is None:
            return None
        session = self._sessions.get(_digest(cookie))
        if session is None or session.ends < time.monotonic():
            return None
        return session

    def close(self, cookie: str | None) -> None:
        """End a session."""
        if cookie is not None:
            with self._lock:
                self._sessions.pop(_digest(cookie), None)

    def close_all_of(self, name: str) -> None:
        """End every session of someone whose secret was revoked."""
        with self._lock:
            self._forget(lambda login: login.identity.name == name)

    def _forget(self, ended: Callable[[Login], bool]) -> None:
        left = {key: login for key, login in self._sessions.items() if not ended(login)}
        self._sessions = left


class RateLimit:
    """A bucket of tokens for each of many callers, which refills at a steady rate.

    Parameters
    ----------
    capacity : float
        How many tokens a bucket holds: requests that may come at once.
    per_second : float
        How many tokens flow in each second.
    """

    def __init__(self, capacity: float, per_second: float) -> None:
        self.capacity, self.per_second = capacity, per_second
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def wait(self, caller: str) -> float:
        """Take a token; return 0, or the seconds until there is one.

        Parameters
        ----------
        caller : str
            Whose bucket it is; a new caller has a full one.

        Returns
        -------
        float
            0 if a token was taken, otherwise the seconds until there is one.
        """
        now = time.monotonic()
        with self._lock:
            tokens, seen = self._buckets.pop(caller, (self.capacity, now))
            tokens = min(self.capacity, tokens + (now - seen) * self.per_second)
            waits = 0.0 if tokens >= 1.0 else (1.0 - tokens) / self.per_second
            self._buckets[caller] = (tokens - 1.0 if waits == 0.0 else tokens, now)
            while len(self._buckets) > MOST_BUCKETS:
                self._buckets.popitem(last=False)
        return waits


def _hash(salt: str, secret: str) -> str:
    return hashlib.sha256(f"{salt}:{secret}".encode()).hexdigest()


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
