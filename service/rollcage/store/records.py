"""
What the store keeps about a rollout and its sandbox, as values.

Only shapes, and how they are read from a script's answer.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import lru_cache
from typing import Final, Generic, TypeVar

from rollcage.core.ids import (
    RolloutId,
    RolloutKey,
    RunId,
    environment_name,
    rollout_key,
    sandbox_name,
    tenant_key,
    word,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Where a sandbox is and what it is: a card that goes along with every binding."""

    name: str
    environment: str
    address: str
    uid: str = ""
    node: str = ""
    image: str = ""

    def __post_init__(self) -> None:
        sandbox_name(self.name)
        environment_name(self.environment)

    def card(self) -> str:
        """Return the card as text."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_card(cls, text: bytes) -> "Sandbox":
        """Read a card."""
        return _read_card(text)


# A rollout's card comes with every one of its calls.
@lru_cache(maxsize=4096)
def _read_card(text: bytes) -> Sandbox:
    return Sandbox(**json.loads(text))


@dataclass(frozen=True, slots=True)
class Subject:
    """
    The rollout that something is about.

    After a loss of memory a pod can tell the key of its rollout and nothing
    else; then the names are missing, until a gateway brings them.
    """

    key: RolloutKey
    environment: str
    rollout: RolloutId | None = None
    run: RunId | None = None

    def __post_init__(self) -> None:
        rollout_key(self.key)
        environment_name(self.environment)

    @classmethod
    def of(cls, rollout: RolloutId, *, run: str, environment: str) -> "Subject":
        """Name a rollout in full."""
        return cls(rollout.key, environment, rollout, RunId(rollout.tenant, run))

    def fields(self) -> dict[str, str | int | bytes]:
        """Return the subject as a script's arguments."""
        fields: dict[str, str | int | bytes] = {"rollout": self.key, "environment": self.environment}
        if self.rollout and self.run:
            fields |= {
                "tenant": self.rollout.tenant,
                "name": self.rollout.name,
                "tenant_key": tenant_key(self.rollout.tenant),
                "run": self.run.key,
                "run_name": self.run.name,
            }
        return fields


class State(StrEnum):
    """How far a rollout is."""

    ASKED = "asked"
    WAITING = "waiting"
    BOUND = "bound"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the trainer may do with a rollout, by which cause, and who said so."""

    word: str
    by: str
    cause: str = ""
    evidence: str = "{}"

    def __post_init__(self) -> None:
        word("verdict", self.word)
        if self.cause:
            word("cause", self.cause)


@dataclass(frozen=True, slots=True)
class Standing:
    """The verdict that stands, and since when."""

    word: str
    cause: str
    by: str
    at: datetime


# What is read of a rollout's record, in which its calls stand as well; without a state there is none.
RECORD: Final = (
    "state",
    *("tenant", "name", "run_name", "environment", "card", "calls", "delivered", "placements"),
    *("begun_at", "bound_at", "ended_at", "verdict", "cause", "verdict_by", "verdict_at", "score", "item"),
)


@dataclass(frozen=True, slots=True)
class Rollout:
    """A rollout's record."""

    subject: Subject
    state: State
    sandbox: Sandbox | None
    calls: int
    # How many calls may have reached the sandbox.
    delivered: int
    # How often it was moved to another sandbox.
    placements: int
    begun_at: datetime | None
    bound_at: datetime | None
    ended_at: datetime | None
    verdict: Standing | None
    score: float | None = None
    # Which row of the dataset it was about, as far as its grading told.
    item: str = ""

    @classmethod
    def read(cls, key: bytes, found: Sequence[bytes | None]) -> "Rollout":
        """Read the record from what was found under the names of RECORD."""
        record = {name: told for name, told in zip(RECORD, found, strict=True) if told is not None}

        def text(name: str) -> str:
            return record.get(name, b"").decode()

        def time(name: str) -> datetime | None:
            return moment(record[name]) if name in record else None

        names = (
            (RolloutId(text("tenant"), text("name")), RunId(text("tenant"), text("run_name")))
            if "tenant" in record
            else (None, None)
        )
        return cls(
            subject=Subject(RolloutKey(key.decode()), text("environment"), *names),
            state=State(text("state")),
            sandbox=Sandbox.from_card(record["card"]) if "card" in record else None,
            calls=int(record.get("calls", 0)),
            delivered=int(record.get("delivered", 0)),
            placements=int(record.get("placements", 0)),
            begun_at=time("begun_at"),
            bound_at=time("bound_at"),
            ended_at=time("ended_at"),
            verdict=Standing(text("verdict"), text("cause"), text("verdict_by"), moment(record["verdict_at"]))
            if "verdict" in record
            else None,
            score=float(record["score"]) if "score" in record else None,
            item=text("item"),
        )


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Part of a listing; *cursor* asks for the next part and is None at the end."""

    items: tuple[T, ...]
    cursor: str | None


def moment(milliseconds: bytes) -> datetime:
    """Return a time that the store wrote down."""
    return datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
