"""Who may call what: a cookie with its second token, or a bearer secret.

    page      cookie + X-CSRF-Token on everything that changes something
    client    Authorization: Bearer <secret>

Each route asks for a role; failures are the same whether a secret was forged, revoked
or never made.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from .keys import Caller
from .monitoring import EventLog, Metrics
from .rate_limits import RateLimit
from .sessions import Logins
from .workspace import Workspace

COOKIE = "blowfish_session"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")


class Gate:
    """The locks of one server.

    Parameters
    ----------
    workspace : Workspace
        Whose keys open it.
    requests, logins : RateLimit, optional
        How often each person may ask, and each address may try wrong secrets. A right
        one always opens: nobody is locked out by others behind the same address.
    trusted_proxies : sequence of str
        Addresses or networks of proxies, whose X-Forwarded-For is believed; nobody
        else's is.
    """

    def __init__(
        self,
        workspace: Workspace,
        requests: RateLimit | None = None,
        logins: RateLimit | None = None,
        trusted_proxies: Sequence[str] = (),
    ) -> None:
        self.workspace = workspace
        self.sessions = Logins()
        self.metrics = Metrics()
        self.access = EventLog(workspace.folder / "logs" / "access.log")
        self.audit = EventLog(workspace.folder / "logs" / "audit.log")
        self.requests = requests or RateLimit(capacity=120, per_second=40)
        self.logins = logins or RateLimit(capacity=10, per_second=0.5)
        self._proxies = [ip_network(one, strict=False) for one in trusted_proxies]

    def address(self, request: Request) -> str:
        """Return where a request comes from.

        Seen from here, the nearest address that is no trusted proxy: what stands
        before it in the header was written by whoever sent the request.
        """
        nearest = request.client.host if request.client else "unknown"
        stated = request.headers.get("x-forwarded-for", "").split(",")
        for one in reversed([each.strip() for each in stated if each.strip()]):
            if not self._is_proxy(nearest):
                break
            nearest = one
        return nearest

    def _is_proxy(self, address: str) -> bool:
        try:
            found = ip_address(address)
        except ValueError:
            return False
        return any(found in network for network in self._proxies)

    def known(self, secret: str, request: Request) -> Caller | None:
        """Return whose secret it is; wrong ones are counted, and slowed down."""
        found = self.workspace.keys.identify(secret)
        self.metrics.add(
            "blowfish_logins_total", outcome="wrong" if found is None else "right"
        )
        if found is None:
            self.audit.write(what="wrong secret", origin=self.address(request))
            self.limit(self.logins, self.address(request))
        return found

    def identify(self, request: Request) -> Caller:
        """Return who is asking, or refuse."""
        identity = self._bearer(request) or self._cookie(request)
        if identity is None:
            raise HTTPException(401, "log in first, or send a valid bearer secret")
        request.state.who = identity.name
        self.limit(self.requests, f"{identity.role} {identity.name}")
        return identity

    def is_curator(self, request: Request) -> bool:
        """Return whether a request comes with the curator's secret or session."""
        secret = _bearer_secret(request)
        if secret is not None:
            known = self.workspace.keys.identify(secret)
        else:
            session = self.sessions.find(request.cookies.get(COOKIE))
            known = None if session is None else session.identity
        return known is not None and known.role == "curator"

    def limit(self, limit: RateLimit, caller: str) -> None:
        """Refuse a caller who asks too often."""
        waits = limit.wait(caller)
        if waits > 0.0:
            raise HTTPException(
                429,
                "too many requests; wait a moment",
                headers={"Retry-After": str(max(1, round(waits)))},
            )

    def _bearer(self, request: Request) -> Caller | None:
        secret = _bearer_secret(request)
        if secret is None:
            return None
        return self.known(secret, request)

    def _cookie(self, request: Request) -> Caller | None:
        session = self.sessions.find(request.cookies.get(COOKIE))
        if session is None:
            return None
        changes = request.method not in SAFE_METHODS
        if changes and not session.allows(request.headers.get("x-csrf-token")):
            raise HTTPException(403, "the request lacks the token of this page; reload")
        return session.identity


def _bearer_secret(request: Request) -> str | None:
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret if kind.lower() == "bearer" else None


def gate_of(request: Request) -> Gate:
    """Return the server's gate."""
    found: Gate = request.app.state.gate
    return found


# Awaited where they are asked for: one that is not would be sent to a thread and back.
async def gate(request: Request) -> Gate:
    """Return the server's gate to a route."""
    return gate_of(request)


async def anyone(request: Request) -> Caller:
    """Require somebody who is known."""
    return gate_of(request).identify(request)


async def person(who: Annotated[Caller, Depends(anyone)]) -> Caller:
    """Require an analyst or a curator."""
    if who.role == "monitor":
        raise HTTPException(403, "this is for people; a monitor reads /metrics")
    return who


async def curator(who: Annotated[Caller, Depends(anyone)]) -> Caller:
    """Require a curator."""
    if who.role != "curator":
        raise HTTPException(403, "this is for the curator alone")
    return who


async def the_workspace(request: Request) -> Workspace:
    """Return the server's workspace."""
    return gate_of(request).workspace


Anyone = Annotated[Caller, Depends(anyone)]
Person = Annotated[Caller, Depends(person)]
Curator = Annotated[Caller, Depends(curator)]
Work = Annotated[Workspace, Depends(the_workspace)]
TheGate = Annotated[Gate, Depends(gate)]
