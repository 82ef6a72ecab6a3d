"""The whole way of a call, over a real Redis and real sandboxes."""

from __future__ import annotations

from integration.gateway.conftest import ask, binary, redis, server, stage

__all__ = ["ask", "binary", "redis", "server", "stage"]
