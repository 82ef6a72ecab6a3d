"""
Put a kind node image together from parts that we build ourselves.

Needed where kind's published image cannot be pulled, or not be run for want of
a privileged container. What goes where in the node is said here; what each
part is built from, in ``parts``; the rest is ``images/kind-node/Dockerfile``.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lab import debian, packages, parts
from lab.archive import write_image
from lab.builder import Builder
from lab.parts import KUBERNETES_VERSION
from lab.places import NODE, cache, fingerprint, scratch
from lab.talk import LabError, run, say, step, succeeds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lab.engine import Engine

BINARIES = {
    "kubelet": "usr/bin",
    "kubeadm": "usr/bin",
    "kubectl": "usr/bin",
    "containerd": "usr/local/bin",
    "containerd-shim-runc-v2": "usr/local/bin",
    "ctr": "usr/local/bin",
    "runc": "usr/local/sbin",
    "host-local": "opt/cni/bin",
    "loopback": "opt/cni/bin",
    "node-network": "opt/cni/bin",
    "portmap": "opt/cni/bin",
    "ptp": "opt/cni/bin",
}
GVISOR_BINARIES = {"runsc": "usr/local/bin", "containerd-shim-runsc-v1": "usr/local/bin"}
NODE_NETWORK_IMAGE = "rollcage.local/node-network:1"
IMPORT_SECONDS = 30


def ensure(engine: Engine, *, gvisor: bool, install: bool) -> str:
    """Return the name of the node image, built if the engine has none."""
    packages.need(*packages.BUILD_NODE, install=install)
    wanted = (*parts.NODE_PARTS, *([parts.GVISOR] if gvisor else []))
    built = []
    for number, part in enumerate(wanted, 1):
        say(f"part {number} of {len(wanted)}: {part.name}")
        built.append(parts.build(part))
    built.append(parts.pause())
    # Only what ends up in the image: its parts by their keys, its files, and this recipe.
    key = fingerprint(
        *(path.name for path in built),
        files=[*(NODE / name for name in ("Dockerfile", "packages.txt", "files", "gvisor")), Path(__file__)],
    )
    name = f"rollcage/kind-node:{KUBERNETES_VERSION}-{key}"
    if not engine.has_image(name):
        with step(f"assembling {name}"):
            _assemble(engine, name, built, gvisor=gvisor, install=install)
    return name


def _assemble(engine: Engine, name: str, built: list[Path], *, gvisor: bool, install: bool) -> None:
    bins = {program.name: program for path in built for program in path.iterdir()}
    include = debian.packages_in(NODE / "packages.txt")
    with scratch() as context:
        shutil.copy(NODE / "Dockerfile", context)
        shutil.copytree(parts.module_files("kind", "sigs.k8s.io/kind") / "images/base/files", context / "kind")
        run(["chmod", "-R", "u+w", context / "kind"])  # the module cache is read-only
        shutil.copytree(NODE / "files", context / "files")
        if gvisor:
            shutil.copytree(NODE / "gvisor", context / "files", dirs_exist_ok=True)
        for program, directory in (BINARIES | (GVISOR_BINARIES if gvisor else {})).items():
            _place(bins[program], context / "programs" / directory)
        (context / "files" / "kind" / "version").write_text(KUBERNETES_VERSION)
        tarball = debian.root_tarball(include, install=install)
        _fill_store(
            context / "containerd",
            bins,
            _component_images(bins, tarball, context / "images", context / "kind"),
        )
        shutil.rmtree(context / "images")
        make = Builder("docker", engine.env)
        base = debian.made_image(make, include, install=install)
        make.build(context, tag=name, args={"BASE": base}, network=False)


def _component_images(bins: dict[str, Path], debian_root: Path, target: Path, kind_files: Path) -> list[Path]:
    """Write one archive for each image that the control plane and every pod need."""
    target.mkdir()
    listed = run([bins["kubeadm"], "config", "images", "list", f"--kubernetes-version={KUBERNETES_VERSION}"])
    tags = {name.rsplit("/", 1)[1].split(":")[0]: [name] for name in listed.split()}
    tags["node-network"] = [NODE_NETWORK_IMAGE]
    # containerd's configuration may name another pause than kubeadm does.
    config = (kind_files / "etc/containerd/config.toml").read_text()
    tags["pause"] += re.findall(r'sandbox_image = "(.*)"', config)
    archives = []
    for program, names in tags.items():
        root = target / program
        _place(bins[program], root / "usr/local/bin")
        (root / "etc").mkdir()
        (root / "etc/passwd").write_text("root:x:0:0::/:/sbin/nologin\nnobody:x:65534:65534::/:/sbin/nologin\n")
        (root / "tmp").mkdir(mode=0o1777)
        if program == "kube-proxy":
            _add_nft(root, debian_root)
        archive = target / f"{program}.tar"
        write_image(
            archive,
            tags=sorted(set(names)),
            root=root,
            config={
                "Entrypoint": [f"/usr/local/bin/{program}"],
                "Env": ["PATH=/usr/local/bin:/usr/sbin:/usr/bin"],
            },
        )
        archives.append(archive)
    return archives


def _add_nft(root: Path, debian_root: Path) -> None:
    """Give kube-proxy the program it drives, with the libraries that it is linked to."""
    with scratch() as tmp:
        debian.unpack(debian_root, tmp)
        linked = run(["chroot", tmp, "ldd", "/usr/sbin/nft"])
        for path in ("/usr/sbin/nft", *re.findall(r"(/\S+) \(0x", linked)):
            destination = root / path.lstrip("/")
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tmp / path.lstrip("/"), destination)


def _fill_store(store: Path, bins: dict[str, Path], archives: list[Path]) -> None:
    """Import the images into a containerd store that the node will start with."""
    with _containerd(store, bins["containerd"], bins["ctr"]) as ctr:
        for archive in archives:
            run(
                [
                    *ctr,
                    "images",
                    "import",
                    "--local",
                    "--label=io.cri-containerd.pinned=pinned",
                    "--discard-unpacked-layers",
                    archive,
                ]
            )
    shutil.rmtree(store / "tmpmounts", ignore_errors=True)


@contextmanager
def _containerd(store: Path, containerd: Path, ctr: Path) -> Iterator[list[str | Path]]:
    """Run a containerd of our own over *store* and yield the client's command line."""
    with scratch() as state:
        socket = state / "c.sock"
        config = state / "config.toml"
        config.write_text(
            f'version = 2\nroot = "{store}"\nstate = "{state}"\n'
            'disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.nri.v1.nri"]\n'
            f'[grpc]\naddress = "{socket}"\n'
        )
        log = cache("logs") / "import-containerd.log"
        with log.open("w") as sink:
            process = subprocess.Popen([containerd, "--config", config], stdout=sink, stderr=sink)
        client: list[str | Path] = [ctr, "--address", socket, "--namespace", "k8s.io"]
        try:
            deadline = time.monotonic() + IMPORT_SECONDS
            while not succeeds([*client, "version"]):
                if time.monotonic() > deadline or process.poll() is not None:
                    raise LabError(f"containerd did not start; see {log}")
                time.sleep(0.2)
            yield client
        finally:
            process.terminate()
            process.wait()


def _place(program: Path, directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    shutil.copy(program, directory)
