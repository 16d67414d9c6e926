"""clouds.yaml in a Secret, authentication, and the choice of the image service."""

from __future__ import annotations

import base64
import datetime
import ssl
import warnings
from collections.abc import AsyncIterator, Callable
from ipaddress import ip_address
from typing import Any

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from hortus.domains.stacks.openstack.clouds import AuthMethod, CloudAccess, read_cloud
from hortus.domains.stacks.openstack.errors import (
    AuthRefused,
    BadCloud,
    BadReply,
    CloudUnavailable,
    NoImageService,
    OpenStackError,
)
from hortus.domains.stacks.openstack.keystone import auth_request, authenticate
from hortus.domains.stacks.openstack.transport import CloudLimits, CloudTransport
from hortus.kube import Secret, yaml
from hortus.kube.objects import Object
from hortus.kube.tls import server_context
from hortus.simulation.glance import CloudServer, CloudUsers

PASSWORD = "a-long-password"
AUTH = {
    "auth_url": "https://keystone.example.com/v3",
    "username": "builder",
    "user_domain_name": "Default",
    "password": PASSWORD,
    "project_name": "images",
    "project_domain_name": "Default",
}


def _secret(text: str, **more: str) -> Object:
    data = {"clouds.yaml": text, **more}
    return {"data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}}


def _clouds(cloud: Object, name: str = "openstack") -> str:
    return yaml.dump({"clouds": {name: cloud}})


def _access(auth: Object | None = None, **cloud: object) -> CloudAccess:
    return read_cloud(_secret(_clouds({"auth": AUTH | (auth or {}), **cloud})), "Secret default/openstack")


def test_a_password_is_the_default_way() -> None:
    access = _access(region_name="RegionOne", endpoint_type="internalURL", verify=False)
    assert (access.method, access.region, access.interface, access.verify) == (
        AuthMethod.PASSWORD, "RegionOne", "internal", False
    )  # fmt: skip
    domain = {"name": "Default"}
    assert auth_request(access) == {
        "auth": {
            "identity": {
                "methods": ["password"],
                "password": {"user": {"name": "builder", "domain": domain, "password": PASSWORD}},
            },
            "scope": {"project": {"name": "images", "domain": domain}},
        }
    }


def test_ids_win_over_names() -> None:
    access = _access({"user_id": "u-1", "project_id": "p-1"})
    identity = auth_request(access)["auth"]
    assert identity["identity"]["password"]["user"] == {"id": "u-1", "password": PASSWORD}
    assert identity["scope"] == {"project": {"id": "p-1"}}


@pytest.mark.parametrize(
    ("auth", "auth_type", "identity"),
    [
        (
            {"application_credential_id": "a-1", "application_credential_secret": "hidden-secret"},
            "v3applicationcredential",
            {"methods": ["application_credential"], "application_credential": {"id": "a-1", "secret": "hidden-secret"}},
        ),
        (
            {"application_credential_name": "hortus", "application_credential_secret": "hidden-secret"},
            "",
            {
                "methods": ["application_credential"],
                "application_credential": {
                    "name": "hortus",
                    "secret": "hidden-secret",
                    "user": {"name": "builder", "domain": {"name": "Default"}},
                },
            },
        ),
        ({"token": "hidden-token"}, "token", {"methods": ["token"], "token": {"id": "hidden-token"}}),
    ],
)
def test_other_ways_are_chosen_by_their_type(auth: Object, auth_type: str, identity: Object) -> None:
    access = _access(auth, auth_type=auth_type)
    found = auth_request(access)["auth"]
    assert found["identity"] == identity
    assert ("scope" in found) == (auth_type == "token")
    assert "hidden" not in repr(access)


def test_the_cloud_s_name_is_in_the_secret() -> None:
    access = read_cloud(_secret(_clouds({"auth": AUTH}, "prod"), cloudName='"prod"'), "Secret a/b")
    assert access.name == "prod"


@pytest.mark.parametrize(
    ("secret", "message"),
    [
        ({}, "Secret a/b: has no key clouds.yaml; add it"),
        ({"data": {"clouds.yaml": "%%"}}, "Secret a/b: the value of clouds.yaml is not base64; write the Secret again"),
        (_secret("clouds: [hidden-password"), "Secret a/b, clouds.yaml: line 2 is no YAML; correct it"),
        (_secret("clouds: 3"), "Secret a/b, clouds.yaml.clouds: must be a mapping, and is a whole number"),
        (_secret("clouds: {other: {}}"), "clouds.openstack: there is no such cloud; there are: other; correct"),
        (_secret("a: b", cloudName="x"), "clouds.x: there is no such cloud; there are: none; correct cloudName"),
        (_secret(_clouds({"auth": AUTH, "auth_type": "kerberos"})), "clouds.openstack.auth_type: is 'kerberos'; use"),
        (_secret(_clouds({"auth": AUTH | {"auth_url": "keystone"}})), "auth.auth_url: is no http or https address"),
        (_secret(_clouds({"auth": AUTH | {"auth_url": "https://u:hidden@k"}})), "auth_url: holds a user or password"),
        (_secret(_clouds({"auth": AUTH | {"password": ""}})), "clouds.openstack.auth: password is missing; give it"),
        (_secret(_clouds({"auth": AUTH | {"username": ""}})), "auth: the user is missing; give username with user_dom"),
        (_secret(_clouds({"auth": AUTH | {"user_domain_name": ""}})), "auth: the user is missing"),
        (_secret(_clouds({"auth": AUTH | {"project_domain_name": ""}})), "auth: project_domain_name is missing"),
        (_secret(_clouds({"auth": AUTH, "auth_type": "token"})), "auth: token is missing; give it"),
        (_secret(_clouds({"auth": AUTH, "auth_type": "v3applicationcredential"})), "application_credential_id is"),
        (_secret(_clouds({"auth": AUTH, "verify": "no"})), "clouds.openstack.verify: must be true or false"),
    ],
)  # fmt: skip
def test_a_secret_that_names_no_cloud_is_explained(secret: Object, message: str) -> None:
    with pytest.raises(BadCloud) as found:
        read_cloud(secret, "Secret a/b")
    assert message in str(found.value)
    assert "hidden" not in str(found.value)
    assert PASSWORD not in str(found.value)


@pytest.fixture
async def cloud() -> AsyncIterator[CloudServer]:
    async with CloudServer() as found:
        yield found


async def _image_service(access: CloudAccess, limits: CloudLimits | None = None) -> str:
    transport = CloudTransport(access, limits or CloudLimits(local=True))
    try:
        return str((await authenticate(transport, access)).image)
    finally:
        await transport.close()


def _at(cloud: CloudServer, auth: Object | None = None, **more: object) -> CloudAccess:
    return _access({"auth_url": cloud.auth_url} | (auth or {}), **more)


async def test_each_way_of_authentication_is_accepted(cloud: CloudServer) -> None:
    users = CloudUsers()
    named = {"application_credential_name": users.application_name}
    for auth, kind in (
        ({}, "password"),
        ({"user_id": users.user_id, "project_id": users.project_id}, "password"),
        ({"application_credential_id": users.application_id}, "v3applicationcredential"),
        (named, "v3applicationcredential"),
    ):
        secret = {"application_credential_secret": users.application_secret}
        access = _at(cloud, auth | secret, auth_type=kind)
        assert await _image_service(access) == f"{cloud.url}/image/v2"
    token = next(iter(cloud.tokens.living))
    assert await _image_service(_at(cloud, {"token": token}, auth_type="token")) == f"{cloud.url}/image/v2"


async def test_the_image_service_is_that_of_region_and_interface(cloud: CloudServer) -> None:
    cloud.regions = ("A", "B")
    assert await _image_service(_at(cloud, region_name="B", interface="internal"))
    with pytest.raises(NoImageService, match="no image service for region 'C', interface 'public'; it has A/internal"):
        await _image_service(_at(cloud, region_name="C"))
    cloud.regions = ()
    with pytest.raises(NoImageService, match="it has no image service at all"):
        await _image_service(_at(cloud))
    access = _at(cloud, image_endpoint_override="https://glance.example.com/")
    assert await _image_service(access) == "https://glance.example.com/v2"
    with pytest.raises(NoImageService, match="which is none"):
        await _image_service(_at(cloud, image_endpoint_override="glance"))


async def test_wrong_credentials_are_refused_without_being_shown(cloud: CloudServer) -> None:
    with pytest.raises(AuthRefused) as found:
        await _image_service(_at(cloud, {"password": "a-wrong-password"}))
    assert "check the credentials in clouds.yaml" in str(found.value)
    assert "a-wrong-password" not in str(found.value)


def _answering(answer: Callable[[], web.Response]) -> Any:
    async def intercept(request: web.BaseRequest) -> web.Response:
        return answer()

    return intercept


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (lambda: web.Response(status=500), CloudUnavailable, "HTTP status 500, asking for a token"),
        (lambda: web.Response(status=429), CloudUnavailable, "HTTP status 429"),
        (lambda: web.Response(status=302, headers={"Location": "http://x"}), BadReply, "redirects are not followed"),
        (lambda: web.Response(status=201, body=b"{}"), BadReply, "no X-Subject-Token"),
        (lambda: web.Response(status=201, headers={"X-Subject-Token": "t"}, body=b"[]"), BadReply, "cannot be read"),
        (lambda: web.Response(status=201, headers={"X-Subject-Token": "t"}, body=b" " * (9 << 20)), BadReply, "longer"),
        (lambda: web.Response(status=404, body=b'{"error": {"message": "no\\u001b v3"}}'), OpenStackError, "(no v3)"),
    ],
)  # fmt: skip
async def test_odd_answers_are_named(
    cloud: CloudServer, answer: Callable[[], web.Response], error: type[Exception], message: str
) -> None:
    cloud.intercept = _answering(answer)
    with pytest.raises(error) as found:
        await _image_service(_at(cloud))
    assert message in str(found.value)


