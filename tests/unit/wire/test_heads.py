"""A head is known again by all of its bytes but the length, and only where nothing else tells where a message ends."""

from __future__ import annotations

import pytest

from rollcage.wire import heads

HEAD = b"POST /tools HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\nAuthorization: Bearer t"


def message(body: bytes, head: bytes = HEAD) -> bytes:
    return head % len(body) + b"\r\n\r\n" + body


def head(data: bytes = message(b"hello")) -> heads.Head:
    found = heads.head_of(data)
    assert found
    return found


def test_a_head_is_all_of_its_bytes_but_the_length() -> None:
    before, after = b"POST /tools HTTP/1.1\r\nHost: x\r\nContent-Length: ", b"\r\nAuthorization: Bearer t\r\n\r\n"

    assert (head().before, head().after) == (before, after)


@pytest.mark.parametrize("body", [b"", b"h", b"x" * 12_345, b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\nabc"])
def test_messages_of_any_length_have_the_same_head(body: bytes) -> None:
    assert head(message(body)) == head()
    assert head().body(message(body)) == body


def test_the_length_may_come_last_and_in_small_letters() -> None:
    small = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: %d"

    assert head(message(b"hello", small)).body(message(b"hi", small)) == b"hi"


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
    assert head().body(message(b"hello", other)) is None
    assert heads.head_of(message(b"hello", other)) != head()


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
def test_what_is_not_one_whole_message_has_no_head(data: bytes) -> None:
    assert heads.head_of(data) is None


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(message(b"hello")[:-1], id="not all of it"),
        pytest.param(message(b"hello") + b"P", id="the next one has begun"),
        pytest.param(message(b"hello")[:20], id="a part of the head"),
        pytest.param(message(b"").replace(b"Length: 0", b"Length: +0"), id="a sign"),
        pytest.param(message(b"").replace(b"Length: 0", b"Length: "), id="an empty length"),
        pytest.param(message(b"").replace(b"Length: 0", b"Length: " + b"0" * 10), id="a long length"),
        pytest.param(message(b"x" * 10).replace(b"Length: 10", b"Length: 1_0"), id="a length that Python reads"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_not_one_whole_message_is_not_known_again(data: bytes) -> None:
    assert head().body(data) is None


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
