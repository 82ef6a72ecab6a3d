"""
A toolserver as its gateway sees it: requests that are signed, answers that are read, nothing retried.

Where it runs, as a local process or in a pod, is not this driver's business.
"""

from __future__ import annotations

import http.client
import io
import itertools
import json
import socket
import tarfile
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rollcage.wire.messages import BOOT_HEADER, REPLAYED_HEADER, Call, Refusal, Result, State, Tools
from rollcage.wire.tokens import Scope, Signer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from email.message import Message

SIGNER = Signer("k1", Ed25519PrivateKey.from_private_bytes(bytes(range(32))))
KEYS = json.dumps({SIGNER.key_id: SIGNER.public_key()})
ROLLOUT = "trace_1"
# Far above what anything here takes on a busy machine, below the tests' own limit.
SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer, read to its end."""

    status: int
    headers: Message
    body: bytes

    @property
    def code(self) -> str:
        """The code of a refusal."""
        return Refusal.model_validate_json(self.body).code

    @property
    def refusal(self) -> tuple[int, str]:
        """Status and code, for comparing at a glance."""
        return self.status, self.code

    @property
    def replayed(self) -> bool:
        return self.headers.get(REPLAYED_HEADER) == "true"

    @property
    def boot(self) -> str | None:
        return self.headers.get(BOOT_HEADER)

    def result(self) -> Result:
        """What the call came to; anything but a result is an error of the test."""
        assert self.status == http.HTTPStatus.OK, (self.status, self.body[:500])
        return Result.model_validate_json(self.body)


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event."""

    name: str
    data: bytes

    def json(self) -> dict[str, Any]:
        value: dict[str, Any] = json.loads(self.data)
        return value


class _Connection(http.client.HTTPConnection):
    def __init__(self, dial: Callable[[], socket.socket], seconds: float) -> None:
        super().__init__("toolserver")
        self.dial = dial
        self.seconds = seconds

    def connect(self) -> None:
        self.sock = self.dial()
        self.sock.settimeout(self.seconds)


