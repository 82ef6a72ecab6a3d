"""What a gateway remembers between two calls."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rollcage.core.ids import RolloutId
from rollcage.rollouts.routes import Routes
from rollcage.store.records import Sandbox
from support.toolserver import SIGNER

ROLLOUT = RolloutId("acme", "r1").key
HERE = Sandbox("sbx-1", "py", "http://10.0.0.1:8750")
THERE = Sandbox("sbx-2", "py", "http://10.0.0.2:8750")


@dataclass
class Clock:
    now: datetime = field(default_factory=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def __call__(self) -> datetime:
        return self.now


def test_a_token_is_signed_once_and_used_for_minutes() -> None:
    clock = Clock()
    routes = Routes(SIGNER, now=clock)
    route = routes.found(ROLLOUT, HERE)
    head = routes.head(route)

    clock.now += timedelta(minutes=9)
    assert routes.head(route) is head
    clock.now += timedelta(minutes=2)
    assert routes.head(route) != head


def test_a_clock_that_was_put_back_makes_a_new_token() -> None:
    clock = Clock()
    routes = Routes(SIGNER, now=clock)
    route = routes.found(ROLLOUT, HERE)
    head = routes.head(route)

    clock.now -= timedelta(minutes=30)

    assert routes.head(route) != head


def test_a_sandbox_is_held_to_the_first_boot_that_it_told() -> None:
    routes = Routes(SIGNER, now=Clock())
    route = routes.found(ROLLOUT, HERE)
    assert b"Rollcage-Boot" not in routes.head(route)

    route.knows("boot-1")
    route.knows("boot-2")

    assert b"Rollcage-Boot: boot-1\r\n" in routes.head(route)


def test_a_rollout_that_was_moved_forgets_its_old_sandbox() -> None:
    routes = Routes(SIGNER, now=Clock())
    routes.found(ROLLOUT, HERE, boot="boot-1")

    moved = routes.found(ROLLOUT, THERE)

    assert (moved.sandbox, moved.boot, moved.delivered) == (THERE, "", False)


def test_forgetting_a_stale_route_leaves_the_newer_one() -> None:
    routes = Routes(SIGNER, now=Clock())
    stale = routes.found(ROLLOUT, HERE)
    newer = routes.found(ROLLOUT, THERE)

    routes.forget(stale)

    assert routes.get(ROLLOUT) is newer
