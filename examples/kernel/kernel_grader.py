"""
Grade a kernel by what it computes and by how much work it saves, on inputs that nobody has seen before.

Work is counted by the machine, not timed, so the same kernel always gets the
same count. The best of three runs counts for speed, all three for correctness.
"""

import random

from machine import Fault, Machine

from rollcage.grading import Context, Refused, Score

RUNS = 3
# Outputs hold this before each run: what is not written is wrong.
POISON = -(1 << 40)
# Saving this factor of the reference's work is full credit.
FULL_CREDIT = 4.0


def moving_sum(numbers: list[int], width: int) -> list[int]:
    """Return for each place the sum of the last *width* numbers."""
    return [sum(numbers[max(0, place - width + 1) : place + 1]) for place in range(len(numbers))]


def grade(context: Context) -> Score:
    """Return 0 for what is wrong, else 0.2 for being right and the rest for work that was saved."""
    source = context.artifacts.text("work/kernel.py")
    if source is None:
        return Score(0.0, notes=("there is no work/kernel.py",))
    savings: list[float] = []
    for _ in range(RUNS):
        numbers = [random.randint(-999, 999) for _ in range(random.randint(60, 80))]  # noqa: S311 - no secret
        width = random.randint(14, 18)  # noqa: S311 - same
        try:
            done = _worked(source, numbers, width)
        except Fault as fault:
            return Score(0.0, notes=(str(fault),))
        if done is None:
            return Score(0.0, notes=("a wrong result",))
        try:
            savings.append(_reference(str(context.item["reference"]), numbers, width) / done)
        except Fault as fault:
            raise Refused(f"the reference does not run: {fault}") from fault
    best = max(savings)
    speed = min(max(best - 1.0, 0.0) / (FULL_CREDIT - 1.0), 1.0)
    return Score(0.2 + 0.8 * speed, {"correct": 1.0, "work_saved": best})


def _worked(source: str, numbers: list[int], width: int) -> int | None:
    """Return the work of a run, or None if it computed something else."""
    buffers = {"x": list(numbers), "width": [width], "out": [POISON] * len(numbers)}
    work = Machine(source, buffers).run()
    right = buffers["out"] == moving_sum(numbers, width) and buffers["x"] == numbers
    return max(work, 1) if right else None


def _reference(source: str, numbers: list[int], width: int) -> int:
    work = _worked(source, numbers, width)
    if work is None:
        raise Fault("a wrong result")
    return work
