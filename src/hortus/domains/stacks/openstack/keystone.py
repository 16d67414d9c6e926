"""Keystone v3: a token, and the address of the image service out of its catalog.

Documents: https://docs.openstack.org/api-ref/identity/v3/ (Authentication and token management).
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from yarl import URL

from hortus.domains.stacks.openstack.clouds import AuthMethod, CloudAccess, KeystoneDomain
from hortus.domains.stacks.openstack.errors import BadReply, NoImageService
from hortus.domains.stacks.openstack.transport import CloudTransport
from hortus.kube import Secret
from hortus.kube.objects import parse_time
from hortus.kube.shapes import decode_json

_TYPES: Final = ("image",)


class _Endpoint(msgspec.Struct):
    interface: str
    url: str
    region: str | None = None
    region_id: str | None = None


class _Service(msgspec.Struct):
    type: str
    endpoints: list[_Endpoint] = []


class _Token(msgspec.Struct):
    expires_at: str = ""
    catalog: list[_Service] = []


class _Document(msgspec.Struct):
    token: _Token


class CloudToken(msgspec.Struct, frozen=True):
    """A token, the time of its end in seconds since the epoch, and the image service that it is for."""

    secret: Secret
    ends: float
    image: URL


async def authenticate(transport: CloudTransport, access: CloudAccess) -> CloudToken:
    """Get a token. Raises OpenStackError."""
    path = access.auth_url.path.rstrip("/")
    base = access.auth_url if path.endswith("/v3") else access.auth_url / "v3"
    body = msgspec.json.encode(auth_request(access))
    answer = await transport.call("POST", base / "auth" / "tokens", body=body, what="a token")
    place = access.auth_url.host
    given = answer.headers
    token = given.get("X-Subject-Token")
    if not token:
        raise BadReply(f"{place}: the answer has no X-Subject-Token; check that auth_url is that of Keystone v3")
    try:
        found = decode_json(answer.body, _Document).token
    except msgspec.DecodeError:
        raise BadReply(f"{place}: the token cannot be read; check that auth_url is that of Keystone v3") from None
    return CloudToken(Secret(token), _ends(found), _image_service(found, access))


def auth_request(access: CloudAccess) -> dict[str, Any]:
    """The body of the request for a token."""
    method = access.method.value
    if access.method is AuthMethod.TOKEN:
        identity: dict[str, Any] = {"id": access.secret.reveal()}
    elif access.method is AuthMethod.APPLICATION:
        identity = {"secret": access.secret.reveal()}
        if access.application_id:
            identity["id"] = access.application_id
        else:
            identity |= {"name": access.application_name, "user": _user(access)}
    else:
        identity = {"user": _user(access) | {"password": access.secret.reveal()}}
    auth: dict[str, Any] = {"identity": {"methods": [method], method: identity}}
    # An application credential has the scope that it was made with.
    if access.method is not AuthMethod.APPLICATION and (access.project_id or access.project_name):
        auth["scope"] = {"project": _project(access)}
    return {"auth": auth}


def _user(access: CloudAccess) -> dict[str, Any]:
    if access.user_id:
        return {"id": access.user_id}
    return {"name": access.username, "domain": _domain(access.user_domain)}


def _project(access: CloudAccess) -> dict[str, Any]:
    if access.project_id:
        return {"id": access.project_id}
    return {"name": access.project_name, "domain": _domain(access.project_domain)}


def _domain(domain: KeystoneDomain) -> dict[str, str]:
    return {"id": domain.id} if domain.id else {"name": domain.name}


def _ends(token: _Token) -> float:
    try:
        return parse_time(token.expires_at)
    except ValueError:
        return 0.0


def _image_service(token: _Token, access: CloudAccess) -> URL:
    if access.image_endpoint:
        return _base(access.image_endpoint, access)
    endpoints = [one for service in token.catalog if service.type in _TYPES for one in service.endpoints]
    for one in endpoints:
        in_region = not access.region or access.region in (one.region, one.region_id)
        if one.interface == access.interface and in_region:
            return _base(one.url, access)
    known = sorted({f"{one.region or one.region_id}/{one.interface}" for one in endpoints})
    wanted = f"region {access.region!r}, interface {access.interface!r}"
    there = f"it has {', '.join(known)[:300]}" if known else "it has no image service at all"
    raise NoImageService(f"cloud {access.name}: the catalog has no image service for {wanted}; {there}")


def _base(text: str, access: CloudAccess) -> URL:
    """The root of the API: endpoints are written with and without /v2."""
    try:
        url = URL(text.rstrip("/"))
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise NoImageService(f"cloud {access.name}: the image service has the address {text[:100]!r}, which is none")
    return url if url.path.endswith("/v2") else url / "v2"
