"""The administrators and login providers of a cluster, which are known only inside it.

Read by an admin kubeconfig that the garden grants for ten minutes; nothing is written. What is found becomes part of
the Runtime, for else its controllers would take away what it does not list.
"""

from __future__ import annotations

import base64
from typing import Any, Final

import msgspec

from hortus.domains.clusters.adoption.identity import Inside
from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.inside import administrators as bindings
from hortus.domains.clusters.inside import oidc
from hortus.domains.clusters.reading import free_spec
from hortus.domains.clusters.shoot import LiveShoot
from hortus.domains.clusters.types import MANAGER, Label
from hortus.kube import Client, ConnectionSettings
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.kubeconfig import Trust, from_untrusted
from hortus.kube.objects import Object, key_of, shaped

SECONDS: Final = 600
"""The life of the kubeconfig: the least that Gardener grants."""
_REQUEST: Final = {
    "apiVersion": "authentication.gardener.cloud/v1alpha1",
    "kind": "AdminKubeconfigRequest",
    "spec": {"expirationSeconds": SECONDS},
}
_SETTINGS: Final = ConnectionSettings(connections=2, timeout=10.0, connect_timeout=5.0, user_agent="hortus-cli")


class _GrantStatus(msgspec.Struct, frozen=True):
    kubeconfig: str = ""


class _Grant(msgspec.Struct, frozen=True):
    status: _GrantStatus = _GrantStatus()


class _Jwks(msgspec.Struct, frozen=True):
    keys: Any = None


class _Provider(msgspec.Struct, frozen=True):
    jwks: _Jwks | None = None


async def look_inside(garden: Client, shoot: LiveShoot) -> Inside:
    """The administrators and login providers of a shoot's cluster; with the reason where they cannot be read."""
    metadata = shoot.metadata
    try:
        answer = await garden.create_subresource(
            SHOOTS, metadata.name, "adminkubeconfig", dict(_REQUEST), metadata.namespace
        )
        granted = shaped(answer, _Grant) or _Grant()
        document = base64.b64decode(granted.status.kubeconfig or "", validate=True)
        access = from_untrusted(document, trust=Trust()).access()
        async with Client(access, settings=_SETTINGS) as cluster:
            return Inside(await _administrators(cluster), await _providers(cluster))
    except (KubeError, ValueError) as error:
        return Inside(unseen=f"the cluster cannot be looked into: {error}")


async def _administrators(cluster: Client) -> tuple[str, ...]:
    found = (await cluster.list(bindings.BINDINGS, labels=f"{bindings.LABEL}={MANAGER}")).items
    return tuple(dict.fromkeys(name for binding in found for name in _users(binding)))


def _users(binding: Object) -> list[str]:
    return [subject.name for subject in bindings.granted(binding) if subject.kind == "User"]


async def _providers(cluster: Client) -> tuple[Object, ...]:
    try:
        found = (await cluster.list(oidc.PROVIDERS, labels=f"{Label.MANAGED_BY}={MANAGER}")).items
    except NotFound:
        return ()
    specs = (free_spec(one) for one in sorted(found, key=_place))
    return tuple(_provider(spec) for spec in specs if isinstance(spec, dict))


def _place(provider: Object) -> tuple[int, str]:
    """Sort key by number: kyma-oidc-10 comes after kyma-oidc-9."""
    name = key_of(provider).name
    return len(name), name


def _provider(spec: Object) -> Object:
    """An OpenIDConnect with the field names of a Runtime."""
    made = {here: spec[there] for here, there in oidc.FIELDS.items() if spec.get(there) not in (None, {}, [])}
    found = shaped(spec, _Provider)
    keys = found.jwks.keys if found is not None and found.jwks is not None else None
    return {**made, "jwks": keys} if keys else made
