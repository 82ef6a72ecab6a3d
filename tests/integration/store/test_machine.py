"""Whatever happens in whatever order, no sandbox is shared, doubled, lost or given out of turn."""

import asyncio
from collections import Counter, defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from redis.asyncio import Redis

from integration.store.desk import ENVIRONMENT, TENANT, TRAINED, Clock, call, key, sandbox, subject, wish
from rollcage.core.errors import MayHaveRun, QueueFull, RolloutEnded, RolloutMoved
from rollcage.core.ids import RunId
from rollcage.store.pools import Fate
from rollcage.store.records import State
from rollcage.store.server import Server
from rollcage.store.settings import Settings
from rollcage.store.store import open_store

T = TypeVar("T")

RUNS = ("a", "b", "c")
MAX_WAITING = 6
MAX_ROLLOUTS = 24
LAPSE = Settings("").heartbeat
PREFIX = "{rollcage}:"


@dataclass(frozen=True)
class Seen:
    """What Redis holds, read key by key and not through the code under test."""

    rollouts: dict[str, dict[str, str]]
    sandboxes: dict[str, dict[str, str]]
    ready: frozenset[str]
    aside: dict[str, frozenset[str]]
    spent: frozenset[str]
    # The line of each run, first to come first.
    line: dict[str, list[str]]
    round: list[str]

    def set_aside(self) -> list[str]:
        return [name for names in self.aside.values() for name in names]


