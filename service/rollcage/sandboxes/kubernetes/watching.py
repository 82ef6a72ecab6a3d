"""
Follow all objects of one kind: list them, watch them, and start over when the watch has lost its place.

It never ends by itself. What was lost between two lists is not told one by
one; each new list says what there is now, and whoever keeps count compares.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rollcage.core.errors import RollcageError
from rollcage.sandboxes.kubernetes.refusals import Expired, refusal
from rollcage.sandboxes.source import SourceThrottled, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from rollcage.sandboxes.kubernetes.api import Api

    Json = dict[str, Any]

log = logging.getLogger(__name__)

_PAGE: Final = 500
# Server and client agree on an end well before anything in between gets tired of an old connection;
# spread out, so that many watches do not come back at once.
_SHORTEST_WATCH: Final = 240
_LONGEST_WATCH: Final = 480


@dataclass(frozen=True, slots=True)
class Listed:
    """Everything that there is now."""

    objects: tuple[Json, ...]


@dataclass(frozen=True, slots=True)
class Present:
    """An object is there, new or changed."""

    object: Json


@dataclass(frozen=True, slots=True)
class Removed:
    """An object is gone; this is the last state that it had."""

    object: Json


Update = Listed | Present | Removed


class Backoff:
    """Pauses that grow from failure to failure, each of a random length."""

    def __init__(
        self,
        *,
        first: float = 0.2,
        longest: float = 30.0,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        share: Callable[[], float] = random.random,
    ) -> None:
        self._first = first
        self._longest = longest
        self._sleep = sleep
        self._share = share
        self._next = first

    async def pause(self, *, at_least: float = 0.0) -> None:
        """Wait, and longer the next time."""
        bound = self._next
        self._next = min(self._longest, self._next * 2)
        await self._sleep(max(at_least, bound * self._share()))

    def reset(self) -> None:
        """Forget the failures: something worked."""
        self._next = self._first


async def follow(api: Api, path: str, *, selector: str = "", backoff: Backoff | None = None) -> AsyncGenerator[Update]:
    """Tell what there is under a path of the API, and go on telling what becomes of it."""
    backoff = backoff or Backoff()
    while True:
        try:
            objects, version = await _list(api, path, selector)
        except RollcageError as error:
            log.warning("list_failed", extra={"path": path, "error": str(error)})
            await _recover(backoff, error)
            continue
        yield Listed(objects)
        async with aclosing(_watch(api, path, selector, version, backoff)) as updates:
            async for update in updates:
                yield update


async def _list(api: Api, path: str, selector: str) -> tuple[tuple[Json, ...], str]:
    objects: list[Json] = []
    query = {"limit": str(_PAGE), "labelSelector": selector}
    while True:
        page = await api.request("GET", path, query=query)
        objects += page["items"]
        rest = page["metadata"].get("continue")
        if not rest:
            return tuple(objects), page["metadata"]["resourceVersion"]
        query["continue"] = rest


async def _watch(api: Api, path: str, selector: str, version: str, backoff: Backoff) -> AsyncGenerator[Update]:
    """Watch from a version on, across reconnections; end when only a new list helps."""
    while True:
        told_something = False
        seconds = random.randint(_SHORTEST_WATCH, _LONGEST_WATCH)  # noqa: S311 - a spread, not a secret
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            "timeoutSeconds": str(seconds),
            "labelSelector": selector,
        }
        try:
            async with api.stream(path, query=query) as events:
                async for event in events:
                    update, version = _understood(event)
                    told_something = True
                    backoff.reset()
                    if update is not None:
                        yield update
        except (SourceUnavailable, SourceThrottled) as error:
            log.warning("watch_broken", extra={"path": path, "error": str(error)})
            await _recover(backoff, error)
        except RollcageError as error:
            log.warning("watch_lost", extra={"path": path, "error": str(error)})
            if not isinstance(error, Expired):
                await _recover(backoff, error)
            return
        else:
            if not told_something:
                await backoff.pause()


def _understood(event: Json) -> tuple[Update | None, str]:
    try:
        kind, object_ = event["type"], event["object"]
        if kind == "ERROR":
            raise refusal(object_.get("code", 500), {}, json.dumps(object_))
        version: str = object_["metadata"]["resourceVersion"]
    except (KeyError, TypeError) as error:
        raise SourceUnavailable("the watch told something that is no event") from error
    if kind == "BOOKMARK":
        return None, version
    return (Removed(object_) if kind == "DELETED" else Present(object_)), version


async def _recover(backoff: Backoff, error: RollcageError) -> None:
    await backoff.pause(at_least=error.retry_after if isinstance(error, SourceThrottled) else 0.0)
