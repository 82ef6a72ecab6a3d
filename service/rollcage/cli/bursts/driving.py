"""
Drive one burst: play its rollouts, look at the pool meanwhile, and keep what a report needs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import httpx

from rollcage.cli.bursts.figures import Figures, counted
from rollcage.cli.bursts.scripts import Means, Script
from rollcage.cli.bursts.trainer import Played, Striking, Trainer
from rollcage.cli.bursts.view import State, View
from rollcage.reports.burst_data import Burst, BurstRollout, PoolLevel

# Often enough for an eye, seldom enough not to be a part of the load.
_LOOK_EVERY: Final = 0.25


@dataclass(frozen=True, slots=True)
class Target:
    """Where a burst goes."""

    url: str
    token: str
    environment: str
    run: str


@dataclass(frozen=True, slots=True)
class Driven:
    """What came of a burst."""

    figures: Figures
    played: tuple[Played, ...]
    burst: Burst


async def drive(
    target: Target,
    scripts: Sequence[Script],
    view: View,
    *,
    title: str,
    notes: tuple[str, ...] = (),
    strikes: Mapping[Means, Striking] | None = None,
    direct: bool = False,
) -> Driven:
    """Play all scripts at once and return what came of them; *direct* passes by a proxy that the environment names."""
    began_at, levels = datetime.now(UTC), list[PoolLevel]()
    async with httpx.AsyncClient(
        base_url=target.url,
        headers={"Authorization": f"Bearer {target.token}"},
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=100),
        trust_env=not direct,
    ) as http:
        trainer = Trainer(http, target.environment, target.run, strikes or {})

        async def look() -> None:
            level = await _level(trainer)
            levels.extend([level] if level else [])
            view.show(State.of(trainer, rollouts=len(scripts), level=level))

        watching = asyncio.ensure_future(_again_and_again(look))
        try:
            await trainer.play_all(scripts)
        finally:
            watching.cancel()
        seconds = trainer.now
        await look()
    burst = Burst(
        title=title,
        url=target.url,
        environment=target.environment,
        run=target.run,
        began_at=began_at,
        seconds=seconds,
        rollouts=tuple(map(_reported, trainer.over)),
        pool=tuple(levels),
        notes=notes,
    )
    return Driven(counted(trainer.over, seconds=seconds), tuple(trainer.over), burst)


async def _again_and_again(look: Callable[[], Awaitable[None]]) -> None:
    while True:
        await look()
        await asyncio.sleep(_LOOK_EVERY)


async def _level(trainer: Trainer) -> PoolLevel | None:
    """Ask how the pool stands; None if nobody says."""
    try:
        answer = await trainer.http.get("/v1/pools")
        pools = answer.json()["pools"] if answer.is_success else ()
    except (httpx.TransportError, ValueError, KeyError):
        return None
    for pool in pools:
        if pool["environment"] == trainer.environment:
            return PoolLevel(
                at=trainer.now,
                warm=pool["ready"] + pool["set_aside"],
                claimed=pool["claimed"],
                queued=pool["waiting"],
                starting=pool["starting"] or 0,
            )
    return None


def _reported(played: Played) -> BurstRollout:
    refusal = "" if played.answers[-1].good else played.answers[-1].code
    return BurstRollout(
        rollout=played.script.rollout,
        asked_at=played.asked_at,
        answered_at=played.answered_at,
        ended_at=played.ended_at,
        call_seconds=tuple(answer.seconds for answer in played.answers if answer.good),
        word=played.word,
        cause=played.cause,
        refusal=refusal,
        sandbox=played.sandbox,
        score=played.score,
    )
