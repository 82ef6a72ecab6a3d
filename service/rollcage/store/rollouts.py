"""
Verdicts, endings and listings of rollouts, and the figures of runs.

A verdict is kept as it is given, once; which one it is was decided elsewhere.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from rollcage.core.ids import RolloutKey, RunId, RunKey, TenantKey
from rollcage.store.keys import Keys
from rollcage.store.link import Link, Value
from rollcage.store.pages import page
from rollcage.store.records import RECORD, Page, Rollout, Sandbox, Standing, Subject, Verdict, moment
from rollcage.store.tallies import Tally, tally

# Enough for every party's account of one death.
MAX_EVIDENCE: Final = 32


class Label(StrEnum):
    """What rollouts can be listed by, besides run and tenant."""

    ALL = "all"
    ACTIVE = "active"
    ENDED = "ended"
    MASKED = "masked"


@dataclass(frozen=True, slots=True)
class Settled:
    """The verdict that stands, whether it is the one just given, the sandbox the rollout had, and its calls."""

    standing: Standing
    first: bool
    sandbox: Sandbox | None
    # Those that may have run; marks that were taken back do not count.
    calls: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A run's figures: what its health is judged by."""

    id: RunId
    rollouts: int
    active: int
    ended: int
    calls: int
    verdicts: MappingProxyType[str, int]
    causes: MappingProxyType[str, int]
    outcomes: MappingProxyType[str, int]
    last_at: datetime
    graded: int = 0
    score_total: float = 0.0


class Rollouts:
    """The records of all rollouts. A controller gives its epoch along, and is refused once deposed."""

    def __init__(self, link: Link) -> None:
        self._link = link

    async def decide(self, subject: Subject, verdict: Verdict, *, leader: int | None = None) -> Settled:
        """Give a verdict; one that stands already stays. From now on no call is begun."""
        return await self._settle(subject, verdict, {}, leader)

    async def end(self, subject: Subject, verdict: Verdict, *, leader: int | None = None) -> Settled:
        """
        End the rollout, with *verdict* unless it has one; its sandbox is to be deleted.

        Also for a rollout that never made a call: what comes late finds it ended.
        """
        return await self._settle(subject, verdict, {"ends": 1}, leader)

    async def attest(self, rollout: RolloutKey, evidence: str, *, leader: int | None = None) -> None:
        """Add evidence (JSON) to the record; the verdict is not touched."""
        fields: dict[str, Value] = {} if leader is None else {"leader": leader}
        await self._link.run("attest", rollout=rollout, evidence=evidence, most=MAX_EVIDENCE, **fields)

    async def evidence(self, rollout: RolloutKey) -> tuple[str, ...]:
        """Return all evidence, oldest first."""
        found = await self._link.ask("LRANGE", self._link.keys("evidence", rollout), 0, -1)
        return tuple(piece.decode() for piece in found)

    async def get(self, rollout: RolloutKey) -> Rollout | None:
        """Return the rollout's record, if there is one."""
        found = await self._link.ask("HMGET", self._link.keys("rollout", rollout), *RECORD)
        return Rollout.read(rollout.encode(), found) if found[0] else None

    async def of_run(
        self, run: RunKey, label: Label = Label.ALL, *, cursor: str | None = None, limit: int = 100
    ) -> Page[Rollout]:
        """Return a run's rollouts, newest first."""
        return await self._page(run, label, cursor, limit)

    async def of_tenant(
        self, tenant: TenantKey, label: Label = Label.ALL, *, cursor: str | None = None, limit: int = 100
    ) -> Page[Rollout]:
        """Return a tenant's rollouts, newest first."""
        return await self._page(tenant, label, cursor, limit)

    async def tallies(self, rollouts: Sequence[RolloutKey]) -> tuple[Tally, ...]:
        """Return what each rollout's calls add up to."""
        asked = (self._link.run("marks", rollout=rollout) for rollout in rollouts)
        return tuple(tally(marks) for marks in await asyncio.gather(*asked))

    async def run(self, run: RunKey) -> Run | None:
        """Return a run's figures, if it had rollouts lately."""
        fields = await self._link.run("figures", run=run)
        return _run(fields) if fields else None

    async def runs(self, tenant: TenantKey, *, limit: int = 100) -> tuple[Run, ...]:
        """Return the figures of a tenant's latest runs, newest first."""
        found = await self._link.run("runs", tenant_key=tenant, limit=limit)
        return tuple(_run(fields) for fields in found)

    async def _page(self, owner: str, label: Label, cursor: str | None, limit: int) -> Page[Rollout]:
        start = f"({cursor}" if cursor else "+inf"
        return await page(self._link, Keys.short("index", owner, label), newest_first=1, cursor=start, limit=limit)

    async def _settle(
        self, subject: Subject, verdict: Verdict, fields: dict[str, Value], leader: int | None
    ) -> Settled:
        if leader is not None:
            fields["leader"] = leader
        first, standing, cause, by, at, _, card, calls = await self._link.run(
            "settle",
            verdict=verdict.word,
            cause=verdict.cause,
            by=verdict.by,
            evidence=verdict.evidence,
            **subject.fields(),
            **fields,
        )
        return Settled(
            standing=Standing(standing.decode(), cause.decode(), by.decode(), moment(at)),
            first=bool(first),
            sandbox=Sandbox.from_card(card) if card else None,
            calls=int(calls or 0),
        )


def _run(fields: list[bytes]) -> Run:
    pairs = zip(fields[::2], fields[1::2], strict=True)
    record = {name.decode(): value.decode() for name, value in pairs}

    def grouped(prefix: str) -> MappingProxyType[str, int]:
        found = {name.removeprefix(prefix): int(record[name]) for name in record if name.startswith(prefix)}
        return MappingProxyType(found)

    outcomes = grouped("outcome:")
    return Run(
        id=RunId(record["tenant"], record["name"]),
        rollouts=int(record.get("rollouts", 0)),
        active=int(record.get("active", 0)),
        ended=int(record.get("ended", 0)),
        calls=int(record.get("open", 0)) + sum(outcomes.values()),
        verdicts=grouped("verdict:"),
        causes=grouped("cause:"),
        outcomes=outcomes,
        last_at=moment(record["last_at"].encode()),
        graded=int(record.get("graded", 0)),
        score_total=float(record.get("score_total", 0.0)),
    )
