"""
Values: small classes whose instances are never changed once they are made.

The type checker holds everybody to that. At run time nothing does: every call
of a rollout makes a dozen of them, and what ``dataclass(frozen=True)`` does to
refuse an assignment makes each take twice as long.
"""

from dataclasses import dataclass, field
from typing import TypeVar, dataclass_transform

T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type[T]) -> type[T]:
    """Make a class one of values, compared and hashed by its fields."""
    return dataclass(slots=True, unsafe_hash=True)(cls)
