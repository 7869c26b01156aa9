"""Who is logged in: cookies for pages, each with a token against forged requests.

A cookie names a session by 256 random bits; the server keeps only their hash. Requests
that change something must repeat the session's second token in a header, which another
site can neither read nor send.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from dataclasses import dataclass, field

from .keys import Caller

LASTS = 8 * 3600.0
"""Seconds until a session ends."""

MOST_SESSIONS = 10_000


@dataclass(frozen=True)
class Login:
    """A logged-in browser."""

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
        """Start a session; return the value of its cookie."""
        cookie = secrets.token_urlsafe(32)
        session = Login(identity)
        with self._lock:
            self._forget_ended()
            if len(self._sessions) >= MOST_SESSIONS:
                oldest = min(self._sessions, key=lambda one: self._sessions[one].ends)
                del self._sessions[oldest]
            self._sessions[_digest(cookie)] = session
        return cookie, session

    def find(self, cookie: str | None) -> Login | None:
        """Return the session of a cookie, unless it has ended."""
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
            for key, one in list(self._sessions.items()):
                if one.identity.name == name:
                    del self._sessions[key]

    def _forget_ended(self) -> None:
        now = time.monotonic()
        for key, one in list(self._sessions.items()):
            if one.ends < now:
                del self._sessions[key]


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
