"""The whole way of a call, over a real Redis and real sandboxes."""

from __future__ import annotations

from integration.conftest import redis, server
from integration.gateway.conftest import ask, binary, stage

__all__ = ["ask", "binary", "redis", "server", "stage"]
