from __future__ import annotations

import json

import pytest

from load import frame


def test_sides_are_timed_in_turns_and_warm_up_rounds_do_not_count() -> None:
    order: list[str] = []

    seconds = frame.alternate(
        {"floor": lambda: order.append("f"), "system": lambda: order.append("s")}, rounds=2, warmup=1
    )

    assert "".join(order) == "fsfsfs"
    assert {name: len(values) for name, values in seconds.items()} == {"floor": 2, "system": 2}


@pytest.mark.parametrize(("q", "expected"), [(0.0, 1.0), (0.5, 3.0), (0.99, 4.0), (1.0, 4.0)])
def test_a_quantile_is_one_of_the_values(q: float, expected: float) -> None:
    assert frame.quantile([4.0, 1.0, 3.0, 2.0], q) == expected


def test_the_machine_can_be_told_as_json() -> None:
    assert json.loads(json.dumps(frame.machine()))["cores"] >= 1
