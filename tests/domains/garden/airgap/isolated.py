"""Pulls images in a network namespace without a route to anywhere, and prints what was pulled and what was tried.

Started by test_isolation.py under `unshare`. The pull goes by the hosts.toml that the rules make, in the order of
containerd: the hosts of the file, then its `server`, else the registry of the image. The kernel counts each packet and
connection for which the namespace has no route.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import orjson
from tests.domains.garden.airgap.test_images import add_image

from hortus.domains.garden.airgap.config import MirrorRegistry, read_config
from hortus.domains.garden.airgap.firewall import containerd_hosts
from hortus.domains.garden.airgap.images import mirrored
from hortus.render.artifacts import ArtifactError, TransferSettings
from hortus.render.oci import OciClient, OciSettings
from hortus.simulation.registry import RegistryFolder, RegistryServer

THERE = "192.0.2.10/team/app:1"
ABSENT = "192.0.2.10/team/other:1"


def attempts() -> int:
    """Packets and connections of this namespace that had no route."""
    names, values = (line.split() for line in Path("/proc/net/snmp").read_text().splitlines() if line.startswith("Ip:"))
    four = int(dict(zip(names, values, strict=True))["OutNoRoutes"])
    lines = Path("/proc/net/snmp6").read_text().splitlines()
    return four + sum(int(line.split()[1]) for line in lines if line.startswith("Ip6OutNoRoutes"))


async def pull(image: str, hosts: str) -> bool:
    """Pull as containerd does with this hosts.toml; returns whether any place had the image."""
    document = tomllib.loads(hosts)
    places = [*document.get("host", ()), document.get("server", f"https://{image.partition('/')[0]}")]
    for place in places:
        found = urlsplit(place)
        names = frozenset({found.netloc, found.hostname or ""})
        transfer = TransferSettings(attempts=1, plain_http=names, local_hosts=names, deny=())
        async with OciClient(settings=OciSettings(transfer=transfer)) as client:
            try:
                await client.manifest(mirrored(image, MirrorRegistry(mirror=place)))
                return True
            except ArtifactError:
                continue
    return False


async def main() -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        async with RegistryServer(RegistryFolder(Path(folder))) as server:
            add_image(server.folder, "team/app", "1", "amd64", "arm64")
            for strict in (True, False):
                written = {"registry": {"mirror": f"http://{server.address}", "strict": strict}}
                hosts = containerd_hosts(read_config(written, "").gap)
                for image in (THERE, ABSENT):
                    before = attempts()
                    pulled = await pull(image, hosts)
                    found[f"{'strict' if strict else 'open'} {image}"] = [pulled, attempts() - before]
    sys.stdout.write(orjson.dumps(found).decode())


if __name__ == "__main__":
    asyncio.run(main())
