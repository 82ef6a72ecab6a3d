"""
Write down why a sandbox ended, and what that means for its rollout, before the evidence is gone.

The store says whose it was, the source what is still known of its end,
``core.verdicts`` what follows.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog

from rollcage.controller.sentence import BY
from rollcage.core.errors import RollcageError
from rollcage.core.verdict_facts import SandboxEnded, Shield
from rollcage.core.verdict_words import Cause, Word
from rollcage.core.verdicts import judge
from rollcage.store.pools import Departure

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rollcage.controller.sentence import Sentence
    from rollcage.core.environment import Environment
    from rollcage.core.ids import RolloutKey
    from rollcage.sandboxes.source import Sandbox, SandboxSource
    from rollcage.store.pools import Gone
    from rollcage.store.records import Rollout
    from rollcage.store.store import Leader, Store

log = structlog.get_logger(__name__)

# A node that ran out of memory says so within seconds; an older event is about something else.
_MEMORY_EVENTS: Final = frozenset({"SystemOOM", "EvictionThresholdMet"})
_RECENT: Final = timedelta(minutes=5)


class Deaths:
    """Settles what the end of a sandbox means."""

    def __init__(self, source: SandboxSource, store: Store, leader: Leader, sentence: Sentence) -> None:
        self._source = source
        self._store = store
        self._leader = leader
        self._sentence = sentence

    async def settle(self, sandbox: Sandbox, environment: Environment | None) -> Departure:
        """Give the rollout of a dead sandbox its verdict if a call may have reached it, else free it."""
        gone = await self._leader.pools.died(sandbox.name)
        if gone.departure is Departure.DELIVERED and gone.rollout:
            await self._judge(sandbox, environment, gone.rollout)
        if gone.departure is not Departure.WITHDRAWN:
            await self._leader.pools.forget(sandbox.name, environment=sandbox.environment)
        _tell(sandbox, gone)
        return gone.departure

    async def vanished(self, name: str, environment: str) -> None:
        """Settle a sandbox that is offered or bound and no longer there: it went while nobody looked."""
        gone = await self._leader.pools.died(name)
        record = await self._store.rollouts.get(gone.rollout) if gone.rollout else None
        if gone.departure is Departure.DELIVERED and record:
            await self._end(record, Cause.UNKNOWN, Word.MASKED, {"sandbox": name, "vanished": True})
        await self._leader.pools.forget(name, environment=environment)
        log.warning("sandbox_vanished", sandbox=name, environment=environment, departure=gone.departure)

    async def _judge(self, sandbox: Sandbox, environment: Environment | None, rollout: RolloutKey) -> None:
        record = await self._store.rollouts.get(rollout)
        if record is None:
            return
        known = await self._evidence(sandbox)
        judgement = judge(
            SandboxEnded(
                ending=sandbox.ending,
                delivered=True,
                node_out_of_memory=node_out_of_memory(known, datetime.now(UTC)),
                node_silent=sandbox.node_silent,
                outlived_budget=_outlived(record, environment),
                shield=self._source.shield(environment) if environment else Shield.KERNEL,
            )
        )
        if judgement.word is None:
            return
        evidence = {
            "sandbox": sandbox.name,
            "uid": sandbox.uid,
            "node": sandbox.node,
            "image": sandbox.image,
            "ending": asdict(sandbox.ending) if sandbox.ending else None,
            "node_silent": sandbox.node_silent,
            "calls": record.calls,
            **known,
        }
        await self._end(record, judgement.cause or Cause.UNKNOWN, judgement.word, evidence)

    async def _evidence(self, sandbox: Sandbox) -> Mapping[str, Any]:
        try:
            return await self._source.evidence(sandbox)
        except RollcageError as error:
            # The verdict must not wait for an API server that is down; what is missing is said.
            log.warning("evidence_unavailable", sandbox=sandbox.name, error=str(error))
            return {"evidence_unavailable": str(error)}

    async def _end(self, record: Rollout, cause: Cause, word: Word, evidence: Mapping[str, Any]) -> None:
        told = {**evidence, "noticed_by": BY, "noticed_at": datetime.now(UTC).isoformat()}
        text = json.dumps(told, default=str)
        settled = await self._sentence.give(record.subject, word, cause, text)
        if not settled.first:
            # Somebody was faster, who saw less of it than we did.
            await self._store.rollouts.attest(record.subject.key, text, leader=self._leader.epoch)
        log.info(
            "verdict_given", rollout=record.subject.key, verdict=settled.standing.word, cause=settled.standing.cause
        )


def node_out_of_memory(evidence: Mapping[str, Any], now: datetime) -> bool:
    """Tell whether the sandbox's node was short of memory around now."""
    if evidence.get("node_conditions", {}).get("MemoryPressure") == "True":
        return True
    return any(
        event["reason"] in _MEMORY_EVENTS and now - datetime.fromisoformat(event["last_seen"]) < _RECENT
        for event in evidence.get("node_events", ())
    )


def _outlived(record: Rollout, environment: Environment | None) -> bool:
    if environment is None or record.begun_at is None:
        return False
    return datetime.now(UTC) - record.begun_at >= timedelta(seconds=environment.spec.budgets.wall_seconds)


def _tell(sandbox: Sandbox, gone: Gone) -> None:
    ending = sandbox.ending
    log.info(
        "sandbox_ended",
        sandbox=sandbox.name,
        environment=sandbox.environment,
        departure=gone.departure,
        cause=ending.cause if ending else None,
        exit_code=ending.exit_code if ending else None,
    )
