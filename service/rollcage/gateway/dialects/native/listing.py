"""
How a rollout's record looks from outside.

Addresses stay inside: nobody reaches a sandbox but through the gateway.
"""

from rollcage.gateway.dialects.native.shapes import RolloutShape, SandboxShape, VerdictShape
from rollcage.rollouts.views import RolloutVerdict
from rollcage.store.records import Rollout, Sandbox, Standing


def shape_of_record(record: Rollout) -> RolloutShape:
    """Return a rollout as the store's listing has it."""
    subject = record.subject
    return RolloutShape(
        # After a loss of memory a rollout is known by its key alone, until its next call brings the names.
        rollout=subject.rollout.name if subject.rollout else subject.key,
        run=subject.run.name if subject.run else "",
        environment=subject.environment,
        state=record.state,
        calls=record.calls,
        placements=record.placements,
        begun_at=record.begun_at,
        ended_at=record.ended_at,
        sandbox=_sandbox(record.sandbox),
        verdict=_standing(record.verdict),
        score=record.score,
        item=record.item or None,
    )


def shape_of_report(report: RolloutVerdict) -> RolloutShape:
    """Return a rollout as the use case tells of it."""
    return RolloutShape(
        rollout=report.rollout.name,
        run=report.run,
        environment=report.environment,
        state=report.state,
        calls=report.calls,
        placements=report.placements,
        begun_at=report.begun_at,
        ended_at=report.ended_at,
        sandbox=_sandbox(report.sandbox),
        verdict=shape_of_verdict(report),
        score=report.score,
        item=report.item or None,
    )


def shape_of_verdict(report: RolloutVerdict) -> VerdictShape | None:
    """Return the verdict alone, None while there is none."""
    if report.word is None:
        return None
    return VerdictShape(word=report.word, cause=report.cause or "", by=report.by or "", at=report.at)


def _standing(standing: Standing | None) -> VerdictShape | None:
    if standing is None:
        return None
    return VerdictShape(word=standing.word, cause=standing.cause, by=standing.by, at=standing.at)


def _sandbox(sandbox: Sandbox | None) -> SandboxShape | None:
    return SandboxShape.model_validate(sandbox) if sandbox else None
