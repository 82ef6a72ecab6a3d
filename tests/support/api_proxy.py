"""
A window before the real API server: counts what is written, and can hold back what is watched.

Everything is passed on to the cluster and back as it is; a watch that is held
back gets its events later, in their order, as from a server that lags.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import tempfile
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import aiohttp
import yaml
from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PASSED_ON = {"accept", "content-type", "user-agent"}


class ApiProxy:
    """Stands before one API server."""

    def __init__(self, server: str, session: aiohttp.ClientSession, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        """How to come through here."""
        self.writes: Counter[str] = Counter()
        """How often each kind of object was written, as in ``POST pods``."""
        self._server = server
        self._session = session
        self._flowing = asyncio.Event()
        self._flowing.set()

    def hold_back(self) -> None:
        """Let watches see nothing more."""
        self._flowing.clear()

    def let_go(self) -> None:
        """Let watches see what they missed, and what comes."""
        self._flowing.set()

    async def pass_on(self, request: web.Request) -> web.StreamResponse:
        """Answer a request as the server behind does, unless whoever asked has gone."""
        try:
            return await self._pass_on(request)
        except ConnectionResetError:
            return web.Response()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        if request.method != "GET":
            self.writes[f"{request.method} {_kind(request.path)}"] += 1
        headers = {name: value for name, value in request.headers.items() if name.lower() in _PASSED_ON}
        async with self._session.request(
            request.method, self._server + request.path_qs, headers=headers, data=await request.read()
        ) as answer:
            response = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
            await response.prepare(request)
            watch = request.query.get("watch") == "true"
            async for chunk in answer.content.iter_any():
                if watch:
                    await self._flowing.wait()
                await response.write(chunk)
            return response


def _kind(path: str) -> str:
    """Return the plural of what a path is about, with the subresource if there is one."""
    parts = path.strip("/").split("/")
    after = parts[parts.index("namespaces") + 2 :] if "namespaces" in parts else parts[-1:]
    return "/".join([after[0], *after[2:]])


@asynccontextmanager
async def api_proxy(kubeconfig: Path) -> AsyncIterator[ApiProxy]:
    """Open a window before the API server of a kubeconfig."""
    config = yaml.safe_load(await asyncio.to_thread(kubeconfig.read_text))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for file, data in (
            ("ca", cluster["certificate-authority-data"]),
            ("certificate", user["client-certificate-data"]),
            ("key", user["client-key-data"]),
        ):
            (directory / file).write_bytes(base64.b64decode(data))
        trust = ssl.create_default_context(cafile=directory / "ca")
        trust.load_cert_chain(directory / "certificate", directory / "key")
        timeout = aiohttp.ClientTimeout(total=None)
        connector = aiohttp.TCPConnector(ssl=trust, limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            proxy = ApiProxy(cluster["server"], session, directory / "kubeconfig")
            app = web.Application(client_max_size=1 << 26)
            app.router.add_route("*", "/{path:.*}", proxy.pass_on)
            # What is left of a watch never ends.
            runner = web.AppRunner(app, shutdown_timeout=0.5)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            (host, port) = runner.addresses[0]
            proxy.kubeconfig.write_text(_kubeconfig(f"http://{host}:{port}"))
            try:
                yield proxy
            finally:
                proxy.let_go()
                await runner.cleanup()


def _kubeconfig(server: str) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "proxy",
            "clusters": [{"name": "proxy", "cluster": {"server": server}}],
            "users": [{"name": "proxy", "user": {}}],
            "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}}],
        }
    )
