"""
Grade a rollout: the use case behind every dialect's grading.

Look whether it has a score already, whether it may be graded at all, take what
the grader needs out of its sandbox, end it, have a worker grade it, record the
score. Every way out but a score is a refusal with a reason.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog

from rollcage.core.environment import Environment
from rollcage.core.environment_grading import Grading
from rollcage.core.errors import RollcageError, RolloutEnded, RolloutUnknown
from rollcage.core.ids import RolloutId
from rollcage.core.verdict_words import Cause, Word
from rollcage.grading.errors import (
    ArtifactsMissing,
    GradeConflict,
    GraderCrashed,
    GradersBusy,
    GraderTimedOut,
    NoGrader,
    RolloutAbandoned,
    ScoreInvalid,
)
from rollcage.grading.frames import Frame
from rollcage.grading.fresh import FreshSandboxes
from rollcage.grading.protocol import Answer, Score
from rollcage.grading.taking import Export, exported, nothing
from rollcage.grading.workers import Workers
from rollcage.rollouts.errors import Masked
from rollcage.rollouts.usecases import UseCases
from rollcage.rollouts.views import RolloutVerdict, Step
from rollcage.store.scores import Scores
from rollcage.telemetry.labels import GradeLabel
from rollcage.telemetry.metrics import Metrics

_LONGEST_ITEM_ID: Final = 200

_LABELS: Final[Mapping[type[RollcageError], GradeLabel]] = {
    Masked: GradeLabel.MASKED,
    GraderCrashed: GradeLabel.GRADER_FAILED,
    GraderTimedOut: GradeLabel.TIMED_OUT,
    ScoreInvalid: GradeLabel.NO_NUMBER,
}

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be graded. Without *rollout* a person tries the grader on an answer."""

    tenant: str
    rollout: RolloutId | None
    run: str
    environment: Environment
    answer: Answer
    item: Mapping[str, Any]
    within: timedelta
    regrade: bool = False

    @property
    def digest(self) -> str:
        """What a repeat is known by."""
        said = json.dumps([self.answer.text, self.answer.json, self.item], sort_keys=True)
        return hashlib.sha256(said.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Graded:
    """A score, and whether it was given before."""

    score: Score
    graded_at: datetime
    seconds: float
    replayed: bool = False


class Desk:
    """Where rollouts are brought to be graded."""

    def __init__(
        self,
        *,
        use_cases: UseCases,
        scores: Scores,
        environments: Mapping[str, Environment],
        workers: Workers,
        metrics: Metrics,
    ) -> None:
        self._use_cases = use_cases
        self._scores = scores
        self._environments = environments
        self._workers = workers
        self._metrics = metrics

    async def grade(self, request: Request) -> Graded:
        """Return the rollout's score, or raise why it has none."""
        name = request.environment.name
        try:
            async with asyncio.timeout(request.within.total_seconds()):
                graded = await self._graded(request)
        except TimeoutError:
            self._metrics.grades.at(name, GradeLabel.TIMED_OUT).inc()
            raise GradersBusy from None
        except RollcageError as refusal:
            self._metrics.grades.at(name, _LABELS.get(type(refusal), GradeLabel.REFUSED)).inc()
            _log.info("grading_refused", code=refusal.code, reason=str(refusal), account=_account(refusal))
            raise
        self._metrics.grades.at(name, GradeLabel.SCORED).inc()
        if not graded.replayed:
            self._metrics.grade_seconds.at(name).observe(graded.seconds)
            self._metrics.scores.at(name).observe(graded.score.value)
        return graded

    async def score(self, rollout: RolloutId) -> Graded | None:
        """Return the score that stands, if there is one."""
        record = await self._scores.get(rollout.key)
        return _read(record)[0] if record else None

    async def _graded(self, request: Request) -> Graded:
        spec = request.environment.spec.grading
        if spec is None:
            raise NoGrader(f"{request.environment.name} says nothing about grading")
        began = time.monotonic()
        if request.rollout is None:
            score = await self._scored(request, spec, None, Export(absent=nothing(spec.artifacts, "no rollout").absent))
            return Graded(score, _now(), time.monotonic() - began)
        if not request.regrade and (record := await self._scores.get(request.rollout.key)):
            return _same(record, request)
        report = await self._standing(request, request.rollout, spec)
        export = await self._export(request.rollout, report, spec)
        # From here on nothing in the rollout changes any more.
        settled = await self._use_cases.finish(request.rollout, run=request.run, environment=request.environment.name)
        _may_be_graded(settled.standing.word, settled.standing.cause)
        if spec.artifacts and settled.calls and not (report and report.calls):
            # Nothing was sealed because there was nothing; what the call left nobody has seen.
            raise ArtifactsMissing(cause="the rollout's first call came while it was graded")
        score = await self._scored(request, spec, await self._use_cases.verdict(request.rollout), export)
        graded = Graded(score, _now(), time.monotonic() - began)
        return await self._recorded(request, request.rollout, graded)

    async def _standing(self, request: Request, rollout: RolloutId, spec: Grading) -> RolloutVerdict | None:
        """Return how the rollout stands, None if nothing is known of it; raises what forbids grading it."""
        try:
            report = await self._use_cases.verdict(rollout)
        except RolloutUnknown:
            if not spec.without_calls:
                raise
            return None
        if report.environment != request.environment.name:
            raise GradeConflict(f"the rollout belongs to environment {report.environment}")
        _may_be_graded(report.word or "", report.cause or "")
        if not report.calls and not spec.without_calls:
            raise RolloutUnknown(rollout=rollout.name)
        return report

    async def _export(self, rollout: RolloutId, report: RolloutVerdict | None, spec: Grading) -> Export:
        if not spec.artifacts:
            return Export()
        if kept := await self._scores.taken(rollout.key):
            return await asyncio.to_thread(Export.read, kept)
        if report is None or not report.calls:
            return nothing(spec.artifacts, "no call was made")
        export = await exported(self._use_cases, rollout, spec.artifacts, most=spec.artifact_bytes)
        kept = await self._scores.take(rollout.key, await asyncio.to_thread(export.taken))
        return await asyncio.to_thread(Export.read, kept)

    async def _scored(self, request: Request, spec: Grading, report: RolloutVerdict | None, export: Export) -> Score:
        steps = [step async for step in self._steps(request.rollout)] if request.rollout and report else []
        job = Frame.of(
            {
                "grader": spec.grader,
                "answer": {"text": request.answer.text, "json": request.answer.json},
                "item": request.item,
                "trajectory": [_shown(step) for step in steps],
                "verdict": _verdict(report),
                "absent": dict(export.absent),
            },
            archives=export.archives,
        )
        sandboxes = FreshSandboxes(
            self._use_cases,
            self._environments,
            request.tenant,
            request.environment,
            timedelta(seconds=spec.timeout_seconds),
        )
        return await self._workers.grade(
            job, allowed=spec.range, seconds=spec.timeout_seconds, sandboxes=sandboxes.answer
        )

    async def _steps(self, rollout: RolloutId) -> AsyncIterator[Step]:
        cursor: str | None = None
        while True:
            page = await self._use_cases.trajectory(rollout, cursor=cursor)
            for step in page.items:
                yield step
            cursor = page.cursor
            if cursor is None:
                return

    async def _recorded(self, request: Request, rollout: RolloutId, graded: Graded) -> Graded:
        record = {
            "score": graded.score.value,
            "parts": dict(graded.score.parts),
            "notes": list(graded.score.notes),
            "graded_at": graded.graded_at.isoformat(),
            "seconds": round(graded.seconds, 3),
            "digest": request.digest,
        }
        try:
            kept = await self._scores.keep(
                rollout.key,
                score=graded.score.value,
                record=json.dumps(record).encode(),
                item=_item_id(request.item),
                replace=request.regrade,
            )
        except RolloutEnded as over:
            raise _masked(over.cause) from over
        return graded if kept.first else _same(kept.record, request)


def _may_be_graded(word: str, cause: str) -> None:
    if word == Word.MASKED:
        raise _masked(cause)
    if word == Word.ABANDONED:
        raise RolloutAbandoned(cause)


def _masked(cause: str) -> Masked:
    return Masked(cause=Cause(cause) if cause in set(Cause) else Cause.UNKNOWN)


def _same(record: bytes, request: Request) -> Graded:
    graded, digest = _read(record)
    if digest != request.digest:
        raise GradeConflict("the rollout was graded for another answer or another item")
    return graded


def _read(record: bytes) -> tuple[Graded, str]:
    fields = json.loads(record)
    score = Score(fields["score"], fields["parts"], tuple(fields["notes"]))
    return Graded(score, datetime.fromisoformat(fields["graded_at"]), fields["seconds"], replayed=True), fields[
        "digest"
    ]


def _shown(step: Step) -> dict[str, Any]:
    shown = asdict(step)
    shown["begun_at"] = step.begun_at.isoformat()
    shown["finished_at"] = step.finished_at.isoformat() if step.finished_at else None
    return shown


def _verdict(report: RolloutVerdict | None) -> dict[str, Any]:
    if report is None:
        return {"word": None, "cause": None, "calls": 0, "placements": 0, "evidence": []}
    return {
        "word": report.word,
        "cause": report.cause,
        "calls": report.calls,
        "placements": report.placements,
        "evidence": [json.loads(piece) for piece in report.evidence],
    }


def _item_id(item: Mapping[str, Any]) -> str:
    given = item.get("id")
    known = isinstance(given, (str, int)) and not isinstance(given, bool)
    return str(given)[:_LONGEST_ITEM_ID].encode(errors="replace").decode() if known else ""


def _account(refusal: RollcageError) -> str:
    return refusal.account if isinstance(refusal, GraderCrashed) else ""


def _now() -> datetime:
    return datetime.now(UTC)
