"""The migration that Gardener ships, by its own phases and with the same processes: the seconds without an API.

Its operation Migrate stops the API servers before etcd is backed up, and Restore starts them from the backup. Real
gardens add the upload of the backup, the start of pods and the lifetime of DNS records.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from tests.apiserver.store.etcdserver import find_etcd
from tests.domains.garden.migration.load import running_load
from tests.domains.garden.migration.world import RealPlane, real_plane
from tests.waiting import until

from hortus.gardener.livemigration import Backends, ServerState

pytestmark = [
    pytest.mark.skipif(find_etcd() is None, reason="there is no etcd here"),
    pytest.mark.soak,
]
ENOUGH = 50
"""Requests that show an API that answers."""


async def _migrated(plane: RealPlane) -> dict[str, float]:
    """The phases that an API is missed in, with the time at which each was over."""
    began, ends = time.monotonic(), {}

    def over(phase: str) -> None:
        ends[phase] = round(time.monotonic() - began, 2)

    await plane.source.stop_servers()
    over("Deleting Kubernetes API server")
    source, target = plane.source.members[0], plane.destination.members[0]
    for one in plane.source.members:
        one.kill()
    shutil.copytree(source.folder, target.folder)
    over("Creating backup of main etcd, destroying etcd")
    target.start(f"{target.name}={target.outside_url}", state="existing", more=("--force-new-cluster",))
    await until(plane.has_leader)
    over("Deploying main and events etcd")
    plane.destination.copy_keys(plane.source)
    plane.destination.start_servers()
    await until(lambda: plane.destination.state == ServerState.READY)
    over("Deploying Kubernetes API server")
    await plane.router.route([one.port for one in plane.destination.servers], [])
    plane.backends = Backends.DESTINATION
    over("Deploying external domain DNS record")
    return ends


async def test_the_migration_with_downtime_keeps_all_data_and_misses_an_api_for_seconds(tmp_path: Path) -> None:
    async with real_plane(tmp_path) as plane:
        load = running_load(plane.router.port, plane.token, plane.tls(), watchers=0)
        async with load as clients:
            await until(lambda: clients.load.requests > ENOUGH)
            ends = await _migrated(plane)
            before = clients.load.requests
            await until(lambda: clients.load.requests > before + ENOUGH)
    found = clients.load
    print(f"{ends}, no answer for {found.gap:.1f} s, {len(found.failed)} of {found.requests} requests failed")
    assert found.failed
    assert found.gap > 1
    for one in found.final["items"]:
        name = one["metadata"]["name"]
        if name in found.written:
            assert int(one["data"]["value"]) >= found.written[name][-1]
