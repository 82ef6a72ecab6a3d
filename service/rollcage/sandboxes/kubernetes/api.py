"""
Talk to the API server: JSON in, JSON out, every failure one of our errors.

The official client's asyncio side brings credentials, TLS and connections;
its generated models are left aside, because turning a thousand pods into
objects and back costs seconds and hides fields that are newer than the client.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import aiohttp
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from rollcage.sandboxes.kubernetes.refusals import refusal
from rollcage.sandboxes.source import SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    Json = dict[str, Any]

# A loaded API server answers late, and a late answer is better than asking twice.
_ANSWER: Final = aiohttp.ClientTimeout(total=60, sock_connect=10)
# Bookmarks come about once a minute: longer silence is a connection that nobody holds any more.
_SILENCE: Final = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=150)
_BROKEN: Final = (aiohttp.ClientError, TimeoutError, OSError, ValueError)


class Api:
    """Requests to one API server."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Json:
        """Make a request and return its answer; raise what ``refusals`` makes of a failure."""
        try:
            response = await self._send(
                method, path, query=query, body=body, content_type=content_type, patience=_ANSWER
            )
            text = await response.read()
        except _BROKEN as error:
            raise SourceUnavailable(f"{method} {path}: {_said(error)}") from error
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise refusal(response.status, response.headers, text)
        try:
            answer: Json = json.loads(text)
        except ValueError as error:
            raise SourceUnavailable(f"{method} {path}: the answer is not JSON") from error
        return answer

    @asynccontextmanager
    async def stream(self, path: str, *, query: Mapping[str, str]) -> AsyncIterator[AsyncIterator[Json]]:
        """Open a watch and lend its events; it ends when the server ends it."""
        try:
            response = await self._send("GET", path, query=query, patience=_SILENCE)
        except _BROKEN as error:
            raise SourceUnavailable(f"watch {path}: {_said(error)}") from error
        try:
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise refusal(response.status, response.headers, await response.read())
            yield _lines(path, response.content)
        finally:
            # Neither released nor closed politely: what is left of a watch never ends, and a TLS farewell
            # waits for the other side, possibly longer than our own loop lives.
            connection = response.connection
            if connection is not None and connection.transport is not None:
                connection.transport.abort()
            response.close()

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        patience: aiohttp.ClientTimeout,
        body: Any = None,
        content_type: str = "application/json",
    ) -> aiohttp.ClientResponse:
        method, url, headers, body, _ = await self._client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params={"Accept": "application/json", "Content-Type": content_type},
            body=body,
            auth_settings=["BearerToken"],
        )
        answer = await self._client.rest_client.request(
            method, url, headers=headers, body=body, _request_timeout=patience
        )
        response: aiohttp.ClientResponse = answer.response
        return response


async def _lines(path: str, content: aiohttp.StreamReader) -> AsyncIterator[Json]:
    try:
        async for line in content:
            yield json.loads(line)
    except _BROKEN as error:
        raise SourceUnavailable(f"watch {path}: {_said(error)}") from error


def _said(error: Exception) -> str:
    return f"{type(error).__name__} {error}".strip()


@asynccontextmanager
async def connected(kubeconfig: Path | None = None) -> AsyncIterator[Api]:
    """Lend the API of the cluster that a kubeconfig names, or of the one that this process runs in."""
    configuration = Configuration()
    if kubeconfig is None:
        config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    else:
        await config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=str(kubeconfig), client_configuration=configuration, persist_config=False
        )
    # Retrying belongs to those who know whether a request may be repeated.
    configuration.retries = None
    async with ApiClient(configuration) as client:
        client.user_agent = "rollcage"
        yield Api(client)
