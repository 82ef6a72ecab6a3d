"""
How the pools stand.

They belong to no tenant: figures of all of them together, and never a name.
"""

import asyncio

from fastapi import APIRouter

from rollcage.core.environment import Environment
from rollcage.gateway.dialects.native.access import GivenParts, GivenTenant
from rollcage.gateway.dialects.native.shapes import PoolList, PoolShape
from rollcage.store.pools import Counts, Level

router = APIRouter(prefix="/pools", tags=["environments"])


@router.get("", summary="How full the pools are")
async def listed(parts: GivenParts, _tenant: GivenTenant) -> PoolList:
    """Return the pools of all environments, by name."""
    environments = [parts.environments[name] for name in sorted(parts.environments)]
    # Asked for in the same moment, so they go to the store in one piece.
    levels, counts = await asyncio.gather(
        parts.pools.levels(), asyncio.gather(*(parts.pools.counts(one.name) for one in environments))
    )
    told = levels or {}
    return PoolList(
        controller_heard=levels is not None,
        pools=tuple(_shape(one, found, told.get(one.name)) for one, found in zip(environments, counts, strict=True)),
    )


def _shape(environment: Environment, counts: Counts, level: Level | None) -> PoolShape:
    return PoolShape(
        environment=environment.name,
        wanted=level.wanted if level else environment.spec.pool.warm,
        starting=level.starting if level else None,
        most=environment.spec.pool.max_pods,
        ready=counts.ready,
        set_aside=counts.set_aside,
        claimed=counts.claimed,
        waiting=counts.waiting,
        reserved=counts.reserved,
        spent=counts.spent,
    )
