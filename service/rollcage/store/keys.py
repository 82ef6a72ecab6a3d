"""
The names of everything in Redis.

Templates, filled with hashed or checked names only. The scripts get the same
table (see ``scripts``), so a name is written down once, here.

All keys of an installation carry one hash tag: its scripts touch a rollout, a
pool and a run at a time, so they live on one shard of a cluster. Why that is
enough: ``docs/decisions/claims-in-redis.md``.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

TEMPLATES: Final = MappingProxyType(
    {
        # The installation: phase, generation and leader; the release; one counter for every order.
        "state": "state",
        "schema": "schema",
        "sequence": "sequence",
        # What the leader last read of the environments, as one document.
        "environments": "environments",
        # One rollout: its record with its calls, evidence.
        "rollout": "rollout:%s",
        "evidence": "rollout:%s:evidence",
        # Its score with parts and notes; for a while what was taken out of its sandbox.
        "score": "rollout:%s:score",
        "artifacts": "rollout:%s:artifacts",
        # One sandbox; outlives it, so that it is never offered again.
        "sandbox": "sandbox:%s",
        # One environment's pool: what is ready, what is bound, what waits for deletion.
        "ready": "env:%s:ready",
        "bindings": "env:%s:bindings",
        "activity": "env:%s:activity",
        "spent": "env:%s:spent",
        # Its line: the runs in their turn, each run's rollouts by ticket, when each waiter lapses.
        "round": "env:%s:round",
        "queue": "env:%s:queue:%s",
        "lapses": "env:%s:lapses",
        # Its reservations: one per run, what is set aside for it, when each expires, the totals.
        "reservation": "env:%s:reservation:%s",
        "aside": "env:%s:aside:%s",
        "reservations": "env:%s:reservations",
        "pledges": "env:%s:pledges",
        # What the leader last saw of all pools, as one document that lapses when nobody leads.
        "levels": "levels",
        # What is to be archived, and a note that somebody does it.
        "unarchived": "unarchived",
        "archivist": "archivist",
        # Where things are found again: a run's counters, a tenant's runs, rollouts by owner and label.
        "run": "run:%s",
        "runs": "tenant:%s:runs",
        "index": "index:%s:%s",
        # Channels: a rollout should look again; an environment's demand changed; the environments themselves did.
        "wake": "wake",
        "changes": "changes",
        "recipes": "recipes",
    }
)


@dataclass(frozen=True, slots=True)
class Keys:
    """Names within one installation."""

    namespace: str = "rollcage"

    @property
    def prefix(self) -> str:
        """What every name starts with."""
        return f"{{{self.namespace}}}:"

    def __call__(self, template: str, *parts: str) -> str:
        """Return the full name of a key."""
        return self.prefix + self.short(template, *parts)

    @staticmethod
    def short(template: str, *parts: str) -> str:
        """Return the name without its prefix, as scripts take it."""
        return TEMPLATES[template] % parts
