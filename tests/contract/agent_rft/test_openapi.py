"""
The description keeps its word: whatever it allows is answered as it says, and nothing breaks the gateway.

Requests are made up by schemathesis, in process, over scripted use cases; the
same ones every time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from rollcage.gateway.app import gateway
from support.environments import environment
from support.gateways import BEARER, all_is_well, parts

if TYPE_CHECKING:
    from schemathesis import Case

    from rollcage.core.environment import Environment

# A 503 is a typed refusal here, so it is looked for by status and not by its hundred.
CHECKS = [status_code_conformance, content_type_conformance, response_schema_conformance]

# Bytes like any others, to whoever makes them up.
schemathesis.serializer.alias("application/x-tar", "application/octet-stream")


class Everything(dict[str, "Environment"]):
    """Knows an environment of any name, so that requests that are made up get further than the first look."""

    def get(self, _name: str, _default: Any = None) -> Any:
        return self["small"]


app = gateway(parts(environments=Everything(small=environment())), checks=all_is_well)
schema = schemathesis.openapi.from_asgi("/openapi.json", app)


@schema.parametrize()
@settings(
    max_examples=6,
    derandomize=True,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_as_described(case: Case[Any]) -> None:
    response = case.call(headers=BEARER)
    assert response.status_code != 500
    case.validate_response(response, checks=CHECKS)