async def test_a_keystone_that_is_down_is_named(cloud: CloudServer) -> None:
    access = _at(cloud, {"auth_url": "http://127.0.0.1:1/v3"})
    with pytest.raises(CloudUnavailable, match=r"127\.0\.0\.1: cannot be reached, asking for a token"):
        await _image_service(access)


async def test_addresses_of_this_machine_are_refused_by_default(cloud: CloudServer) -> None:
    """The Secret is a tenant's: it must not lead to services of the operator's machine."""
    with pytest.raises(BadCloud, match="its address lies on this machine or a link-local network"):
        await _image_service(_at(cloud), CloudLimits())
    assert cloud.calls == []


class Authority:
    """A certificate for 127.0.0.1."""

    def __init__(self) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "cloud")])
        now = datetime.datetime.now(datetime.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        self.pem = made.public_bytes(serialization.Encoding.PEM)
        self._key = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def context(self) -> ssl.SSLContext:
        return server_context(certificate=self.pem, key=Secret(self._key.decode()))


async def test_certificates_are_checked_with_the_secret_s_authority() -> None:
    authority = Authority()
    async with CloudServer(tls=authority.context()) as cloud:
        clouds = _clouds({"auth": AUTH | {"auth_url": cloud.auth_url}})
        trusted = read_cloud(_secret(clouds, cacert=authority.pem.decode()), "Secret a/b")
        assert (await _image_service(trusted)).startswith("https://")
        unknown = read_cloud(_secret(clouds), "Secret a/b")
        with pytest.raises(CloudUnavailable, match="its certificate is not accepted"):
            await _image_service(unknown)
        unchecked = _clouds({"auth": AUTH | {"auth_url": cloud.auth_url}, "verify": False})
        assert await _image_service(read_cloud(_secret(unchecked), "Secret a/b"))
        with pytest.raises(BadCloud, match="cacert: "):
            await _image_service(read_cloud(_secret(clouds, cacert="no certificate"), "Secret a/b"))


async def test_old_tls_is_refused() -> None:
    context = Authority().context()
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    async with CloudServer(tls=context) as cloud:
        with pytest.raises(CloudUnavailable):
            await _image_service(_at(cloud, verify=False))
