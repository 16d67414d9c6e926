"""`oidcConfig` of Shoots whose Kubernetes is older than any that Gardener 1.150 runs.

The profiles offer such versions, so that the samples of infrastructure-manager work as they are. Gardener had the field
as long as it ran them, and dropped it with the last: gardener 1.130, pkg/apis/core/v1beta1/types_shoot.go, and
ValidateKubeAPIServer in pkg/apis/core/validation/shoot.go.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Final

from hortus.gardener.shoots import default
from hortus.gardener.shoots.defaulting import SHOOT
from hortus.gardener.shoots.fields import FORBIDDEN_FROM, OIDC_CONFIG, is_forbidden
from hortus.gardener.structure import types_text
from hortus.kube.objects import Object
from hortus.kube.scalars import CANONICAL
from hortus.schema import FieldError
from hortus.schema.builtin import Description, Shapes
from hortus.schema.problems import forbidden, invalid

_FIELD = "oidcConfig"
_SERVER = "\nKubeAPIServerConfig\n"
_TYPES: Final = """
OpenIDConnectClientAuthentication
 extraConfig 1 map[string]string
 secret 2 *string
OIDCConfig
 caBundle 1 *string
 clientAuthentication 2 *OpenIDConnectClientAuthentication
 clientID 3 *string
 groupsClaim 4 *string
 groupsPrefix 5 *string
 issuerURL 6 *string
 requiredClaims 7 map[string]string
 signingAlgs 8 []string
 usernameClaim 9 *string
 usernamePrefix 10 *string
"""


@functools.cache
def types_with_oidc() -> Description:
    """Gardener's types, with the field."""
    return Description(types_text().replace(_SERVER, f"{_TYPES}{_SERVER[1:]} {_FIELD} 6 *OIDCConfig\n", 1))


def drop_ended_oidc(shoot: Object) -> list[str]:
    """Drops the field where the Shoot's version ends it, as Gardener 1.150 drops it; returns its path then."""
    server = _server(shoot)
    if _FIELD not in server or not _is_ended(shoot):
        return []
    del server[_FIELD]
    return [OIDC_CONFIG]


def default_with_oidc(shoot: Object) -> None:
    """Gives a Shoot the form and the defaults of today, and keeps the field. Raises ShapeError."""
    if _server(shoot).get(_FIELD) is not None:
        _shapes().shape(shoot, SHOOT)
    value = _server(shoot).get(_FIELD)
    default(shoot)
    if value is not None:
        shoot["spec"]["kubernetes"]["kubeAPIServer"][_FIELD] = value


def oidc_problems(shoot: Object) -> Iterator[FieldError]:
    """The refusals of the field."""
    value = _server(shoot).get(_FIELD)
    if value is None:
        return
    if _is_ended(shoot):
        first = FORBIDDEN_FROM[OIDC_CONFIG]
        yield forbidden(OIDC_CONFIG, f"for Kubernetes versions >= {first}, oidcConfig field is no longer supported")
        return
    for name, other in (("clientID", "issuerURL"), ("issuerURL", "clientID")):
        if value.get(other) and not value.get(name):
            text = f"{name} must be set when {other} is provided"
            yield invalid(f"{OIDC_CONFIG}.{name}", value.get(name), text)
    if "structuredAuthentication" in _server(shoot):
        yield forbidden(OIDC_CONFIG, "is incompatible with structuredAuthentication")


@functools.cache
def _shapes() -> Shapes:
    return Shapes(types_with_oidc(), {}, CANONICAL, embedded=True)


def _is_ended(shoot: Object) -> bool:
    version = _below(shoot, "spec", "kubernetes").get("version")
    return isinstance(version, str) and is_forbidden(OIDC_CONFIG, version)


def _server(shoot: Object) -> Object:
    return _below(shoot, "spec", "kubernetes", "kubeAPIServer")


def _below(obj: Object, *names: str) -> Object:
    """The object at a place; empty where there is none, because what was sent may have any type there."""
    for name in names:
        inner = obj.get(name)
        if not isinstance(inner, dict):
            return {}
        obj = inner
    return obj
