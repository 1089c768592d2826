"""Who may ask what: tokens, the names that the service answers to, origins, and the size of bodies.

A web page that somebody visits can send requests to a loopback port, and with a name that points there even
read the answers. So a ``Host`` is a number, ``localhost`` or a name that was allowed, an ``Origin`` is the
service's own, and bodies say that they are JSON, which no form can.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Iterable
from typing import Any

import msgspec
from starlette.responses import Response

from kons.serve.problems import Problem

__all__ = ["Guard", "body_of", "is_loopback", "refusal"]

#: Seconds in which a body has to come, and in which somebody has to take what is sent.
PATIENCE = 30.0

#: Without a token: what holds no data.
OPEN = ("/", "/healthz", "/readyz")
#: With POST, and nothing is changed all the same.
READING = ("/v1/explain",)
JSON, LINES = "application/json", "application/x-ndjson"


class Guard:
    """Lets requests through, as an ASGI middleware; others are answered with a problem."""

    def __init__(
        self, app: Any, *, token: str | None, read_token: str | None = None, names: Iterable[str] = ()
    ) -> None:
        self.app = app
        self._token, self._read_token = token, read_token
        self._names = {"localhost", *(name.lower() for name in names)}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        try:
            self._check(scope)
        except Problem as problem:
            await refusal(problem)(scope, receive, send)
            return
        await self.app(scope, receive, lambda message: in_time(send(message)))

    def _check(self, scope: Any) -> None:
        heads: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            heads.setdefault(name.lower(), []).append(value)
        hosts, origins = heads.get(b"host", []), heads.get(b"origin", [])
        host = hosts[0].decode("latin-1").lower() if len(hosts) == 1 else ""
        if not self._answers_to(_without_port(host)):
            raise Problem(403, "the Host is not one of this service: use its address, or --allow-host.")
        for origin in origins:
            if origin.decode("latin-1").lower() not in (f"http://{host}", f"https://{host}"):
                raise Problem(403, "the Origin is another site's.")
        if scope["method"] == "POST":
            kinds = heads.get(b"content-type", [b""])
            kind = kinds[0].decode("latin-1").partition(";")[0].strip().lower()
            if len(kinds) != 1 or kind not in (JSON, LINES):
                raise Problem(415, f"the content type is to be {JSON}, or {LINES}.")
            if heads.get(b"content-encoding", [b"identity"]) != [b"identity"]:
                raise Problem(415, "the body is compressed: send it as it is, without Content-Encoding.")
        self._check_token(scope, heads.get(b"authorization", []))

    def _check_token(self, scope: Any, given: list[bytes]) -> None:
        if self._token is None or scope["path"] in OPEN:
            return
        reads = scope["method"] in ("GET", "HEAD") or scope["path"] in READING
        scheme, _, token = (given[0] if len(given) == 1 else b"").partition(b" ")
        whole = hmac.compare_digest(token.strip(), self._token.encode())
        part = self._read_token is not None and hmac.compare_digest(token.strip(), self._read_token.encode())
        if scheme.lower() != b"bearer" or not (whole or part):
            raise Problem(401, "expected the header Authorization: Bearer TOKEN.")
        if not whole and not reads:
            raise Problem(403, "this token is for reading only.")

    def _answers_to(self, name: str) -> bool:
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def is_loopback(host: str) -> bool:
    """Whether nobody else can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


async def in_time(awaited: Any) -> Any:
    """Whoever sends, or takes what is sent, too slowly is dropped."""
    try:
        async with asyncio.timeout(PATIENCE):  # no task of its own, as wait_for makes
            return await awaited
    except TimeoutError:
        raise Problem(408, f"nothing came, or was taken, for {PATIENCE:.0f} seconds.") from None


async def body_of(receive: Any, most: int) -> bytes:
    """The body of a request, if it is not too large, and comes in time."""
    body: bytes = await in_time(_body_of(receive, most))
    return body


async def _body_of(receive: Any, most: int) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Problem(400, "the body ended early.")
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise Problem(413, f"the body has more than {most:,} bytes (--max-body).")
        parts.append(part)
        more = message.get("more_body", False)
    return b"".join(parts)


def refusal(problem: Problem) -> Response:
    """A problem as the answer."""
    more = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}, 503: {"Retry-After": "2"}}
    closing = {"Connection": "close"} if problem.status in (413, 408) else {}
    return Response(
        msgspec.json.encode(problem.document()),
        problem.status,
        {"Cache-Control": "no-store", **more.get(problem.status, closing)},
        "application/problem+json",
    )
