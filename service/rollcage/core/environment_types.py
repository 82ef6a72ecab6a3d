"""
The kinds of values that an environment is written with.

Each has the same pattern in the custom resource's schema, so that a file and
the API server refuse the same texts.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

_SUFFIXES: Final = {
    "": Decimal(1),
    "m": Decimal("0.001"),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", start=1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", start=1)},
}
# Zero is no small limit: to Kubernetes it means none at all.
_CPU: Final = r"^([1-9][0-9]*(\.[0-9]+)?|0\.[0-9]*[1-9][0-9]*|[1-9][0-9]*m)$"
# No thousandths: 512m of memory is half a byte, and never what was meant.
_SIZE: Final = r"^[1-9][0-9]*(\.[0-9]+)?(k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$"

DNS_LABEL: Final = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"
DNS_NAME: Final = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$"
LABEL_KEY: Final = (
    r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*/)?"
    r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$"
)
LABEL_VALUE: Final = r"^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$"
# An absolute path without empty parts; "." and ".." are refused by a rule of their own.
PATH: Final = r"^(/[^/]+)+$"


class Part(BaseModel):
    """A part of an environment: frozen, and closed to fields that nobody reads."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _null_is_missing(cls, given: Any) -> Any:
        # The API server drops a null and fills in the default; a file must mean the same.
        return {k: v for k, v in given.items() if v is not None} if isinstance(given, dict) else given


def amount(quantity: str) -> Decimal:
    """Return how much a Kubernetes quantity is: ``1Gi`` is 1073741824, ``250m`` is 0.25."""
    number = quantity.rstrip("mkKMGTPEi")
    return Decimal(number) * _SUFFIXES[quantity[len(number) :]]


def _whole_number_as_text(given: Any) -> Any:
    return str(given) if isinstance(given, int) and not isinstance(given, bool) else given


def matches(pattern: str, text: str) -> bool:
    """Tell whether a text is of a kind; ``$`` never accepts a final newline here."""
    return re.fullmatch(pattern.removeprefix("^").removesuffix("$"), text) is not None


Cpu = Annotated[str, Field(pattern=_CPU, max_length=32), BeforeValidator(_whole_number_as_text)]
Size = Annotated[str, Field(pattern=_SIZE, max_length=32)]
LabelValue = Annotated[str, Field(pattern=LABEL_VALUE, max_length=63)]
Path = Annotated[str, Field(pattern=PATH, max_length=255)]
Reference = Annotated[str, Field(min_length=1, max_length=512, pattern=r"^[^\s]+$")]
ObjectName = Annotated[str, Field(pattern=DNS_NAME, max_length=253)]
Flag = Annotated[bool, Field(strict=True)]


def whole(least: int, most: int) -> Any:
    """Return the constraint of a whole number; a text or a fraction is not one."""
    return Field(ge=least, le=most, strict=True)
