"""A control plane of original kube-apiservers moves with its keys, under load."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.domains.garden.migration.keyed import assert_kept, make_keyed, stored_secret
from tests.domains.garden.migration.load import assert_nothing_was_lost, running_load
from tests.domains.garden.migration.originals import OriginalServer
from tests.domains.garden.migration.world import real_plane
from tests.oracles.controlplane import find_assets, why_none

pytestmark = [
    pytest.mark.skipif(find_assets() is None, reason=why_none()),
    pytest.mark.soak,
    pytest.mark.real_apiserver,
]


async def test_original_api_servers_move_under_load_with_their_keys_and_without_a_failed_request(
    tmp_path: Path,
) -> None:
    async with real_plane(tmp_path, kind=OriginalServer) as plane, plane.observed() as observer:
        record = await plane.record()
        keyed = await make_keyed(plane)
        lease = await plane.controllers.elected()
        at_rest = await stored_secret(plane.source.members[0].client_url)
        assert at_rest.startswith(b"k8s:enc:secretbox:v1:first:")
        async with running_load(plane.router.port, plane.token, plane.tls()) as clients:
            await plane.walk(record)
        load = clients.load
        await assert_kept(plane, keyed)
        seen = await plane.observe()
        after = await plane.controllers.elected()
        assert await stored_secret(plane.destination.members[0].client_url) == at_rest
    assert load.failed == []
    assert_nothing_was_lost(load)
    assert observer.broken == []
    assert observer.cluster_ids == {record.cluster_id}
    assert (seen.source.keys, seen.destination.keys) == ({}, record.keys)
    plane.controllers.assert_handed_over(lease, after)
    seconds = plane.timeline[-1][0] - plane.timeline[0][0]
    print(
        f"{load.requests} requests, {load.turned_away} turned away, {load.summary}, {load.resumed} watches resumed, "
        f"walk {seconds:.1f} s, "
        f"{observer.looks} looks, {plane.controllers.gap:.2f} s without a leader"
    )