class Pool(RuleBasedStateMachine):
    """A pool, its controller, and gateways that come and go."""

    url = ""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.clock = Clock()
        self.redis = Redis.from_url(self.url, decode_responses=True)
        self.do(self.redis.flushall())
        self.store = self.do(self.stack.enter_async_context(open_store(Settings(self.url), clock=self.clock)))
        self.leader = self.store.as_leader(1)
        self.do(self.leader.recovery.begin("g1"))
        self.do(self.leader.recovery.complete("g1"))
        self.run_of: dict[str, str] = {}
        self.offered: list[str] = []
        self.reservations = 0
        # How often each other run was served since a run began to want, or was served itself.
        self.passed: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.counted_at = 0
        self.before = self.look()

    def do(self, work: Any) -> Any:
        async def working() -> Any:
            return await work

        return self.runner.run(working())

    def teardown(self) -> None:
        self.do(self.stack.aclose())
        self.do(self.redis.aclose())
        self.runner.close()

    # What can happen.

    @rule(run=st.sampled_from(RUNS), pick=st.integers(0, 99))
    def somebody_asks(self, run: str, pick: int) -> None:
        """A gateway asks for a new rollout, or again for one it had asked for; it does not stay to wait."""
        name = f"r{pick % (len(self.run_of) + 1)}"
        if name not in self.run_of and len(self.run_of) >= MAX_ROLLOUTS:
            return
        try:
            self.ask(name, self.run_of.get(name, run))
        except (QueueFull, RolloutEnded):
            return
        self.run_of.setdefault(name, run)

    @rule()
    def a_sandbox_becomes_ready(self) -> None:
        name = f"s{len(self.offered)}"
        self.offered.append(name)
        self.do(self.leader.pools.offer(sandbox(name)))
        self.check_turns()

    @precondition(lambda self: self.offered)
    @rule(pick=st.integers(0, 99))
    def a_sandbox_is_offered_again(self, pick: int) -> None:
        self.do(self.leader.pools.offer(sandbox(self.offered[pick % len(self.offered)])))

    @precondition(lambda self: self.offered)
    @rule(pick=st.integers(0, 99))
    def a_sandbox_is_withdrawn(self, pick: int) -> None:
        name = self.offered[pick % len(self.offered)]
        idle = self.before.sandboxes[name]["state"] in {Fate.IDLE, Fate.WITHDRAWN}
        assert self.do(self.leader.pools.withdraw(name)).was_idle == idle

    @precondition(lambda self: self.offered)
    @rule(pick=st.integers(0, 99))
    def a_sandbox_dies(self, pick: int) -> None:
        self.do(self.leader.pools.died(self.offered[pick % len(self.offered)]))

    @precondition(lambda self: self.run_of)
    @rule(pick=st.integers(0, 99))
    def somebody_stops_waiting(self, pick: int) -> None:
        self.do(self.store._link.run("leave", rollout=key(self.known(pick))))  # noqa: SLF001

    @rule(share=st.sampled_from([0.4, 1.0]))
    def time_passes(self, share: float) -> None:
        self.clock.advance(LAPSE * share)

    @precondition(lambda self: self.run_of)
    @rule(pick=st.integers(0, 99))
    def a_call_is_begun(self, pick: int) -> None:
        try:
            self.do(self.store.calls.begin(key(self.known(pick)), call()))
        except (RolloutMoved, RolloutEnded):
            return

    @precondition(lambda self: self.run_of)
    @rule(pick=st.integers(0, 99))
    def a_gateway_wants_another_sandbox(self, pick: int) -> None:
        name = self.known(pick)
        record = self.before.rollouts[name]
        if "sandbox" not in record:
            return
        try:
            self.ask(name, self.run_of[name], instead_of=record["sandbox"])
        except MayHaveRun:
            assert int(record["delivered"]) > 0
        except (QueueFull, RolloutEnded):
            return

    @precondition(lambda self: self.run_of)
    @rule(pick=st.integers(0, 99))
    def a_rollout_ends(self, pick: int) -> None:
        name = self.known(pick)
        self.do(self.store.rollouts.end(subject(name, self.run_of[name]), TRAINED))

    @rule(run=st.sampled_from(RUNS), count=st.integers(0, 3))
    def a_run_reserves(self, run: str, count: int) -> None:
        self.reservations += 1
        self.do(
            self.store.reservations.reserve(
                RunId(TENANT, run),
                environment=ENVIRONMENT,
                reservation=f"n{self.reservations}",
                count=count,
                ttl=timedelta(minutes=1),
                quota=100,
            )
        )

    # What must be so afterwards.

    @invariant()
    def all_is_well(self) -> None:
        now = self.look()
        self.nothing_is_shared(now)
        self.nothing_is_lost(now)
        self.first_come_first_served(now)
        assert not (now.ready and now.round), "something lies ready while somebody wants it"
        counts = self.do(self.store.pools.counts(ENVIRONMENT))
        if self.clock.now != self.counted_at:
            # Counting drops what time has ended.
            self.counted_at = self.clock.now
            now = self.look()
        bound = [record for record in now.rollouts.values() if record["state"] == State.BOUND]
        assert (counts.ready, counts.set_aside) == (len(now.ready), len(now.set_aside()))
        assert (counts.claimed, counts.spent) == (len(bound), len(now.spent))
        assert counts.waiting == sum(map(len, now.line.values())) <= MAX_WAITING
        assert counts.reserved >= counts.set_aside
        self.forget_satisfied(now)
        self.before = now

    def nothing_is_shared(self, now: Seen) -> None:
        homes = [record["sandbox"] for record in now.rollouts.values() if record["state"] == State.BOUND]
        assert len(homes) == len(set(homes)), "two rollouts in one sandbox"
        for name, record in now.rollouts.items():
            if record["state"] == State.BOUND:
                owner = now.sandboxes[record["sandbox"]]
                assert (owner["state"], owner["rollout"]) == (Fate.BOUND, key(name))
            was = self.before.rollouts.get(name, {})
            if int(was.get("delivered", 0)) > 0 and was["state"] == State.BOUND:
                assert record["sandbox"] == was["sandbox"], "moved after a call"

    def nothing_is_lost(self, now: Seen) -> None:
        listed = Counter([*now.ready, *now.set_aside()])
        rollouts = {str(key(name)): record for name, record in now.rollouts.items()}
        for name in self.offered:
            record = now.sandboxes[name]
            state = record["state"]
            assert listed[name] == (1 if state == Fate.IDLE else 0)
            assert (name in now.spent) == (state == Fate.SPENT)
            if state == Fate.BOUND:
                assert rollouts[record["rollout"]].get("sandbox") == name
            was = self.before.sandboxes.get(name, {}).get("state")
            assert was not in {Fate.BOUND, Fate.SPENT, Fate.WITHDRAWN} or state != Fate.IDLE, "offered again"

    def first_come_first_served(self, now: Seen) -> None:
        for run, line in self.before.line.items():
            served = [name for name in line if now.rollouts[name]["state"] == State.BOUND]
            passed_over = [name for name in line if name in now.line[run]]
            assert not served or not passed_over or max(map(line.index, served)) < min(map(line.index, passed_over))

    def check_turns(self) -> None:
        """Between two turns of a run that wants a sandbox, every other run has at most one."""
        now = self.look()
        turns = [run for run in RUNS for _ in range(len(self.placed(now, run)) - len(self.placed(self.before, run)))]
        if len(turns) != 1:
            # A reservation expired in the same moment: more than one turn, in an order nobody saw.
            self.passed.clear()
            return
        self.passed[turns[0]].clear()
        for run in self.before.round:
            if run != turns[0]:
                self.passed[run][turns[0]] += 1
                assert self.passed[run][turns[0]] <= 1, f"{turns[0]} had two turns before {run}"

    def placed(self, seen: Seen, run: str) -> set[str]:
        bound = {
            record["sandbox"]
            for name, record in seen.rollouts.items()
            if record["state"] == State.BOUND and self.run_of[name] == run
        }
        return bound | seen.aside[run]

    def forget_satisfied(self, now: Seen) -> None:
        for run in RUNS:
            if run not in now.round or self.placed(now, run) - self.placed(self.before, run):
                self.passed[run].clear()

    # How it is asked and looked at.

    def known(self, pick: int) -> str:
        return list(self.run_of)[pick % len(self.run_of)]

    def ask(self, name: str, run: str, *, instead_of: str | None = None) -> None:
        claim = wish(name, run, max_waiting=MAX_WAITING, instead_of=instead_of)
        self.do(self.store._link.run("claim", **self.store.claims._fields(claim, 30.0)))  # noqa: SLF001

    def look(self) -> Seen:
        return self.runner.run(self.looking())

    async def looking(self) -> Seen:
        env = f"{PREFIX}env:{ENVIRONMENT}"
        runs = {name: str(RunId(TENANT, name).key) for name in RUNS}
        names = {key(name): name for name in self.run_of}
        pipe = self.redis.pipeline(transaction=False)
        for name in self.run_of:
            pipe.hgetall(f"{PREFIX}rollout:{key(name)}")
        for name in self.offered:
            pipe.hgetall(f"{PREFIX}sandbox:{name}")
        for run in runs.values():
            pipe.smembers(f"{env}:aside:{run}")
            pipe.zrange(f"{env}:queue:{run}", 0, -1)
        pipe.smembers(f"{env}:ready")
        pipe.zrange(f"{env}:spent", 0, -1)
        pipe.zrange(f"{env}:round", 0, -1)
        found = iter(await pipe.execute())
        rollouts = {name: next(found) for name in self.run_of}
        sandboxes = {name: next(found) for name in self.offered}
        aside: dict[str, frozenset[str]] = {}
        line: dict[str, list[str]] = {}
        for run in RUNS:
            aside[run] = frozenset(next(found))
            line[run] = [names[each] for each in next(found)]
        ready, spent, turns = frozenset(next(found)), frozenset(next(found)), next(found)
        labels = {each: run for run, each in runs.items()}
        return Seen(rollouts, sandboxes, ready, aside, spent, line, [labels[each] for each in turns])


def test_no_order_of_events_shares_doubles_loses_or_overtakes(server: Server) -> None:
    machine = type("Pool", (Pool,), {"url": server.url})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=30,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
