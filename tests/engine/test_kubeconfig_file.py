"""A kubeconfig file that changes under a running client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hortus.engine.files import KubeconfigFile
from hortus.kube import Client, Resource, errors, yaml
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer, running_apiserver

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    async with running_apiserver(clusters=["other"]) as server:
        yield server


class Followed:
    def __init__(self, path: Path, document: Object) -> None:
        self.path = path
        self.write(document)
        self.client = Client.from_kubeconfig(path)
        self.moves = 0
        self.file = KubeconfigFile(self.client, path, moved=self._moved)

    def _moved(self) -> None:
        self.moves += 1

    def write(self, document: Object) -> None:
        self.path.write_text(yaml.dump(document))

    def becomes(self, document: Object) -> list[str]:
        self.write(document)
        with capture_logs() as logs:
            self.file.reload()
        return [line["event"] for line in logs]

    async def answers(self) -> bool:
        return bool((await self.client.list(NAMESPACES)).items)


async def test_a_new_credential_is_used_from_the_next_call_on(server: TestServer, tmp_path: Path) -> None:
    good, bad = server.token_kubeconfig_dict(), server.token_kubeconfig_dict()
    bad["users"][0]["user"] = {"token": "expired"}
    followed = Followed(tmp_path / "kubeconfig", bad)
    async with followed.client:
        with pytest.raises(errors.Unauthorized):
            await followed.answers()
        assert followed.becomes(good) == ["took the new kubeconfig"]
        assert await followed.answers()
        # From a token to a certificate: another pool of connections.
        assert followed.becomes(server.kubeconfig_dict()) == ["took the new kubeconfig"]
        assert await followed.answers()
        followed.becomes(bad)
        with pytest.raises(errors.Unauthorized):
            await followed.answers()
    assert followed.moves == 0


async def test_a_file_that_cannot_be_used_leaves_the_client_as_it_was(server: TestServer, tmp_path: Path) -> None:
    good, broken = server.token_kubeconfig_dict(), server.token_kubeconfig_dict()
    broken["current-context"] = "nowhere"
    followed = Followed(tmp_path / "kubeconfig", good)
    async with followed.client:
        assert followed.becomes(broken) == ["the kubeconfig cannot be used, keeping the one before"]
        assert await followed.answers()


async def test_another_server_asks_for_another_start(server: TestServer, tmp_path: Path) -> None:
    followed = Followed(tmp_path / "kubeconfig", server.token_kubeconfig_dict())
    async with followed.client:
        assert followed.becomes(server.token_kubeconfig_dict("other")) == ["the kubeconfig names another server now"]
        assert followed.moves == 1
        assert followed.client.access.server == server.url
