"""A head is known again by all of its bytes but the length, and only where nothing else tells where a message ends."""

from __future__ import annotations

import pytest

from rollcage.wire import heads

HEAD = b"POST /tools HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nAuthorization: Bearer t"


def message(body: bytes, head: bytes = HEAD) -> bytes:
    return head % len(body) + b"\r\n\r\n" + body


def test_a_whole_message_is_parted_into_head_and_body() -> None:
    before, after = b"POST /tools HTTP/1.1\r\nHost: x", b"Authorization: Bearer t"

    assert heads.parted(message(b"hello")) == ((before, after), b"hello")


def test_messages_of_any_length_have_the_same_head() -> None:
    first, second = heads.parted(message(b"")), heads.parted(message(b"x" * 12_345))

    assert first
    assert second
    assert first[0] == second[0]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(HEAD.replace(b"Bearer t", b"Bearer u"), id="another token"),
        pytest.param(HEAD.replace(b"/tools", b"/tools/shell"), id="another path"),
        pytest.param(HEAD + b"\r\nTransfer-Encoding: chunked", id="one header more"),
        pytest.param(HEAD + b"\r\nContent-Length: 5", id="a second length"),
    ],
)
def test_whatever_else_differs_is_another_head(other: bytes) -> None:
    known, found = heads.parted(message(b"hello")), heads.parted(message(b"hello", other))

    assert known
    assert found is None or found[0] != known[0]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(message(b"hello")[:-1], id="not all of it"),
        pytest.param(message(b"hello") + b"P", id="the next one has begun"),
        pytest.param(message(b"hello")[:20], id="no end of the head"),
        pytest.param(message(b"")[:-4], id="no end of the head of an empty one"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", id="no length"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: 1_0\r\n\r\n" + b"x" * 10, id="a length that Python reads"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 9999 + b"\r\n\r\nx", id="an absurd length"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\nhello", id="a sign"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: \r\n\r\n", id="an empty length"),
        pytest.param(b"POST / HTTP/1.1\r\nHost: x\r\n\r\n\r\nContent-Length: 3\r\n\r\nabc", id="a length in the body"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_not_one_whole_message_is_not_parted(data: bytes) -> None:
    assert heads.parted(data) is None


def test_a_head_with_one_length_is_plain() -> None:
    assert heads.plain([b"host", b"content-length"])


@pytest.mark.parametrize(
    "names",
    [
        [b"host"],
        [b"content-length", b"content-length"],
        [b"content-length", b"transfer-encoding"],
        [b"content-length", b"expect"],
        [b"content-length", b"upgrade"],
        [b"content-length", b"trailer"],
    ],
)
def test_a_head_with_another_way_to_tell_the_end_is_not_plain(names: list[bytes]) -> None:
    assert not heads.plain(names)
