"""
HTTP over a bare socket, for measuring what answers it and nothing else.
"""

from __future__ import annotations

import socket
import time


class Wire:
    """A client of bare sockets: an HTTP library in Python would cost as much as what is measured."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def timed(self, head: str, body: str) -> tuple[float, bytes]:
        """Make a request, and return the seconds it took and the answer's body."""
        request = f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()
        began = time.perf_counter()
        self._socket.sendall(request)
        answer = self._read()
        return time.perf_counter() - began, answer

    def _read(self) -> bytes:
        received = self._more()
        while b"\r\n\r\n" not in received:
            received += self._more()
        head, _, body = received.partition(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        while len(body) < length:
            body += self._more()
        if not head.startswith(b"HTTP/1.1 200"):
            raise AssertionError(body)
        return body

    def _more(self) -> bytes:
        # An ended connection reads as nothing, for ever.
        if data := self._socket.recv(65536):
            return data
        raise ConnectionError("the connection ended before the answer was whole")

    def close(self) -> None:
        """Hang up."""
        self._socket.close()
