"""What nobody waits for is done a moment later, and all of it."""

from __future__ import annotations

import asyncio

from rollcage.rollouts.later import Later


async def test_work_waits_and_is_then_done_in_its_order() -> None:
    done: list[int] = []
    last = asyncio.Event()
    later = Later()
    for number in range(3):
        later.do(done.append, number)
    later.do(last.set)
    await asyncio.sleep(0)
    assert done == []

    await last.wait()
    assert done == [0, 1, 2]


async def test_work_after_that_is_done_too() -> None:
    later = Later()
    for _ in range(3):
        done = asyncio.Event()
        later.do(done.set)
        await done.wait()


async def test_much_work_does_not_wait() -> None:
    done: list[int] = []
    later = Later()
    for number in range(100):
        later.do(done.append, number)

    assert done == list(range(96))
    later.now()
    assert done == list(range(100))


async def test_at_the_end_whatever_waits_is_done_at_once() -> None:
    done: list[str] = []
    later = Later()
    later.do(done.append, "work")
    later.now()
    later.now()

    assert done == ["work"]
