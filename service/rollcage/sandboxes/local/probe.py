"""
Ask a toolserver over its socket whether it is there.

With a request that needs no signature; nothing is known here of rollouts or
calls, and whether a set-up is done is for the controller to ask.
"""

import asyncio
from pathlib import Path
from typing import Final

_REQUEST: Final = b"GET /readyz HTTP/1.1\r\nHost: toolserver\r\nConnection: close\r\n\r\n"
_LONGEST_LINE: Final = 1 << 12
# One that is starting answers within milliseconds; one that has much to do, later.
_SOON: Final = 0.002
_LATER: Final = 0.25


async def answer(socket: Path) -> int:
    """Return the status that it answers with; waits for as long as it is starting."""
    reader, writer = await asyncio.open_unix_connection(socket, limit=_LONGEST_LINE)
    try:
        writer.write(_REQUEST)
        line = await reader.readline()
        return int(line.split()[1])
    except (IndexError, ValueError) as error:
        raise ConnectionError(f"no answer but {line[:80]!r}") from error
    finally:
        writer.close()


async def answering(socket: Path) -> None:
    """Return once it answers, whatever it says."""
    pause = _SOON
    while True:
        try:
            await answer(socket)
        except OSError:
            # It is ending, which others notice, or has too much to do.
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LATER)
        else:
            return
