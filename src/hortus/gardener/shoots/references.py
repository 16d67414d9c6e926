"""Rules of references from a Shoot to credentials and other objects, of its extensions, resources and tolerations.

Source: gardener/gardener, pkg/api/core/validation, utils.go and project.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import orjson

from hortus.gardener.shoots.checks import label, label_name, subdomain, value_texts
from hortus.gardener.shoots.facts import RuleFacts
from hortus.gardener.shoots.fields import DNS_REFERENCE, forbidden_since
from hortus.kube import Object
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, forbidden, invalid, not_supported, required

_WORKLOAD_IDENTITY = "security.gardener.cloud/v1alpha1, Kind=WorkloadIdentity"
CREDENTIALS: Final = ("/v1, Kind=Secret", "core.gardener.cloud/v1beta1, Kind=InternalSecret", _WORKLOAD_IDENTITY)
"""The kinds of credentials, as errors show them."""
RESOURCES: Final = ("/v1, Kind=Secret", "/v1, Kind=ConfigMap", _WORKLOAD_IDENTITY)
"""The kinds of objects that a Shoot may hand on to extensions."""


def kind_of(reference: Object) -> str:
    """Group, version and kind of a reference, as errors show them."""
    group, _, version = (reference.get("apiVersion") or "").rpartition("/")
    return f"{group}/{version}, Kind={reference.get('kind') or ''}"


def credentials_problems(reference: Object, path: str, facts: RuleFacts, *, namespaced: bool) -> Iterator[FieldError]:
    """Problems of a reference to credentials, with their namespace or, if not `namespaced`, without."""
    name, namespace = reference.get("name") or "", reference.get("namespace") or ""
    yield from _missing(reference, path)
    yield from subdomain(name, f"{path}.name", facts)
    if namespaced:
        if not namespace:
            yield required(f"{path}.namespace", "must provide a namespace")
        yield from subdomain(namespace, f"{path}.namespace", facts)
    if kind_of(reference) not in CREDENTIALS:
        yield not_supported(path, _shown(reference), CREDENTIALS)


def resource_problems(resources: Sequence[Object], path: str) -> Iterator[FieldError]:
    """Problems of the objects that a Shoot hands on to extensions."""
    seen: set[str] = set()
    for index, resource in enumerate(resources):
        at, name = f"{path}[{index}]", resource.get("name") or ""
        if not name:
            yield required(f"{at}.name", "field must not be empty")
        elif name in seen:
            yield duplicate(f"{at}.name", name)
        seen.add(name)
        reference, where = resource.get("resourceRef") or {}, f"{at}.resourceRef"
        yield from _missing(reference, where)
        version = reference.get("apiVersion") or ""
        if version.count("/") > 1:
            text = f"unexpected GroupVersion string: {version}"
            text = f"cannot determine GroupVersionKind for specified reference: {text}"
            yield _invalid(where, _pick(reference), text)
        elif kind_of(reference) not in RESOURCES:
            yield not_supported(where, kind_of(reference), RESOURCES)


def extension_problems(extensions: Sequence[Object], path: str, facts: RuleFacts) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, extension in enumerate(extensions):
        at, kind = f"{path}[{index}].type", extension.get("type") or ""
        if kind:
            yield from label(kind, at, facts)
        else:
            yield required(at, "field must not be empty")
        if kind in seen:
            yield duplicate(at, kind)
        seen.add(kind)


def toleration_problems(tolerations: Sequence[Object], path: str, facts: RuleFacts) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, toleration in enumerate(tolerations):
        at, key, value = f"{path}[{index}]", toleration.get("key") or "", toleration.get("value")
        if key:
            yield from label_name(key, f"{at}.key", facts)
        else:
            yield required(f"{at}.key", "cannot be empty")
        for text in value_texts(value or ""):
            yield invalid(f"{at}.value", value, text)
        shown = key if value is None else f"{key}={value}"
        if shown in seen or key in seen:
            yield duplicate(at, shown)
        seen.add(shown)


def dns_problems(dns: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of the domain of a Shoot and of its providers."""
    domain, providers = dns.get("domain"), dns.get("providers") or ()
    if domain is not None:
        yield from subdomain(domain, f"{path}.domain", facts)
    kind = (primary_provider(providers) or {}).get("type")
    if domain is None and kind is not None and kind != UNMANAGED:
        yield required(f"{path}.domain", f'domain must be set when primary provider type is not set to "{UNMANAGED}"')
    used: set[tuple[str, ...]] = set()
    primaries = 0
    for index, provider in enumerate(providers):
        at = f"{path}.providers[{index}]"
        yield from _secret_problems(provider, at, facts)
        reference, kind = provider.get("credentialsRef"), provider.get("type")
        if reference is not None and kind is not None:
            one = _credential(reference, kind)
            if tuple(one.values()) in used:
                text = "combination of .credentialsRef and .type must be unique across dns providers"
                yield _invalid(at, one, text)
                continue
            used.add(tuple(one.values()))
        if provider.get("primary"):
            primaries += 1
            if primaries > 1:
                yield forbidden(f"{at}.primary", "multiple primary DNS providers are not supported")
                continue
        yield from _provider_problems(provider, at)


