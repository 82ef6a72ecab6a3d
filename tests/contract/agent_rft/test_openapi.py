"""
The description keeps its word: whatever it allows is answered as it says, and nothing breaks the gateway.

Requests are made up by schemathesis, in process, over scripted use cases; the
same ones every time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from rollcage.gateway.app import gateway
from support.environments import environment
from support.gateways import BEARER, all_is_well, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from schemathesis import Case
    from schemathesis.schemas import APIOperation

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


def operations() -> Iterator[APIOperation[Any, Any, Any, Any]]:
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        yield found.ok()


OPERATIONS = {operation.label: operation for operation in operations()}


# Not parametrized by schemathesis: it gives all of them one name, and several processes then run only one.
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_is_as_described(operation: str) -> None:
    @settings(max_examples=6, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=OPERATIONS[operation].as_strategy())
    def check(case: Case[Any]) -> None:
        response = case.call(headers=BEARER)
        assert response.status_code != 500
        case.validate_response(response, checks=CHECKS)

    check()
