"""
Runs: their figures, their health, their reservations.
"""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Path, Query

from rollcage.core.ids import tenant_key
from rollcage.gateway.dialects.native.access import (
    Cursor,
    GivenParts,
    GivenRun,
    GivenTenant,
    Limit,
    known_environment,
)
from rollcage.gateway.dialects.native.listing import shape_of_record
from rollcage.gateway.dialects.native.shapes import (
    HealthShape,
    ReservationRequest,
    ReservationShape,
    RunList,
    RunShape,
    TalliedPage,
    TalliedRollout,
    TallyShape,
)

router = APIRouter(prefix="/runs", tags=["runs"])


@router.get("", summary="The latest runs")
async def listed(parts: GivenParts, tenant: GivenTenant, limit: Limit = 100) -> RunList:
    """Return the tenant's latest runs with their figures."""
    found = await parts.records.runs(tenant_key(tenant.name), limit=limit)
    return RunList(
        runs=tuple(
            RunShape(
                run=run.id.name,
                rollouts=run.rollouts,
                active=run.active,
                ended=run.ended,
                calls=run.calls,
                verdicts=dict(run.verdicts),
                causes=dict(run.causes),
                outcomes=dict(run.outcomes),
                last_at=run.last_at,
                graded=run.graded,
                mean_score=run.score_total / run.graded if run.graded else None,
            )
            for run in found
        )
    )


@router.get("/{run}/health", summary="Whether a step is safe to train on")
async def health(run: GivenRun, parts: GivenParts) -> HealthShape:
    """Say whether to proceed, hold or skip, with the figures behind it."""
    found = await parts.use_cases.health(run)
    figures = found.figures
    return HealthShape(
        run=run.name,
        advice=found.advice,
        reasons=found.reasons,
        rollouts=figures.rollouts,
        active=figures.active,
        ended=figures.ended,
        calls=figures.calls,
        masked=figures.masked,
        masked_share=figures.masked_share,
        causes=dict(figures.causes),
    )


@router.get("/{run}/rollouts", summary="Its rollouts, with what their calls add up to")
async def rollouts(
    run: GivenRun,
    parts: GivenParts,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=500, description="How many at most.")] = 100,
) -> TalliedPage:
    """Return a page of the run's rollouts, newest first."""
    page = await parts.records.of_run(run.key, cursor=cursor, limit=limit)
    tallies = await parts.records.tallies([record.subject.key for record in page.items])
    return TalliedPage(
        rollouts=tuple(
            TalliedRollout(**shape_of_record(record).model_dump(), tally=TallyShape.model_validate(tally))
            for record, tally in zip(page.items, tallies, strict=True)
        ),
        cursor=page.cursor,
    )


@router.put("/{run}/reservations/{environment}", summary="Reserve sandboxes ahead of a step")
async def reserve(
    run: GivenRun,
    environment: Annotated[str, Path(max_length=253)],
    wish: ReservationRequest,
    parts: GivenParts,
    tenant: GivenTenant,
) -> ReservationShape:
    """Set sandboxes aside for the run; another id replaces what is left of an earlier reservation."""
    known = known_environment(parts, environment)
    reservation = await parts.use_cases.reserve(
        run,
        environment=known.name,
        reservation=wish.id,
        count=wish.count,
        ttl=timedelta(seconds=wish.ttl_seconds),
        quota=tenant.quotas.reserved_sandboxes,
    )
    return ReservationShape.model_validate(reservation)
