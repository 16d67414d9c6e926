"""The registry of a process: its Secret in the control plane, its cache on disk."""

from __future__ import annotations

import base64
from pathlib import Path

import orjson
import pytest
from structlog.testing import capture_logs

from hortus.domains.modules.registry.composition import SecretAccess, open_registry
from hortus.domains.modules.settings import RegistrySettings
from hortus.engine import Actor, Manager, StepError
from hortus.engine.flags import FlagError
from hortus.engine.remote import SECRETS
from hortus.kube import Client
from hortus.testing.apiserver import TestServer

NAMESPACE = "default"


def settings(**changed: object) -> RegistrySettings:
    known: dict[str, object] = {"host": "", "credentials": "registry", "path": "prod", "hosts": frozenset()}
    return RegistrySettings(**known | {"revalidation": 300.0, "cache_folder": ""} | changed)  # type: ignore[arg-type]


async def test_the_secret_of_the_control_plane_names_the_registry(server: TestServer) -> None:
    """Contract 2.2.2 and 5.1: oci-registry-cred-secret."""
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        access = SecretAccess(client, NAMESPACE, settings())
        with pytest.raises(StepError, match="Secret default/registry of --oci-registry-cred-secret does not exist"):
            await access.read()
        auth = base64.b64encode(b"robot:right").decode()
        document = orjson.dumps({"auths": {"example.com": {"auth": auth}}})
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "registry", "namespace": NAMESPACE},
            "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": base64.b64encode(document).decode()},
        }
        await client.create(SECRETS, secret)
        found = await access.read()
        assert found.repository == "example.com/prod" and found.docker_config == document
        await client.delete(SECRETS, "registry", NAMESPACE)
        await client.create(SECRETS, secret | {"type": "Opaque", "data": {"config.json": ""}})
        with pytest.raises(StepError, match=r"has no \.dockerconfigjson") as caught:
            await access.read()
        assert caught.value.actor is Actor.OPERATOR


async def test_a_cache_that_cannot_be_used_is_left_out(server: TestServer, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        manager = Manager(client)
        chosen = settings(host="http://localhost:5000", credentials="", cache_folder=str(tmp_path))
        with capture_logs() as logs:
            registry = open_registry(manager, chosen, client=client, namespace=NAMESPACE)
        await registry.close()
    assert [(log["event"], log["folder"]) for log in logs] == [
        ("layers of modules are not kept on disk", str(tmp_path))
    ]


async def test_an_address_that_names_no_registry_is_a_wrong_flag(server: TestServer) -> None:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        manager = Manager(client)
        chosen = settings(host="modules", credentials="")
        with pytest.raises(FlagError, match="flags --oci-registry-host and --modules-repository-subpath: "):
            open_registry(manager, chosen, client=client, namespace=NAMESPACE)
