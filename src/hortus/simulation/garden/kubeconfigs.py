"""`shoots/adminkubeconfig` and `shoots/viewerkubeconfig`: real, expiring credentials for a workload cluster.

Contract: gardener, docs/usage/shoot/shoot_access.md. A certificate is signed by the client CA of the shoot's own
logical cluster, so the kubeconfig works there, nowhere else, and not a second longer than granted.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, Protocol

import yaml

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.resources.definition import SubresourceHandler, WriteContext
from hortus.kube.clock import Clock
from hortus.kube.errors import (
    ApiError,
    BadRequest,
    InternalError,
    Invalid,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
)
from hortus.kube.objects import Object, format_time
from hortus.simulation.faults import Faults
from hortus.simulation.garden.kinds import technical_id
from hortus.simulation.settings import GardenSettings

GROUP_VERSION = "authentication.gardener.cloud/v1alpha1"
_REQUESTS = frozenset({"AdminKubeconfigRequest", "ViewerKubeconfigRequest"})
_LONGEST = 2**32 - 1
_REACHABLE = ("external", "wildcard-tls-seed-bound", "internal", "unmanaged")
"""Names of advertised addresses that lead to the kube-apiserver, in the order they are put into a kubeconfig."""


class Issued(NamedTuple):
    """A client certificate for one logical cluster, all PEM, and the CA of its API server."""

    certificate: bytes
    key: bytes
    authority: bytes
    expires: float


class Issuer(Protocol):
    """Signs client certificates for workload clusters."""

    async def issue(self, cluster: str, *, username: str, group: str, seconds: int) -> Issued:
        """Raises hortus.kube.errors.NotFound where there is no such logical cluster."""


Allowed = Callable[[UserInfo, str, str, str], Awaitable[bool]]
"""The question: may a user (verb, API group, resource) cluster-wide in the garden?"""


class Kubeconfigs:
    """The two kubeconfig subresources of a garden."""

    def __init__(
        self, issuer: Issuer, allowed: Allowed, faults: Faults, settings: GardenSettings, clock: Clock
    ) -> None:
        self._issuer = issuer
        self._allowed = allowed
        self._faults = faults
        self._settings = settings
        self._clock = clock

    def handlers(self) -> Mapping[str, SubresourceHandler]:
        return {"adminkubeconfig": self._admin, "viewerkubeconfig": self._viewer}

    async def _admin(self, shoot: Object, body: Object, context: WriteContext) -> Object:
        wide = await self._allowed(context.user, "list", "", "secrets")
        group = "gardener.cloud:system:admins" if wide else "gardener.cloud:project:admins"
        return await self._answer("AdminKubeconfigRequest", "admin", group, shoot, body, context)

    async def _viewer(self, shoot: Object, body: Object, context: WriteContext) -> Object:
        wide = await self._allowed(context.user, "list", "core.gardener.cloud", "projects")
        group = "gardener.cloud:system:viewers" if wide else "gardener.cloud:project:viewers"
        return await self._answer("ViewerKubeconfigRequest", "viewer", group, shoot, body, context)

    async def _answer(
        self, kind: str, role: str, group: str, shoot: Object, body: Object, context: WriteContext
    ) -> Object:
        _check_kind(kind, body)
        name = shoot["metadata"]["name"]
        asked, seconds = self._seconds(kind, name, body)
        fault = self._faults.kubeconfig(name)
        _refuse(fault, name)
        addresses = _addresses(kind, shoot)
        cluster = technical_id(context.namespace, name)
        try:
            issued = await self._issuer.issue(
                cluster, username=f"gardener.cloud:{role}:{context.user.username}", group=group, seconds=seconds
            )
        except NotFound:
            raise InternalError(f'could not find client CA of shoot "{name}"') from None
        document = _document(f"{context.namespace}--{name}", addresses, issued)
        return {
            "kind": kind,
            "apiVersion": GROUP_VERSION,
            "metadata": {"name": name, "namespace": context.namespace},
            "spec": {"expirationSeconds": asked},
            "status": {
                "kubeconfig": base64.b64encode(_spoil(fault, document)).decode(),
                "expirationTimestamp": format_time(issued.expires),
            },
        }

    def _seconds(self, kind: str, name: str, body: Object) -> tuple[int, int]:
        """The seconds asked for and those granted, both of the garden's time. Raises Invalid."""
        spec = body.get("spec") or {}
        asked = spec.get("expirationSeconds", self._settings.kubeconfig_default)
        rule = ""
        if not isinstance(asked, int) or isinstance(asked, bool):
            rule = "must be an integer"
        elif asked < self._settings.kubeconfig_minimum:
            rule = f"may not specify a duration shorter than {self._settings.kubeconfig_minimum} seconds"
        elif asked > _LONGEST:
            rule = "may not specify a duration larger than 2^32 seconds"
        if rule:
            raise _invalid(kind, name, "spec.expirationSeconds", f"Invalid value: {asked!r}: {rule}")
        return asked, max(1, round(self._settings.scaled(min(asked, self._settings.kubeconfig_maximum))))