class Toolserver:
    """The requests of one rollout to one sandbox, each on a connection of its own."""

    def __init__(self, dial: Callable[[], socket.socket], *, sandbox: str, rollout: str = ROLLOUT) -> None:
        self.dial = dial
        self.sandbox = sandbox
        self.rollout = rollout
        self.seconds = SECONDS
        self._numbers = itertools.count(1)

    def of(self, rollout: str) -> Toolserver:
        """Return the same sandbox as another rollout sees it."""
        return Toolserver(self.dial, sandbox=self.sandbox, rollout=rollout)

    def authorization(
        self,
        scope: Scope = Scope.ACT,
        *,
        signer: Signer = SIGNER,
        sandbox: str = "",
        age: timedelta = timedelta(0),
        lifetime: timedelta = timedelta(minutes=10),
    ) -> str:
        """Return the header of a token that was issued *age* ago."""
        return signer.authorization(
            sandbox=sandbox or self.sandbox,
            rollout=self.rollout,
            scope=scope,
            now=datetime.now(UTC) - age,
            lifetime=lifetime,
        )

    @contextmanager
    def exchange(
        self, method: str, target: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Iterator[http.client.HTTPResponse]:
        """Send a request and lend the answer, its body still to be read."""
        headers = dict(headers or {})
        if "Authorization" not in headers:
            headers["Authorization"] = self.authorization()
        with closing(_Connection(self.dial, self.seconds)) as connection:
            # Refused before the whole body was sent, it breaks off; the answer says why.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, target, body, headers)
            with connection.getresponse() as response:
                yield response

    def request(self, method: str, target: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
        """Send a request and read the answer; headers replace the usual ones."""
        with self.exchange(method, target, body, headers) as response:
            return Answer(response.status, response.headers, response.read())

    def head(self, request: str, *headers: str) -> bytes:
        """Return the head of a signed request, for sending by hand."""
        lines = [f"{request} HTTP/1.1", "Host: x", f"Authorization: {self.authorization()}", *headers, "", ""]
        return "\r\n".join(lines).encode()

    def raw(self, data: bytes) -> bytes:
        """Send these very bytes and return what comes until the other side closes."""
        with self.dial() as connection:
            connection.sendall(data)
            return b"".join(iter(lambda: connection.recv(1 << 16), b""))

    def get(self, target: str, scope: Scope = Scope.ACT) -> Answer:
        return self.request("GET", target, headers={"Authorization": self.authorization(scope)})

    def post(self, tool: str, /, *, call_id: str = "", **arguments: Any) -> Answer:
        """Make a call and return the answer, whatever it is."""
        return self.request("POST", "/v1/calls", self.body(tool, call_id, arguments))

    def call(self, tool: str, /, *, call_id: str = "", **arguments: Any) -> Result:
        """Make a call and return its result."""
        return self.post(tool, call_id=call_id, **arguments).result()

    def shell(self, command: str, /, **arguments: Any) -> Result:
        """Run a command and return its result."""
        return self.call("shell", command=command, **arguments)

    def earlier(self, call_id: str, *, wait_ms: int = 0) -> Answer:
        """Ask for the result of a call made earlier."""
        return self.get(f"/v1/calls/{call_id}?wait_ms={wait_ms}")

    @contextmanager
    def stream(self, tool: str, /, *, call_id: str = "", **arguments: Any) -> Iterator[Iterator[Event]]:
        """Make a call and lend its events as they come."""
        body = self.body(tool, call_id, arguments)
        with self.exchange("POST", "/v1/calls/stream", body) as response:
            assert response.status == http.HTTPStatus.OK, response.read()
            yield _events(response)

    def seal(self, *, wait_ms: int = 0) -> Answer:
        """Have nothing change any more; calls that run get so long to end."""
        return self.request("POST", f"/v1/seal?wait_ms={wait_ms}", b"")

    def state(self) -> State:
        """Return the sandbox's own account of itself."""
        return State.model_validate_json(self.get("/v1/state", Scope.INSPECT).body)

    def tools(self) -> Tools:
        return Tools.model_validate_json(self.get("/v1/tools", Scope.INSPECT).body)

    def upload(self, path: str, content: Any) -> Answer:
        """Store a file, from bytes or from an iterable of them."""
        return self.request("PUT", f"/v1/files?{urlencode({'path': path})}", content)

    def download(self, path: str) -> Answer:
        return self.request("GET", f"/v1/files?{urlencode({'path': path})}")

    def upload_tree(self, path: str, archive: bytes) -> Answer:
        return self.request("PUT", f"/v1/tree?{urlencode({'path': path})}", archive)

    def download_tree(self, path: str) -> tarfile.TarFile:
        answer = self.request("GET", f"/v1/tree?{urlencode({'path': path})}")
        assert answer.status == http.HTTPStatus.OK, answer.body
        return tarfile.open(fileobj=io.BytesIO(answer.body))

    def ready(self) -> bool:
        """Tell whether it answers, and that it is ready."""
        try:
            return self.request("GET", "/readyz").status == http.HTTPStatus.OK
        except OSError:
            return False

    def body(self, tool: str, call_id: str, arguments: dict[str, Any]) -> bytes:
        """Return the body of a call; one without an id gets one of its own."""
        call = Call(call_id=call_id or f"call_{next(self._numbers)}", tool=tool, arguments=arguments)
        return call.model_dump_json().encode()


def _events(response: http.client.HTTPResponse) -> Iterator[Event]:
    name = ""
    for line in response:
        field, _, value = line.rstrip(b"\n").partition(b": ")
        if field == b"event":
            name = value.decode()
        elif field == b"data":
            yield Event(name, value)


def dialer(host: str, port: int) -> Callable[[], socket.socket]:
    """Return what connects to an address."""

    def dial() -> socket.socket:
        return socket.create_connection((host, port), timeout=SECONDS)

    return dial
