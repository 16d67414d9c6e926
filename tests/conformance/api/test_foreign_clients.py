"""Clients that others wrote, unchanged: the official Python client, lightkube, kr8s."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.api.conftest import Server

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def _left_connections() -> Iterator[None]:
    """These clients leave connections to the collector; it runs here, where that is known."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def kubeconfig(server: Server) -> Path:
    return server.kubeconfig


def test_the_official_client_writes_lists_watches_and_deletes(kubeconfig: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kubernetes import client, config, watch

    with config.new_client_from_config(str(kubeconfig)) as api:
        core = client.CoreV1Api(api)
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="official", labels={"l": "x"}), data={"a": "b"})
        made = core.create_namespaced_config_map("default", body)
        assert made.metadata.creation_timestamp is not None
        listed = core.list_namespaced_config_map("default", label_selector="l=x")
        assert [item.metadata.name for item in listed.items] == ["official"]
        patched = core.patch_namespaced_config_map("official", "default", {"data": {"c": "d"}})
        assert patched.data == {"a": "b", "c": "d"}
        stream = watch.Watch().stream(core.list_namespaced_config_map, "default", label_selector="l=x")
        first = next(stream)
        core.delete_namespaced_config_map("official", "default")
        last = next(stream)
        assert [event["type"] for event in (first, last)] == ["ADDED", "DELETED"]
        assert {event["object"].metadata.name for event in (first, last)} == {"official"}
        stream.close()
        with pytest.raises(client.ApiException) as missing:
            core.read_namespaced_config_map("official", "default")
        assert missing.value.status == 404
        pod = client.V1Pod(
            metadata=client.V1ObjectMeta(name="p"),
            spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="i")]),
        )
        assert core.create_namespaced_pod("default", pod).spec.restart_policy == "Always"
        core.create_namespaced_service_account("default", client.V1ServiceAccount(metadata={"name": "official"}))
        token = core.create_namespaced_service_account_token(
            "official", "default", client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[]))
        )
        assert token.status.token.count(".") == 2


def test_lightkube_applies_and_waits(kubeconfig: Path) -> None:
    from lightkube import ApiError, Client, KubeConfig
    from lightkube.models.meta_v1 import ObjectMeta
    from lightkube.resources.core_v1 import ConfigMap

    client = Client(config=KubeConfig.from_file(str(kubeconfig)), field_manager="lightkube")
    applied = client.apply(ConfigMap(metadata=ObjectMeta(name="light", namespace="default"), data={"a": "b"}))
    assert applied.metadata is not None
    again = client.apply(ConfigMap(metadata=ObjectMeta(name="light", namespace="default"), data={"a": "b"}))
    assert again.metadata is not None and again.metadata.resourceVersion == applied.metadata.resourceVersion
    with pytest.raises(ApiError) as conflict:
        client.apply(
            ConfigMap(metadata=ObjectMeta(name="light", namespace="default"), data={"a": "c"}), field_manager="other"
        )
    assert conflict.value.status.code == 409
    found: list[Any] = [item.metadata.name for item in client.list(ConfigMap, namespace="default") if item.metadata]
    assert "light" in found
    client.delete(ConfigMap, "light", namespace="default")


async def test_kr8s_finds_its_way_by_discovery(kubeconfig: Path) -> None:
    import kr8s.asyncio
    from kr8s.asyncio.objects import ConfigMap

    api = await kr8s.asyncio.api(kubeconfig=str(kubeconfig))
    made = await ConfigMap({"metadata": {"name": "k", "namespace": "default"}, "data": {"a": "b"}}, api=api)
    await made.create()
    await made.patch({"data": {"c": "d"}})
    found = [each async for each in api.get("configmaps", namespace="default")]
    assert [each.name for each in found if each.name == "k"] == ["k"]
    assert made.data == {"a": "b", "c": "d"}
    await made.delete()
    # kr8s keeps its clients for the life of the process, and its connections with them.
    session = api._session
    assert session is not None
    await session.aclose()
    await asyncio.sleep(0)
