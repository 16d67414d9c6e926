"""Rules of the settings of a Shoot's API server.

Source: gardener/gardener, pkg/api/core/validation, ValidateKubeAPIServer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import SplitResult, urlsplit

from hortus.gardener.shoots.apis import api_problems
from hortus.gardener.shoots.checks import (
    Check,
    FieldRules,
    at_most,
    forbidden_from,
    label,
    lasting,
    nanoseconds,
    not_negative,
    one_of,
    subdomain,
)
from hortus.gardener.shoots.facts import Release, RuleFacts
from hortus.gardener.shoots.gates import gate_problems
from hortus.gardener.shoots.plugins import plugin_problems
from hortus.gardener.shoots.sizing import least_allowed
from hortus.kube import Object
from hortus.kube.durations import HOUR
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, forbidden, invalid, not_supported, required
from hortus.schema.quoting import quote

TLS_VERSION_FROM: Final[Release] = (1, 149)
"""The release of Gardener from which `tlsMinVersion` can be set."""
ENCRYPTION_PROVIDERS: Final = ("aescbc", "aesgcm", "secretbox")
_ALWAYS_ENCRYPTED = ("secrets", "")
_NO_API = ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")


def api_server_problems(
    server: Object, path: str, facts: RuleFacts, *, rotates: bool = False, known_issuers: bool = False
) -> Iterator[FieldError]:
    """Problems of the settings of an API server.

    `rotates` says that Gardener rotates the key for etcd by itself; `known_issuers` that the accepted issuers are those
    of the live Shoot, which are not checked again.
    """
    yield from plugin_problems(server.get("admissionPlugins") or (), f"{path}.admissionPlugins", facts)
    yield from _FIELDS.problems(server, path, facts)
    if facts.release >= TLS_VERSION_FROM:
        yield from _TLS.problems(server, path, facts)
    yield from _structured_problems(server, path)
    yield from _cache_problems(server, path)
    yield from _encryption_problems(server.get("encryptionConfig"), f"{path}.encryptionConfig", rotates=rotates)
    if not known_issuers:
        yield from _issuer_problems(server.get("serviceAccountConfig") or {}, f"{path}.serviceAccountConfig", facts)
    yield from _audience_problems(server.get("apiAudiences") or (), f"{path}.apiAudiences")


def _structured_problems(server: Object, path: str) -> Iterator[FieldError]:
    gates = server.get("featureGates") or {}
    for name, gate in (
        ("structuredAuthentication", "StructuredAuthenticationConfiguration"),
        ("structuredAuthorization", "StructuredAuthorizationConfiguration"),
    ):
        part = server.get(name)
        if part is None:
            continue
        if gates.get(gate) is False:
            yield forbidden(f"{path}.{name}", f"requires feature gate {gate} to be enabled")
        if not part.get("configMapName"):
            yield forbidden(f"{path}.{name}.configMapName", "must provide a name")
        elif name == "structuredAuthorization" and not part.get("kubeconfigs"):
            text = "must provide kubeconfig secret references if an authorization config is configured"
            yield required(f"{path}.{name}.kubeconfigs", text)


def _cache_problems(server: Object, path: str) -> Iterator[FieldError]:
    for index, entry in enumerate((server.get("watchCacheSizes") or {}).get("resources") or ()):
        at = f"{path}.watchCacheSizes.resources[{index}]"
        resource, group, size = entry.get("resource") or "", entry.get("apiGroup") or "", entry.get("size") or 0
        if not resource:
            yield required(f"{at}.resource", "must not be empty")
        for name, text, banned in (("resource", resource, ",. #"), ("apiGroup", group, ", #")):
            if text != text.lower():
                yield invalid(f"{at}.{name}", text, "must be lower case")
            if any(character in text for character in banned):
                characters = f"must not contain any of the following characters: {quote(banned)}"
                yield invalid(f"{at}.{name}", text, characters)
        if size < 0:
            yield from not_negative(size, f"{at}.size", NO_FACTS)


def _encryption_problems(config: Object | None, path: str, *, rotates: bool) -> Iterator[FieldError]:
    if config is None:
        return
    seen: set[tuple[str, str]] = set()
    for index, text in enumerate(config.get("resources") or ()):
        at, resource = f"{path}.resources[{index}]", group_resource(text)
        for problem in _resource_problems(text, resource[1]):
            yield invalid(at, text, problem)
        if resource in seen:
            yield duplicate(at, text)
        if resource == _ALWAYS_ENCRYPTED:
            yield forbidden(at, f"{quote(text)} are always encrypted")
        seen.add(resource)
    kind = (config.get("provider") or {}).get("type")
    if kind is not None and kind not in ENCRYPTION_PROVIDERS:
        yield not_supported(f"{path}.provider.type", kind, ENCRYPTION_PROVIDERS)
    if kind == "aesgcm" and not rotates:
        text = "etcdEncryptionKey auto rotation must be enabled when encryption at rest provider is AES-GCM"
        yield forbidden(f"{path}.provider.type", text)


def _resource_problems(text: str, group: str) -> Iterator[str]:
    if text != text.lower():
        yield "resource must be lower case"
    if text in _NO_API:
        yield "resources which do not have REST API/s cannot be encrypted"
    if text.endswith("."):
        yield "resource should not end with '.'"
    if "*" in text:
        yield "wildcards are not supported"
    if group == "events.k8s.io":
        yield "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead"
    if group == "extensions":
        yield "'extensions' group has been removed and cannot be used for encryption"


def group_resource(text: str) -> tuple[str, str]:
    """Resource and group of a text such as `deployments.apps`."""
    resource, _, group = text.partition(".")
    return resource, group


def _issuer_problems(config: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    issuer = config.get("issuer")
    seen = {issuer} if issuer is not None else set()
    for index, accepted in enumerate(config.get("acceptedIssuers") or ()):
        at = f"{path}.acceptedIssuers[{index}]"
        yield from _issuer(accepted, at, facts)
        if accepted == issuer:
            yield invalid(at, accepted, f"acceptedIssuers cannot contains the issuer field value: {accepted}")
        elif accepted in seen:
            yield duplicate(at, accepted)
        seen.add(accepted)


def _issuer(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """The URL of an issuer of tokens."""
    url = _url(value)
    if url is None or not url.netloc:
        yield invalid(path, value, "must be a valid URL and have https scheme")
    if url is None:
        return
    if url.fragment:
        yield invalid(path, value, "must not contain a fragment")
    if "@" in url.netloc:
        yield invalid(path, value, "must not contain a username or password")
    if url.query:
        yield invalid(path, value, "must not contain a query")
    if url.scheme != "https":
        yield invalid(path, value, "must have https scheme")


_BAD_URL = re.compile(r"[\x00-\x1f\x7f]|^:|^[^/?#]*[^A-Za-z0-9+.\-:/?#][^/?#]*:[^/]|^[0-9+.\-][^/?#]*:")
_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_BAD_HOST = re.compile(r"[ <>\"\\^`{|}]|\]\[|:[^0-9:\]][^\]]*$")


def _url(text: str) -> SplitResult | None:
    """The parts of a URL; None for a text that Go's net/url does not parse."""
    if _BAD_URL.search(text) or _BAD_ESCAPE.search(text.partition("?")[0]):
        return None
    try:
        url = urlsplit(text)
    except ValueError:
        return None
    return None if _BAD_HOST.search(url.netloc.rpartition("@")[2]) else url


