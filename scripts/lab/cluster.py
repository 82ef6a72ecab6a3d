"""
The command line of ``scripts/cluster``.
"""

from __future__ import annotations

import argparse
import sys

from lab import engine, images, kind
from lab.engine import HOME
from lab.talk import LabError, complain, say


def main(argv: list[str] | None = None) -> int:
    """Do what the command line says; 0 when it was done."""
    arguments = _parser().parse_args(argv)
    try:
        _do(arguments)
    except LabError as error:
        return complain(error)
    return 0


def _do(arguments: argparse.Namespace) -> None:
    match arguments.command:
        case "up":
            _up(arguments)
        case "down":
            _down([arguments.shape] if arguments.shape else list(kind.SHAPES))
        case "load":
            cluster = kind.Cluster(arguments.shape, _running())
            kind.load(cluster, arguments.image or [images.reference(name) for name in images.OURS])
        case "kubeconfig":
            cluster = kind.Cluster(arguments.shape, _running())
            if not cluster.kubeconfig.exists():
                raise LabError(f"{cluster.name} is not up", f"scripts/cluster up {arguments.shape}")
            print(cluster.kubeconfig)
        case "status":
            _status()


def _up(arguments: argparse.Namespace) -> None:
    cluster = kind.Cluster(arguments.shape, engine.ensure(install=arguments.install))
    try:
        image = kind.choose_image(
            cluster.engine, source=arguments.node_image, gvisor=arguments.gvisor, install=arguments.install
        )
        kind.up(cluster, image=image, gvisor=arguments.gvisor)
    except LabError:
        # Who asked for a cluster and got none should not be left with an engine.
        engine.stop_ours()
        raise
    print(f"export KUBECONFIG={cluster.kubeconfig}")


def _down(shapes: list[str]) -> None:
    found = engine.running()
    if found is None and HOME.exists():
        # A crash may have left containers in our engine's care; only an engine can remove them.
        found = engine.ensure(install=False)
    if found is None:
        say("no Docker engine runs, so there is nothing to take down")
        return
    for shape in shapes:
        kind.down(kind.Cluster(shape, found))
    engine.stop_ours()


def _running() -> engine.Engine:
    found = engine.running()
    if found is None:
        raise LabError("no Docker engine is running", "scripts/cluster up")
    return found


def _status() -> None:
    found = engine.running()
    if found is None:
        print("engine: none")
        return
    print(f"engine: {found.host or 'the default one'}")
    for shape in kind.SHAPES:
        cluster = kind.Cluster(shape, found)
        if not cluster.nodes():
            print(f"{shape}: down")
            continue
        facts = {node["metadata"]["name"]: kind.is_ready(node) for node in cluster.node_facts()}
        print(f"{shape}: up, KUBECONFIG={cluster.kubeconfig}")
        for node in cluster.nodes():
            print(f"  {node}: {'Ready' if facts.get(node) else 'NotReady'}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/cluster", description="A local Kubernetes with kind.")
    commands = parser.add_subparsers(dest="command", required=True)

    up = commands.add_parser("up", help="make the cluster unless it is there and well")
    _add_shape(up)
    up.add_argument("--install", action="store_true", help="install missing system packages (Debian, root)")
    up.add_argument("--gvisor", action="store_true", help="with gVisor as the RuntimeClass gvisor")
    up.add_argument("--node-image", choices=("auto", "published", "built"), default="auto")

    down = commands.add_parser("down", help="remove it, and the engine if we started that")
    down.add_argument("shape", nargs="?", choices=kind.SHAPES, help="which cluster (default: all of ours)")

    commands.add_parser("status", help="say what is up")

    load = commands.add_parser("load", help="put images onto the nodes")
    _add_shape(load)
    load.add_argument("--image", action="append", help="an image (default: all of the project's)")

    kubeconfig = commands.add_parser("kubeconfig", help="print the path of the credentials")
    _add_shape(kubeconfig)
    return parser


def _add_shape(command: argparse.ArgumentParser) -> None:
    command.add_argument("shape", nargs="?", choices=kind.SHAPES, default="one-node", help="default: one-node")


if __name__ == "__main__":
    sys.exit(main())
