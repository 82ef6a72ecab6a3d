"""
Serve the console's files, and forbid the page whatever it does not need.

All that the page shows was written by models that are being trained, so the
browser is told to run nothing but these files and to speak to nobody but this
gateway. Without a token the page shows nothing; the files themselves are public.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Final

from rollcage.gateway.exchange import App, Receive, Scope, Send, header

CONSOLE_PATH: Final = "/console"

_INDEX: Final = "index.html"
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

# No inline script or style, no other host, no frame around it, and no text that becomes HTML (trusted types).
_ALLOWED: Final = (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
_HEADERS: Final = {
    "content-security-policy": "; ".join(_ALLOWED),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # Asked for again each time, and answered with "not modified": a new release shows at once.
    "cache-control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    type: str
    tag: str


def console() -> App:
    """Return the application that serves the console."""
    known = _read()

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        del receive  # whatever a body says, it changes nothing
        if scope["method"] not in {"GET", "HEAD"}:
            await _answer(send, 405, b"", {"allow": "GET, HEAD"})
            return
        name = scope["path"].removeprefix(scope.get("root_path", "")).removeprefix("/") or _INDEX
        found = known.get(name)
        if found is None:
            await _answer(send, 404, b"There is no such page.\n", {"content-type": "text/plain; charset=utf-8"})
        elif header(scope, b"if-none-match") == found.tag:
            await _answer(send, 304, b"", {"etag": found.tag})
        else:
            body = found.body if scope["method"] == "GET" else b""
            told = {"content-type": found.type, "etag": found.tag, "content-length": str(len(found.body))}
            await _answer(send, 200, body, told)

    return serve


def _read() -> Mapping[str, _File]:
    """Read all files, by name; what is not among them cannot be asked for."""
    there = files(__package__).joinpath("static").iterdir()
    return {file.name: _file(file.read_bytes(), _TYPES[file.name.rpartition(".")[2]]) for file in there}


def _file(body: bytes, kind: str) -> _File:
    return _File(body, kind, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


async def _answer(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": list(_encoded({**_HEADERS, **headers}))})
    await send({"type": "http.response.body", "body": body})


def _encoded(headers: Mapping[str, str]) -> Iterable[tuple[bytes, bytes]]:
    return ((name.encode(), value.encode()) for name, value in headers.items())
