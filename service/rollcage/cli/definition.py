"""
Bring the Environment resource definition of a cluster up to date, or take it away.

Helm installs a definition once and leaves it alone from then on, so the chart
runs this: ``python -m rollcage.cli.definition apply FILE`` or ``remove NAME``.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from rollcage.core.errors import RollcageError
from rollcage.sandboxes.kubernetes.api import connected
from rollcage.sandboxes.kubernetes.refusals import Conflict, NotThere

if TYPE_CHECKING:
    from rollcage.sandboxes.kubernetes.api import Api

_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
# Others write to it as well: the API server itself notes there what it has accepted.
_TRIES: Final = 5


async def apply(api: Api, definition: dict[str, Any]) -> None:
    """
    Replace the definition by this one.

    As a whole: a patch, even an apply, would leave those fields in place that
    Helm wrote at first and that are no longer there.
    """
    path = f"{_DEFINITIONS}/{definition['metadata']['name']}"
    for tries_left in reversed(range(_TRIES)):
        found = await api.request("GET", path)
        metadata = {**definition["metadata"], "resourceVersion": found["metadata"]["resourceVersion"]}
        try:
            await api.request("PUT", path, body={**definition, "metadata": metadata})
        except Conflict:
            if not tries_left:
                raise
        else:
            return


async def remove(api: Api, name: str) -> None:
    """Take the definition away, and with it every environment of the cluster."""
    try:
        await api.request("DELETE", f"{_DEFINITIONS}/{name}")
    except NotThere:
        return


async def _do(task: str, what: str) -> None:
    async with connected() as api:
        if task == "apply":
            await apply(api, yaml.safe_load(await asyncio.to_thread(Path(what).read_text)))
        else:
            await remove(api, what)


def main(arguments: list[str]) -> None:
    """Do the task that is named."""
    match arguments:
        case ["apply" | "remove" as task, what]:
            try:
                asyncio.run(_do(task, what))
            except RollcageError as error:
                sys.exit(f"{error.code}: {error}")
        case _:
            sys.exit("usage: python -m rollcage.cli.definition apply FILE | remove NAME")


if __name__ == "__main__":
    main(sys.argv[1:])
