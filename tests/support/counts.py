"""
What was counted, by the names under which Prometheus sees it; and which metrics tests claim to have seen counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable

    from rollcage.telemetry.metrics import Metrics

Test = TypeVar("Test", bound="Callable[..., object]")

SEEN: set[str] = set()


def sees(*names: str) -> Callable[[Test], Test]:
    """Say that a test fails if these metrics are not counted."""

    def noted(test: Test) -> Test:
        SEEN.update(names)
        return test

    return noted


class Counts:
    """Reads what one process counted."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def __call__(self, name: str, **labels: str) -> float:
        """Return a sample, or 0 if there is none under these labels."""
        return self._metrics.registry.get_sample_value(f"rollcage_{name}", labels) or 0.0

    async def come_to(self, value: float, name: str, **labels: str) -> None:
        """Wait until a sample has this value: an answered call is counted a moment after its answer."""

        async def there() -> bool:
            return self(name, **labels) == value

        await eventually(there)