UNMANAGED: Final = "unmanaged"
"""The type of a DNS provider without a service."""


def primary_provider(providers: Sequence[Object]) -> Object | None:
    """The first provider that is the primary one."""
    return next((provider for provider in providers if provider.get("primary")), None)


def _credential(reference: Object, kind: str) -> dict[str, str]:
    gvk = f"{reference.get('apiVersion') or ''}/{reference.get('kind') or ''}"
    return {"providerType": kind, "gvk": gvk, "name": reference.get("name") or ""}


def _provider_problems(provider: Object, path: str) -> Iterator[FieldError]:
    reference, kind = provider.get("credentialsRef"), provider.get("type")
    if kind == UNMANAGED and reference is not None:
        text = f'credentialsRef must not be set when type is "{UNMANAGED}"'
        yield _invalid(f"{path}.credentialsRef", _pick(reference), text)
        return
    if reference is not None and kind is None:
        yield required(f"{path}.type", "type must be set when credentialsRef is set")
    if reference is None and not provider.get("primary"):
        yield required(f"{path}.credentialsRef", "non-primary DNS providers must specify `credentialsRef`")


def _secret_problems(provider: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of `secretName` and `credentialsRef` together: before Kubernetes 1.35 they name the same Secret."""
    secret, reference, at = provider.get("secretName"), provider.get("credentialsRef"), f"{path}.secretName"
    removed = forbidden_since(DNS_REFERENCE)
    is_old = facts.below(removed)
    if secret is not None and facts.reaches(removed):
        yield forbidden(at, "for Kubernetes versions >= 1.35, secretName field is no longer supported")
    if reference is None:
        if secret is not None and is_old:
            yield forbidden(at, "must not be set when `credentialsRef` is not set")
        return
    yield from credentials_problems(reference, f"{path}.credentialsRef", facts, namespaced=False)
    if (reference.get("apiVersion"), reference.get("kind")) == ("v1", "Secret"):
        if is_old and secret != (reference.get("name") or ""):
            yield forbidden(at, "must refer to the same secret as `credentialsRef`")
    elif secret:
        yield forbidden(at, "must not be set when `credentialsRef` does not refer to secret resource")


def _missing(reference: Object, path: str) -> Iterator[FieldError]:
    for name, article in (("apiVersion", "an"), ("kind", "a"), ("name", "a")):
        if not reference.get(name):
            yield required(f"{path}.{name}", f"must provide {article} {name}")


def _pick(reference: Object) -> Object:
    """The fields of a reference that are set, in the order of its Go type; the first two always."""
    fields = {name: reference.get(name) or "" for name in ("kind", "name", "apiVersion")}
    return {name: value for name, value in fields.items() if value or name != "apiVersion"}


def _invalid(path: str, value: Object, text: str) -> FieldError:
    """A problem of an object, which is shown with its fields in their order."""
    return FieldError(path, f"Invalid value: {orjson.dumps(value).decode()}: {text}")


def _shown(reference: Object) -> str:
    """A reference as the text of its Go type."""
    names = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
    shown = (("UID" if name == "uid" else name[0].upper() + name[1:], reference.get(name) or "") for name in names)
    joined = ",".join(f"{name}:{value}" for name, value in shown).replace("ApiVersion", "APIVersion")
    return f"&ObjectReference{{{joined},}}"
