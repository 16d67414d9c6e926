"""The kubeconfig of a gardenlet: the author of a Gardenlet names its Secret, and has no other deleted by that."""

from __future__ import annotations

from hortus.domains.garden.gardenlets.reading import SECRETS, delete_kubeconfig, secret_of
from hortus.kube import Client
from hortus.testing.apiserver import TestServer


async def test_a_secret_that_holds_more_than_a_kubeconfig_stays(server: TestServer) -> None:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        for name, data in (("theirs", {"kubeconfig": "YQ==", "token": "YQ=="}), ("ours", {"kubeconfig": "YQ=="})):
            await client.create(SECRETS, {"metadata": {"name": name, "namespace": "default"}, "data": data})
            await delete_kubeconfig(client, "default", name)
        await delete_kubeconfig(client, "default", "missing")
        assert await secret_of(client, "default", "theirs") is not None
        assert await secret_of(client, "default", "ours") is None
