"""
Serve over HTTP with uvicorn, bounded, and stop without losing a call.

At SIGTERM the gateway first says that it is not ready and goes on serving, so
that whoever routes to it can notice; then it stops listening, lets the calls
in flight come to their end, and goes. It does the same when what it follows in
the background ends by an error: a gateway that goes on without would answer
from what it knew then, for ever.
"""

import gc
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType
from typing import Final

import uvicorn

from rollcage.core.errors import RollcageError
from rollcage.gateway.admission import Admission
from rollcage.gateway.connections import GuardedProtocol
from rollcage.gateway.exchange import App

# Some hundred calls; hardly anything that they make is part of a cycle.
_COLLECT_AFTER: Final = 50_000


@dataclass(frozen=True, slots=True)
class Serving:
    """How the gateway listens, and how it stops."""

    host: str = "0.0.0.0"  # noqa: S104 - a service in a pod
    port: int = 8080
    connections: int = 4000
    # Longer than load balancers keep theirs (60 s as a rule): whoever closes first must not be us, under a request.
    idle: timedelta = timedelta(seconds=75)
    headers_within: timedelta = timedelta(seconds=10)
    # A body, or an answer's reader, may be slow but must not stand still.
    still: timedelta = timedelta(seconds=30)
    # As long as endpoints and load balancers take to notice.
    linger: timedelta = timedelta(seconds=5)
    # A call may take nine minutes, and a little more.
    drain: timedelta = timedelta(seconds=600)
    # Whether SIGTERM and SIGINT are for the gateway; not where it is a part of a process.
    signals: bool = True


class BackgroundEnded(RollcageError):
    """The gateway's background ended by an error, which the log has; every call was answered."""

    code = "background_ended"


class DrainingServer(uvicorn.Server):
    """Says that it is not ready before it stops listening."""

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        admission: Admission,
        linger: timedelta,
        signals: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(config)
        self._admission = admission
        self._signals = signals
        self._linger = linger.total_seconds()
        self._clock = clock
        self._told_at: float | None = None

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Take the process's signals while serving, unless they are somebody else's."""
        with super().capture_signals() if self._signals else nullcontext():
            yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to drain at the first signal; stop listening at the second."""
        if self._told_at is not None:
            super().handle_exit(sig, frame)
            return
        self._captured_signals.append(sig)
        self._drain()

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until told to stop, or until the background has ended, which is an error."""
        await super().serve(sockets)
        if self.lifespan.error_occurred:
            raise BackgroundEnded("the gateway's background ended by an error, so it stopped; start it again")

    async def on_tick(self, counter: int) -> bool:
        """Stop listening once everybody had the time to notice."""
        if self._told_at is None and self.lifespan.error_occurred:
            self._drain()
        if self._told_at is not None and self._clock() - self._told_at >= self._linger:
            self.should_exit = True
        return await super().on_tick(counter)

    def _drain(self) -> None:
        self._told_at = self._clock()
        self._admission.drain()


def tame_collector() -> None:
    """
    Let the garbage collector leave alone what the start has made; for a process that only serves.

    It would look again and again through modules and schemas. In two pairs of runs on a busy machine a call
    took some 28 % less processor time with both settings; which of them does how much was not measured.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 20)


def server(app: App, serving: Serving, *, admission: Admission) -> DrainingServer:
    """Return the server; ``run()`` or ``serve()`` starts it."""
    guard = type(
        "Guarded",
        (GuardedProtocol,),
        {
            "headers_within": serving.headers_within.total_seconds(),
            "still": serving.still.total_seconds(),
        },
    )
    config = uvicorn.Config(
        app,
        host=serving.host,
        port=serving.port,
        loop="uvloop",
        http=guard,
        ws="none",
        lifespan="on",
        # Configured by telemetry; and paths may carry tokens, so no access log.
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=serving.connections,
        backlog=2048,
        timeout_keep_alive=int(serving.idle.total_seconds()),
        timeout_graceful_shutdown=int(serving.drain.total_seconds()),
    )
    return DrainingServer(config, admission=admission, linger=serving.linger, signals=serving.signals)
