"""
Grading: asking for a rollout's score, and reading the one that stands.
"""

from fastapi import APIRouter

from rollcage.core.errors import RolloutUnknown
from rollcage.gateway.dialects.native.access import GivenParts, GivenRollout, known_environment
from rollcage.gateway.dialects.native.shapes import GradeRequest, ScoreShape
from rollcage.gateway.ports import Graders, Parts
from rollcage.grading.desk import Graded, Request
from rollcage.grading.errors import NoGrader
from rollcage.grading.protocol import Answer
from rollcage.telemetry.logs import about

router = APIRouter(prefix="/rollouts/{rollout}", tags=["grading"])


@router.post("/grade", summary="Grade it; that ends it")
async def grade(rollout: GivenRollout, request: GradeRequest, parts: GivenParts) -> ScoreShape:
    """Return the score, or refuse with a reason; never a number for something that broke."""
    graders = _graders(parts)
    try:
        report = await parts.use_cases.verdict(rollout)
        run, environment = report.run, report.environment
    except RolloutUnknown:
        if request.environment is None:
            raise
        run, environment = request.run, request.environment
    asked = Request(
        tenant=rollout.tenant,
        rollout=rollout,
        run=run,
        environment=known_environment(parts, environment),
        answer=Answer.of(request.answer.text, request.answer.data),
        item=request.item,
        within=parts.limits.native_seconds,
        regrade=request.regrade,
    )
    with about(rollout=rollout.name, run=run):
        return _shape(rollout.name, await graders.grade(asked))


@router.get("/score", summary="The score that stands")
async def score(rollout: GivenRollout, parts: GivenParts) -> ScoreShape:
    """Return the recorded score with its parts and notes."""
    found = await _graders(parts).score(rollout)
    if found is None:
        raise RolloutUnknown(rollout=rollout.name)
    return _shape(rollout.name, found)


def _graders(parts: Parts) -> Graders:
    if parts.graders is None:
        raise NoGrader
    return parts.graders


def _shape(rollout: str, graded: Graded) -> ScoreShape:
    given = graded.score
    return ScoreShape(
        rollout=rollout,
        score=given.value,
        parts=given.parts,
        notes=given.notes,
        graded_at=graded.graded_at,
        seconds=graded.seconds,
        replayed=graded.replayed,
    )
