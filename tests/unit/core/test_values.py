from __future__ import annotations

from dataclasses import field, replace

from rollcage.core.values import value


@value
class Point:
    x: int
    y: int = 0
    names: tuple[str, ...] = field(default_factory=tuple)


def test_values_with_the_same_fields_are_the_same() -> None:
    assert Point(1) == Point(1, 0)
    assert {Point(1), Point(1, 0), Point(2)} == {Point(1), Point(2)}


def test_a_change_is_another_value() -> None:
    point = Point(1, 2)

    assert replace(point, y=3) == Point(1, 3)
    assert point == Point(1, 2)


def test_a_value_has_no_room_for_anything_else() -> None:
    assert not hasattr(Point(1), "__dict__")
