"""The rules of a garden's bindings and workload identities, in the words of gardener-apiserver.

Source: gardener, pkg/api/security/validation and pkg/api/core/validation/secretbinding.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from hortus.apiserver.builtin.problems import IMMUTABLE, duplicate, every, immutable, invalid, required, unsupported
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.naming import dns_label, dns_subdomain
from hortus.kube.objects import Object

_CREDENTIALS: Final = (
    "/v1, Kind=Secret",
    "core.gardener.cloud/v1beta1, Kind=InternalSecret",
    "security.gardener.cloud/v1alpha1, Kind=WorkloadIdentity",
)
_SUBJECT: Final = "gardener.cloud:workloadidentity"
_LONGEST_SUBJECT: Final = 255


class SecretBindingStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        found = _named(obj["secretRef"], "secretRef")
        for index, quota in enumerate(obj.get("quotas") or ()):
            found += _named(quota, f"quotas[{index}]")
        return found

    def validate(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        found = super().validate(obj, context)
        if "provider" not in obj:
            found.append(required("provider", "must specify a provider"))
        elif not obj["provider"]["type"]:
            found.append(required("provider.type", "must specify a provider type"))
        return found

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        fields = ("secretRef", "quotas", *(("provider",) if "provider" in old else ()))
        return _unchanged(obj, old, fields)


class CredentialsBindingStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        found = _credentials_problems(obj["credentialsRef"])
        if not obj["provider"].get("type"):  # several types are accepted here, so that one binding serves all clouds
            found.append(required("provider.type", "must specify a provider type"))
        for index, quota in enumerate(obj.get("quotas") or ()):
            found += _named(quota, f"quotas[{index}]")
        return found

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        return _unchanged(obj, old, ("credentialsRef", "quotas", "provider"))


class WorkloadIdentityStrategy(BuiltinStrategy):
    """An identity is issued tokens as subject `gardener.cloud:workloadidentity:NAMESPACE:NAME:UID`."""

    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        if not obj["status"].get("sub"):
            obj["status"]["sub"] = _subject(obj) if old is None else old["status"]["sub"]

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec, subject, seen = obj["spec"], _subject(obj), set[str]()
        found = []
        if not spec.get("audiences"):
            found.append(required("spec.audiences", "must provide at least one audience"))
        for index, audience in enumerate(spec.get("audiences") or ()):
            if not audience:
                found.append(required(f"spec.audiences[{index}]", "must specify non-empty audience"))
            if audience in seen:
                found.append(duplicate(f"spec.audiences[{index}]", audience))
            seen.add(audience)
        found += _provider_problems(spec["targetSystem"], "spec.targetSystem")
        if obj["status"]["sub"] != subject:
            why = f'sub claim does not match expected value: "{subject}"'
            found.append(invalid("status.sub", obj["status"]["sub"], why))
        if len(subject) > _LONGEST_SUBJECT:
            why = f"sub claim is too long ({len(subject)}), it is allowed to be no more than 255 ASCII characters"
            found.append(invalid("status.sub", subject, why))
        return found

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        has, had = (one["spec"]["targetSystem"]["type"] for one in (obj, old))
        return immutable("spec.targetSystem.type", has, had)


STRATEGIES: Final[Mapping[str, type[BuiltinStrategy]]] = {
    "garden.SecretBinding": SecretBindingStrategy,
    "security.CredentialsBinding": CredentialsBindingStrategy,
    "security.WorkloadIdentity": WorkloadIdentityStrategy,
}
"""By type, the strategies with rules of their own."""


def _subject(identity: Object) -> str:
    metadata = identity["metadata"]
    return ":".join((_SUBJECT, metadata.get("namespace", ""), metadata.get("name", ""), metadata.get("uid", "")))


def _credentials_problems(reference: Mapping[str, Any]) -> list[FieldProblem]:
    has = {key: reference.get(key, "") for key in ("apiVersion", "kind", "name", "namespace")}
    articles = {"apiVersion": "an apiVersion", "kind": "a kind", "name": "a name", "namespace": "a namespace"}
    found = []
    for key in has:
        if not has[key]:
            found.append(required(f"credentialsRef.{key}", f"must provide {articles[key]}"))
        if key in ("name", "namespace"):
            found += every(f"credentialsRef.{key}", has[key], dns_subdomain(has[key]))
    group, _, version = has["apiVersion"].rpartition("/")
    shown = f"{group}/{version}, Kind={has['kind']}"
    if shown not in _CREDENTIALS:
        found.append(unsupported("credentialsRef", shown, _CREDENTIALS))
    return found


def _provider_problems(provider: Mapping[str, Any], path: str) -> list[FieldProblem]:
    kind = provider.get("type", "")
    if not kind:
        return [required(f"{path}.type", "must specify a provider type")]
    return [invalid(f"{path}.type", kind, "multiple providers specified")] if "," in kind else []


def _named(reference: Mapping[str, Any], path: str) -> list[FieldProblem]:
    """The problems of a reference whose namespace may be missing."""
    name, namespace = reference.get("name", ""), reference.get("namespace", "")
    found = (
        every(f"{path}.name", name, dns_subdomain(name)) if name else [required(f"{path}.name", "must provide a name")]
    )
    return [*found, *(every(f"{path}.namespace", namespace, dns_label(namespace)) if namespace else ())]


def _unchanged(obj: Object, old: Object, fields: Iterable[str]) -> list[FieldProblem]:
    return [invalid(field, obj.get(field), IMMUTABLE) for field in fields if obj.get(field) != old.get(field)]