def _audience_problems(audiences: Sequence[str], path: str) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, audience in enumerate(audiences):
        if audience in seen:
            yield duplicate(f"{path}[{index}]", audience)
        if "," in audience:
            yield invalid(f"{path}[{index}]", audience, "audience must not contain commas")
        seen.add(audience)


def _token_lifetime(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    length = nanoseconds(value)
    if length < 0:
        yield invalid(path, value, "can not be negative")
    if 0 < length < 720 * HOUR:
        yield forbidden(path, "must be at least 720h (30d)")
    if length > 2160 * HOUR:
        yield forbidden(path, "must be at most 2160h (90d)")


def _policy_reference(value: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    name, namespace = value.get("name") or "", value.get("namespace") or ""
    if name:
        yield from subdomain(name, f"{path}.name", facts)
    else:
        yield required(f"{path}.name", "must provide a name")
    if namespace:
        yield from label(namespace, f"{path}.namespace", facts)


def _requests(most: int) -> tuple[Check, Check]:
    return not_negative, at_most(most, f"cannot set higher than {most}")


_FIELDS: Final = FieldRules(
    {
        "enableAnonymousAuthentication": forbidden_from(
            "spec.kubernetes.kubeAPIServer.enableAnonymousAuthentication",
            "versions >= 1.35, enableAnonymousAuthentication field is no longer supported",
        ),
        "runtimeConfig": api_problems,
        "auditConfig.auditPolicy.configMapRef": _policy_reference,
        "watchCacheSizes.default": forbidden_from(
            "spec.kubernetes.kubeAPIServer.watchCacheSizes.default",
            "versions >= 1.35, configuring the default watch cache size is no longer supported",
            not_negative,
        ),
        "logging.verbosity": not_negative,
        "logging.httpAccessVerbosity": not_negative,
        "defaultNotReadyTolerationSeconds": not_negative,
        "defaultUnreachableTolerationSeconds": not_negative,
        "requests.maxNonMutatingInflight": _requests(5000),
        "requests.maxMutatingInflight": _requests(2500),
        "serviceAccountConfig.maxTokenExpiration": _token_lifetime,
        "serviceAccountConfig.issuer": _issuer,
        "eventTTL": (lasting("can not be negative", least=0), lasting("can not be longer than 24h", most=24 * HOUR)),
        "autoscaling": least_allowed({"cpu": "20m", "memory": "200M"}),
        "featureGates": gate_problems,
    }
)
_TLS: Final = FieldRules({"tlsMinVersion": one_of(("VersionTLS12", "VersionTLS13"))})
NO_FACTS: Final = RuleFacts("", None, None)
"""RuleFacts for checks that need none."""
