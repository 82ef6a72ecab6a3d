"""
How logs are written: one event per line, with what it is about, without secrets.

Modules ask ``structlog.get_logger()`` and say past-tense facts with fields.
Which rollout, call, sandbox and run an event belongs to is bound around the
work, once, and goes along with everything that is logged inside.
"""

import logging
import re
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

HIDDEN: Final = "[hidden]"

# A field of this name holds a secret, whatever it looks like.
_SECRET_FIELD: Final = re.compile(r"authorization|token|password|secret|cookie|private_key", re.IGNORECASE)

# Secrets inside other texts: the path of a URL with a token, a header that was printed, a URL with a password.
_SECRETS: Final = (
    (re.compile(r"(/tokens/)[^/\s?#\"']+"), rf"\1{HIDDEN}"),
    (re.compile(r"\b(Bearer|Rollcage) +[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE), rf"\1 {HIDDEN}"),
    (re.compile(r"(://[^:/@\s]*:)[^@/\s]+@"), rf"\1{HIDDEN}@"),
)


_subject: Final[ContextVar[Mapping[str, str]]] = ContextVar("subject", default=MappingProxyType({}))


class Format(StrEnum):
    """How a line looks."""

    JSON = "json"
    CONSOLE = "console"


def configure(form: Format = Format.JSON, *, level: str = "INFO", stream: TextIO | None = None) -> None:
    """Set up logging for this process; what libraries log goes the same way."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _with_subject,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redacted,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    line: Processor = (
        structlog.processors.JSONRenderer() if form is Format.JSON else structlog.dev.ConsoleRenderer(colors=False)
    )
    formatter = structlog.stdlib.ProcessorFormatter(
        # Libraries and our own inner parts give their fields as the standard library wants them.
        foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *shared],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, line],
    )
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)


class about:  # noqa: N801 - reads as the function that it is used as
    """
    Bind what the events inside are about: rollout, call, sandbox, run.

    One variable and no generator: structlog's own took several times as long, and every call binds.
    """

    __slots__ = ("_fields", "_token")

    def __init__(self, **fields: str) -> None:
        self._fields = fields

    def __enter__(self) -> None:
        """Bind, beside what is bound already."""
        self._token = _subject.set({**_subject.get(), **self._fields})

    def __exit__(self, *_error: object) -> None:
        """Unbind."""
        _subject.reset(self._token)


def _with_subject(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    return {**_subject.get(), **event}


def redacted(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Hide secrets in an event, in fields of fields too."""
    return {name: _hidden(name, value) for name, value in event.items()}


def redact(text: str) -> str:
    """Return the text without the secrets that can be told by their surroundings."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def _hidden(name: str, value: Any) -> Any:
    if _SECRET_FIELD.search(name):
        return HIDDEN
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, bytes):
        return redact(value.decode(errors="replace"))
    if isinstance(value, Mapping):
        return {key: _hidden(str(key), one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_hidden(name, one) for one in value]
    return value
