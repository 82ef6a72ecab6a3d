"""
Keep count of the sandboxes that were told of, so that none vanishes without a word.

Pure: an update goes in, the changes that follow from it come out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rollcage.core.endings import EndCause, Ending
from rollcage.sandboxes.kubernetes.reading import sandbox_of
from rollcage.sandboxes.kubernetes.watching import Listed, Removed
from rollcage.sandboxes.source import Change, Gone, Sandbox, Seen, Synced

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rollcage.sandboxes.kubernetes.watching import Update


class Ledger:
    """The sandboxes of one observer, by name."""

    def __init__(self) -> None:
        self._known: dict[str, Sandbox] = {}

    def changes(self, update: Update) -> Iterator[Change]:
        """Tell what an update means to somebody who has heard everything so far."""
        if isinstance(update, Listed):
            listed = [sandbox_of(pod) for pod in update.objects]
            for sandbox in listed:
                yield from self._present(sandbox)
            for name in self._known.keys() - {sandbox.name for sandbox in listed}:
                yield Gone(self._known.pop(name))
            yield Synced()
        elif isinstance(update, Removed):
            last = self._continued(sandbox_of(update.object))
            self._known.pop(last.name, None)
            yield Gone(last)
        else:
            yield from self._present(sandbox_of(update.object))

    def _present(self, sandbox: Sandbox) -> Iterator[Change]:
        before = self._known.get(sandbox.name)
        if before is not None and before.uid != sandbox.uid:
            yield Gone(before)
        sandbox = self._continued(sandbox)
        self._known[sandbox.name] = sandbox
        yield Seen(sandbox)

    def _continued(self, sandbox: Sandbox) -> Sandbox:
        """Return a sandbox with the ending that it had already: who was dead was not killed by being removed."""
        before = self._known.get(sandbox.name)
        if before is None or before.uid != sandbox.uid or before.ending is None:
            return sandbox
        if _tells_more(sandbox.ending, before.ending):
            return sandbox
        return replace(sandbox, phase=before.phase, ending=before.ending, address=None)


def _tells_more(ending: Ending | None, before: Ending) -> bool:
    if ending is None:
        return False
    if before.exit_code is None:
        return True
    return ending.cause not in {before.cause, EndCause.DELETED}
