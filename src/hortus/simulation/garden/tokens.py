"""`workloadidentities/token`: signed tokens of a WorkloadIdentity, by a TokenRequest of Gardener's.

The key is the process's own: nobody can verify the tokens, and no cloud takes them. Source: gardener,
pkg/apiserver/registry/security/workloadidentity/storage and pkg/utils/workloadidentity.
"""

from __future__ import annotations

import functools
import uuid
from typing import Final

import orjson
from cryptography.hazmat.primitives.asymmetric import ec

from hortus.apiserver.authn.jwt import sign
from hortus.apiserver.builtin.problems import invalid
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.apiserver.resources.failures import invalid_object
from hortus.gardener.structure import decode
from hortus.kube.errors import BadRequest
from hortus.kube.objects import Object, format_time
from hortus.schema.builtin import ShapeError
from hortus.simulation.garden.kinds import SECURITY

_KIND: Final = "TokenRequest"
_VERSION: Final = f"{SECURITY}/v1alpha1"
_ISSUER: Final = "https://garden.example.org"
_DEFAULT_SECONDS: Final = 6 * 3600
_SHORTEST: Final = 600
_LONGEST: Final = 1 << 32
_GRANTED: Final = 48 * 3600
"""Most seconds that a token is valid."""


async def issue(identity: Object, body: Object, context: WriteContext) -> Object:
    """Answers a TokenRequest. Raises BadRequest, Invalid."""
    name, namespace = identity["metadata"]["name"], context.namespace
    asked = _read(body)
    metadata, spec = body.get("metadata") or {}, asked["spec"]
    for field, own in (("name", name), ("namespace", namespace)):
        given = metadata.get(field, "")
        if given and given != own:
            why = f"TokenRequest {field} does not match WorkloadIdentity {field}: {own}"
            raise _refused(given, invalid(f"metadata.{field}", given, why))
    seconds = spec.setdefault("expirationSeconds", _DEFAULT_SECONDS)
    if seconds < _SHORTEST:
        why = "may not specify a duration shorter than 10 minutes"
        raise _refused("", invalid("spec.expirationSeconds", seconds, why))
    if seconds > _LONGEST:
        raise _refused(
            "", invalid("spec.expirationSeconds", seconds, "may not specify a duration longer than 2^32 seconds")
        )
    begins = int(context.now)
    ends = begins + min(seconds, _GRANTED)
    return {
        "kind": _KIND,
        "apiVersion": _VERSION,
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": format_time(context.now)},
        "spec": spec,
        "status": {"token": _token(identity, begins, ends), "expirationTimestamp": format_time(ends)},
    }


def _read(body: Object) -> Object:
    kind, version = body.get("kind", _KIND), body.get("apiVersion", _VERSION)
    if (kind, version) != (_KIND, _VERSION):
        raise BadRequest(f'no kind "{kind}" is registered for the token of a WorkloadIdentity in version "{version}"')
    asked = {key: value for key, value in body.items() if key == "spec"}
    try:
        decode(asked, f"security.{_KIND}")
    except ShapeError as error:
        raise BadRequest(f'{_KIND} in version "v1alpha1" cannot be handled as a {_KIND}: {error}') from None
    return asked


def _refused(name: str, problem: FieldProblem) -> Exception:
    return invalid_object(f"{_KIND}.{SECURITY}", SECURITY, _KIND, name, [problem])


def _token(identity: Object, begins: int, ends: int) -> str:
    metadata = identity["metadata"]
    who = {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]}
    claims = {
        "iss": _ISSUER,
        "iat": begins,
        "nbf": begins,
        "exp": ends,
        "sub": identity["status"]["sub"],
        "aud": identity["spec"]["audiences"],
        "jti": str(uuid.uuid4()),
        "gardener.cloud": {"workloadIdentity": who},
    }
    return sign(orjson.dumps(claims), _key())


@functools.cache
def _key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())
