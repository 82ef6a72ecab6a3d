"""Read rollouts page by page, as one of their indexes lists them."""

from typing import Final

from rollcage.store.link import Link, Value
from rollcage.store.records import RECORD, Page, Rollout

_FIELDS: Final = " ".join(RECORD)


async def page(link: Link, index: str, **which: Value) -> Page[Rollout]:
    """Return *which* rollouts of an index the script is asked for."""
    cursor, records = await link.run("page", index=index, fields=_FIELDS, **which)
    return Page(tuple(Rollout.read(key, found) for key, found in records), cursor.decode() or None)
