"""The console is part of every gateway that is put together, at the address that is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.request import urlopen

if TYPE_CHECKING:
    from support.dev_process import Dev


def test_the_console_is_where_it_says(shared: Dev) -> None:
    address = next(line.split()[-1] for line in shared.says().splitlines() if line.split()[:1] == ["console"])
    with urlopen(address, timeout=60) as page:  # noqa: S310 - an address of this machine
        assert page.headers["content-type"].startswith("text/html")
        assert "connect-src 'self'" in page.headers["content-security-policy"]
        assert b"<title>Rollcage</title>" in page.read()
