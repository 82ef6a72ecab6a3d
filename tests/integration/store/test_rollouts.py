"""What verdicts, listings and run figures promise, on a real Redis."""

import asyncio

import pytest

from integration.store.desk import FAILED_NODE, TENANT, TRAINED, Desk, call, key, subject
from rollcage.core.errors import RolloutEnded, RolloutUnknown
from rollcage.core.ids import RunId, tenant_key
from rollcage.store.calls import CallEnding
from rollcage.store.records import State, Verdict
from rollcage.store.rollouts import MAX_EVIDENCE, Label

RUN = RunId(TENANT, "a").key


async def test_the_first_verdict_stands(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")
    await desk.store.rollouts.decide(subject("r1"), FAILED_NODE)

    later = await desk.store.rollouts.end(subject("r1"), TRAINED)

    assert (later.first, later.standing.word, later.standing.cause) == (False, "masked", "node_lost")
    assert await desk.store.rollouts.evidence(key("r1")) == (FAILED_NODE.evidence,)


async def test_of_many_verdicts_at_once_one_is_the_first(desk: Desk) -> None:
    verdicts = [Verdict("masked", by=f"gateway-{i}") for i in range(20)]

    settled = await asyncio.gather(*(desk.store.rollouts.decide(subject("r1"), verdict) for verdict in verdicts))

    assert [each.first for each in settled].count(True) == 1
    assert len({each.standing for each in settled}) == 1


async def test_an_end_tells_which_sandbox_is_over(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")

    ended = [await desk.store.rollouts.end(subject("r1"), TRAINED) for _ in range(2)]

    assert [each.sandbox and each.sandbox.name for each in ended] == ["s1", "s1"]
    run = await desk.store.rollouts.run(RUN)
    assert run
    assert (run.active, run.ended) == (0, 1)


async def test_a_rollout_without_a_call_ends_with_a_verdict_too(desk: Desk) -> None:
    await desk.store.rollouts.end(subject("r1"), TRAINED)

    assert (await desk.record("r1")).state is State.ENDED
    await desk.offer("s1")
    with pytest.raises(RolloutEnded):
        await desk.claim("r1")


async def test_evidence_is_added_without_touching_the_verdict(desk: Desk) -> None:
    await desk.store.rollouts.end(subject("r1"), FAILED_NODE)

    for i in range(MAX_EVIDENCE + 5):
        await desk.store.rollouts.attest(key("r1"), f'{{"piece":{i}}}')

    evidence = await desk.store.rollouts.evidence(key("r1"))
    assert len(evidence) == MAX_EVIDENCE
    verdict = (await desk.record("r1")).verdict
    assert verdict
    assert verdict.word == "masked"


async def test_evidence_about_nobody_is_refused(desk: Desk) -> None:
    with pytest.raises(RolloutUnknown):
        await desk.store.rollouts.attest(key("r1"), "{}")


async def test_rollouts_are_listed_by_what_became_of_them(desk: Desk) -> None:
    await desk.offer("s1", "s2", "s3")
    for name in ("r1", "r2", "r3"):
        await desk.claim(name)
    await desk.store.rollouts.end(subject("r1"), TRAINED)
    await desk.store.rollouts.decide(subject("r2"), FAILED_NODE)

    async def names(label: Label) -> list[str]:
        page = await desk.store.rollouts.of_run(RUN, label)
        return [each.subject.rollout.name for each in page.items if each.subject.rollout]

    assert await names(Label.ALL) == ["r3", "r2", "r1"]
    assert await names(Label.ACTIVE) == ["r3", "r2"]
    assert await names(Label.ENDED) == ["r1"]
    assert await names(Label.MASKED) == ["r2"]


async def test_a_tenants_rollouts_are_listed_page_by_page(desk: Desk) -> None:
    await desk.offer(*(f"s{i}" for i in range(5)))
    for i in range(5):
        await desk.claim(f"r{i}", f"run{i}")
    tenant = tenant_key(TENANT)

    first = await desk.store.rollouts.of_tenant(tenant, limit=3)
    rest = await desk.store.rollouts.of_tenant(tenant, cursor=first.cursor, limit=3)

    assert [each.subject.rollout and each.subject.rollout.name for each in (*first.items, *rest.items)] == [
        "r4",
        "r3",
        "r2",
        "r1",
        "r0",
    ]
    assert await desk.store.rollouts.of_tenant(tenant_key("other")) == type(first)((), None)


async def test_expired_rollouts_drop_out_of_the_listings(desk: Desk) -> None:
    await desk.offer("s1", "s2")
    await desk.claim("r1")
    await desk.claim("r2")
    await desk.redis.delete(f"{{rollcage}}:rollout:{key('r1')}")

    assert [each.subject for each in (await desk.store.rollouts.of_run(RUN)).items] == [subject("r2")]


async def test_listings_that_nobody_reads_do_not_grow_for_ever(desk: Desk) -> None:
    for i in range(100):
        await desk.offer(f"s{i}")
        await desk.claim(f"r{i}")
        await desk.redis.delete(f"{{rollcage}}:rollout:{key(f'r{i}')}")

    assert await desk.redis.zcard(f"{{rollcage}}:index:{tenant_key(TENANT)}:all") <= 8


async def test_a_run_knows_its_figures(desk: Desk) -> None:
    await desk.offer("s1", "s2")
    await desk.claim("r1")
    home = await desk.claim("r2")
    await desk.begin("r1")
    await desk.store.calls.finish(key("r1"), "call-1", CallEnding(b"", "timed_out"))
    await desk.store.rollouts.end(subject("r1"), FAILED_NODE)
    # One that is over as soon as it is begun, one that runs, one that was taken back.
    sent = desk.store.calls.mark(key("r2"), call("call-1"), sandbox=home, after=60)
    await sent.begun(CallEnding(b"", "ok"), within=5)
    await desk.begin("r2", "call-2")
    await desk.begin("r2", "call-3")
    await desk.store.calls.retract(key("r2"), "call-3", attempt="attempt-1")

    run = await desk.store.rollouts.run(RUN)

    assert run
    assert run.id == RunId(TENANT, "a")
    assert (run.rollouts, run.active, run.ended, run.calls) == (2, 1, 1, 3)
    assert run.verdicts == {"masked": 1}
    assert run.causes == {"node_lost": 1}
    assert run.outcomes == {"timed_out": 1, "ok": 1}


async def test_a_rollouts_calls_add_up_however_many_they_are(desk: Desk) -> None:
    await desk.offer("s1")
    await desk.claim("r1")
    await asyncio.gather(*(desk.begin("r1", f"call-{i}") for i in range(2_500)))
    await desk.store.calls.finish(key("r1"), "call-7", CallEnding(b"", "ok", shown=3))

    many, none = await desk.store.rollouts.tallies([key("r1"), key("r2")])

    assert (many.calls, many.repeated, many.shown) == (2_500, 2_499, 3)
    assert many.outcomes == {"ok": 1}
    assert none.calls == 0


async def test_a_tenants_runs_are_listed_newest_first(desk: Desk) -> None:
    await desk.offer("s1", "s2")
    await desk.claim("r1", "a")
    await desk.claim("r2", "b")

    runs = await desk.store.rollouts.runs(tenant_key(TENANT))

    assert [run.id.name for run in runs] == ["b", "a"]
    assert await desk.store.rollouts.run(RunId(TENANT, "c").key) is None
