"""A token and a Secret from before a migration, which depend on the keys of a control plane."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import NamedTuple

import aiohttp
from tests.domains.garden.migration.world import RealPlane
from tests.waiting import until

from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Resource

ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_SECRETS = Resource("", "v1", "secrets", "Secret")
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_SELF = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)
_DATA = {"word": b64encode(b"kept").decode()}


class Keyed(NamedTuple):
    """The token of a ServiceAccount, and a Secret with the version that it had."""

    token: str
    version: str


async def make_keyed(plane: RealPlane) -> Keyed:
    """Make both by the API."""
    async with Client(plane.access()) as client:
        await until(lambda: _is_there(client))
        metadata = {"name": "mover", "namespace": "default"}
        await client.create(ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = await client.create_subresource(ACCOUNTS, "mover", "token", asked, "default")
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": _DATA}
        made = await client.create(_SECRETS, secret)
    return Keyed(answer["status"]["token"], made["metadata"]["resourceVersion"])


async def assert_kept(plane: RealPlane, keyed: Keyed) -> None:
    """The token is still good, and the Secret is as it was."""
    async with Client(plane.access(keyed.token)) as account, Client(plane.access()) as client:
        review = {"apiVersion": _SELF.api_version, "kind": _SELF.kind}
        found = await account.create(_SELF, review)
        assert found["status"]["userInfo"]["username"] == "system:serviceaccount:default:mover"
        secret = await client.get(_SECRETS, "mover", "default")
    assert (secret["data"], secret["metadata"]["resourceVersion"]) == (_DATA, keyed.version)


async def stored_secret(url: str) -> bytes:
    """The Secret as the member of etcd at this URL has it."""
    body = {"key": b64encode(b"/registry/secrets/default/mover").decode()}
    async with aiohttp.ClientSession() as session, session.post(f"{url}/v3/kv/range", json=body) as answer:
        return b64decode((await answer.json(content_type=None))["kvs"][0]["value"])


async def _is_there(client: Client) -> bool:
    try:
        return bool(await client.get(_NAMESPACES, "default"))
    except NotFound:
        return False