def _check_kind(kind: str, body: Object) -> None:
    """Refuses the request of the other subresource, in the words of Go's decoder. Raises BadRequest."""
    sent, version = body.get("kind") or kind, body.get("apiVersion") or GROUP_VERSION
    if version == GROUP_VERSION and sent in _REQUESTS and sent != kind:
        text = f"converting (v1alpha1.{sent}) to (v1alpha1.{kind}): unknown conversion"
        raise BadRequest(f'{sent} in version "v1alpha1" cannot be handled as a {kind}: {text}')
    if (sent, version) != (kind, GROUP_VERSION):
        raise BadRequest(f'no kind "{sent}" is registered for version "{version}" in a garden: send a {kind}')


def _addresses(kind: str, shoot: Object) -> list[tuple[str, str]]:
    advertised = {a["name"]: a["url"] for a in (shoot.get("status") or {}).get("advertisedAddresses") or ()}
    found = [(name, advertised[name]) for name in _REACHABLE if name in advertised]
    if not found:
        name = shoot["metadata"]["name"]
        raise _invalid(
            kind,
            name,
            "status.advertisedAddresses",
            "Invalid value: []: no kube-apiserver advertised addresses in Shoot .status.advertisedAddresses",
        )
    return found


def _invalid(kind: str, name: str, path: str, message: str) -> Invalid:
    cause = {"reason": "FieldValueInvalid", "message": message, "field": path}
    return Invalid(
        f'{kind}.authentication.gardener.cloud "{name}" is invalid: {path}: {message}',
        details={"name": name, "group": "authentication.gardener.cloud", "kind": kind, "causes": [cause]},
    )


def _document(prefix: str, addresses: list[tuple[str, str]], issued: Issued) -> bytes:
    """One cluster and context an address, all with one user; the first is the current one."""

    def encode(pem: bytes) -> str:
        return base64.b64encode(pem).decode()

    names = [f"{prefix}-{name}" for name, _ in addresses]
    clusters = []
    for full, (name, url) in zip(names, addresses, strict=True):
        cluster = {"server": url}
        if name != "wildcard-tls-seed-bound":
            cluster["certificate-authority-data"] = encode(issued.authority)
        clusters.append({"name": full, "cluster": cluster})
    user = {"client-certificate-data": encode(issued.certificate), "client-key-data": encode(issued.key)}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": names[0],
        "clusters": clusters,
        "contexts": [{"name": full, "context": {"cluster": full, "user": names[0]}} for full in names],
        "users": [{"name": names[0], "user": user}],
    }
    return yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False).encode()


def _refuse(fault: str, name: str) -> None:
    errors: dict[str, ApiError] = {
        "429": TooManyRequests("too many requests, please try again later", retry_after=1),
        "500": InternalError(f'simulated fault for shoot "{name}"'),
        "503": ServiceUnavailable(f'simulated fault for shoot "{name}"'),
    }
    if fault in errors:
        raise errors[fault]


def _spoil(fault: str, document: bytes) -> bytes:
    """The answer of a faulty garden in place of a good kubeconfig."""
    if fault == "garbage":
        return b"<html>not a kubeconfig</html>"
    if fault == "unusable":
        config = yaml.load(document, Loader=yaml.CSafeLoader)
        config["users"][0]["user"] = {"token": "not-a-token-of-this-cluster"}
        return yaml.dump(config, Dumper=yaml.CSafeDumper, sort_keys=False).encode()
    return document
