"""Who may use the studio: this machine, this page, with the token that the command printed.

The token comes once in the address and is kept in a cookie that no script reads and no other site
sends. Names other than the local ones are refused, so no foreign name that resolves to this machine
gets in, and nothing is changed unless the request comes from the studio's own pages.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

from castalia.utils.local_host import host_is_local

__all__ = ["AccessGuard"]

COOKIE = "castalia-studio"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": _POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}

Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class AccessGuard:
    """An ASGI application around another one that lets only the owner in.

    Parameters
    ----------
    app
        The application.
    token
        What opens it.
    """

    def __init__(self, app: Any, token: str) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        """Answer a request, or refuse it; every answer carries the headers of a strict page."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {
            name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]
        }
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _short_answer(send, *refusal)
        elif self._sent(scope) is not None:
            await _short_answer(send, 303, "", self._kept(scope, headers))
        else:
            await self.app(scope, receive, _strict(send))

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str] | None:
        """Return why a request is refused, or None."""
        host = headers.get("host", "")
        if not host_is_local(host):
            return 421, "studio: open it as 127.0.0.1 or localhost."
        own = {f"http://{host}", f"https://{host}"}
        changes = scope["method"] not in ("GET", "HEAD")
        if headers.get("origin") not in own | (set() if changes else {None}):
            return 403, "studio: other pages may not ask."
        if (
            headers.get("sec-fetch-site") in ("cross-site", "same-site")
            and self._sent(scope) is None
        ):
            return 403, "studio: other sites may not ask."
        if not self._knows(self._sent(scope) or _cookie(headers)):
            return 401, "studio: open the address with the token that `castalia studio` printed."
        return None

    def _knows(self, sent: str) -> bool:
        return hmac.compare_digest(sent.encode(), self.token.encode())

    @staticmethod
    def _sent(scope: Scope) -> str | None:
        """Return the token in the address, of a page that is opened."""
        pairs = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        return pairs.get("token") if scope["method"] == "GET" else None

    def _kept(self, scope: Scope, headers: dict[str, str]) -> dict[str, str]:
        """Return headers that keep the token in a cookie and take it out of the address."""
        pairs = parse_qsl(scope["query_string"].decode("latin-1"))
        rest = urlencode([pair for pair in pairs if pair[0] != "token"])
        path = "/" + scope["raw_path"].decode("latin-1").partition("?")[0].lstrip("/\\")
        cookie = f"{_cookie_name(headers)}={self.token}; Path=/; HttpOnly; SameSite=Strict"
        return {"location": path + (f"?{rest}" if rest else ""), "set-cookie": cookie}


def _cookie_name(headers: dict[str, str]) -> str:
    """Return a name for each port: browsers give the cookies of all ports to each."""
    port = headers["host"].rpartition(":")[2]
    return f"{COOKIE}-{port}" if port.isdigit() else COOKIE


def _cookie(headers: dict[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(_cookie_name(headers))
    except CookieError:
        return ""
    return "" if found is None else found.value


def _strict(send: Send) -> Send:
    """Add the headers to an answer, unless it brings stricter ones."""

    async def sending(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = {name for name, _ in message["headers"]}
            more = [(k.encode(), v.encode()) for k, v in HEADERS.items() if k.encode() not in own]
            message = message | {"headers": [*message["headers"], *more]}
        await send(message)

    return sending


async def _short_answer(
    send: Send, status: int, words: str, more: dict[str, str] | None = None
) -> None:
    headers = HEADERS | {"content-type": "text/plain; charset=utf-8"} | (more or {})
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": words.encode()})
