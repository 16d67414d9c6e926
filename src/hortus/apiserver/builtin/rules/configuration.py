"""Secrets, ConfigMaps and namespaces."""

from __future__ import annotations

import base64
import binascii

import orjson

from hortus.apiserver.builtin.names import config_key
from hortus.apiserver.builtin.problems import every, forbidden, immutable, invalid, required, too_long
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.http import go_kind
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.errors import Forbidden
from hortus.kube.naming import dns_subdomain
from hortus.kube.objects import Object

LARGEST = 1024 * 1024
"""Bytes that the values of one Secret or ConfigMap may have together (core/v1 MaxSecretSize)."""

_ACCOUNT_NAME = "kubernetes.io/service-account.name"
_NEEDED_KEYS = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}
_JSON_KEYS = (".dockercfg", ".dockerconfigjson")
_IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
"""Namespaces that cannot be deleted (k8s.io/apiserver, admission plugin NamespaceLifecycle)."""
_NAME_LABEL = "kubernetes.io/metadata.name"


def _immutable_data(obj: Object, old: Object, *fields: str) -> list[FieldProblem]:
    """The problems of changes of an object with `immutable` set (KEP-1412)."""
    if not old.get("immutable"):
        return []
    sentence = "field is immutable when `immutable` is set"
    changed = [field for field in fields if (obj.get(field) or {}) != (old.get(field) or {})]
    if not obj.get("immutable"):
        changed.insert(0, "immutable")
    return [forbidden(field, sentence) for field in changed]


def _decoded_size(text: str) -> int:
    return len(text) * 3 // 4 - text.count("=", -2)


class SecretStrategy(BuiltinStrategy):
    """`stringData` is moved into `data`; typed Secrets have the keys of their type."""

    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        plain = obj.pop("stringData", None)
        if plain:
            data = obj["data"] = dict(obj.get("data") or {})
            data.update((key, base64.b64encode(value.encode()).decode()) for key, value in plain.items())

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        data = obj.get("data") or {}
        found: list[FieldProblem] = []
        for key in data:
            found += every(f"data[{key}]", key, config_key(key))
        if sum(_decoded_size(value) for value in data.values()) > LARGEST:
            found.append(too_long("data", LARGEST))
        return found + self._typed(obj, data)

    def _typed(self, obj: Object, data: dict[str, str]) -> list[FieldProblem]:
        kind = obj.get("type")
        if kind == "kubernetes.io/service-account-token":
            name = (obj["metadata"].get("annotations") or {}).get(_ACCOUNT_NAME)
            return [] if name else [required(f"metadata.annotations[{_ACCOUNT_NAME}]")]
        if kind == "kubernetes.io/basic-auth":
            if "username" in data or "password" in data:
                return []
            return [required("data[username]"), required("data[password]")]
        found = []
        for key in _NEEDED_KEYS.get(str(kind), ()):
            if key not in data or (key == "ssh-privatekey" and not data[key]):
                found.append(required(f"data[{key}]"))
            elif key in _JSON_KEYS and (wrong := _json_problem(data[key])):
                found.append(invalid(f"data[{key}]", "<secret contents redacted>", wrong))
        return found

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        return [*immutable("type", obj.get("type"), old.get("type")), *_immutable_data(obj, old, "data")]


def _json_problem(text: str) -> str:
    """The reason why a value is no JSON object; empty when it is one."""
    try:
        found = orjson.loads(base64.b64decode(text))
    except (orjson.JSONDecodeError, binascii.Error):
        return "must be a JSON document"
    if isinstance(found, dict | None):
        return ""
    return f"json: cannot unmarshal {go_kind(found)} into Go value of type map[string]interface {{}}"


class ConfigMapStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
        found: list[FieldProblem] = []
        for key in data:
            found += every(f"data[{key}]", key, config_key(key))
            if key in binary:
                found.append(invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
        for key in binary:
            found += every(f"binaryData[{key}]", key, config_key(key))
        size = sum(len(value.encode()) for value in data.values()) + sum(map(_decoded_size, binary.values()))
        return [*found, too_long("", LARGEST)] if size > LARGEST else found

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        return _immutable_data(obj, old, "data", "binaryData")


class NamespaceStrategy(BuiltinStrategy):
    """Every namespace has its own name as a label, and the finalizer that keeps it until it is empty."""

    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        name = obj["metadata"].get("name")
        if name:
            obj["metadata"]["labels"] = {**(obj["metadata"].get("labels") or {}), _NAME_LABEL: name}
        if old is None:
            obj["status"] = {"phase": "Active"}
        elif context.subresource != "finalize":
            obj["spec"] = old.get("spec") or {}

    def complete(self, obj: Object, context: WriteContext) -> None:
        finalizers = obj["spec"].get("finalizers") or []
        obj["spec"]["finalizers"] = finalizers if "kubernetes" in finalizers else [*finalizers, "kubernetes"]

    def check_delete(self, obj: Object, context: WriteContext) -> None:
        name = obj["metadata"]["name"]
        if name in _IMMORTAL:
            details = {"name": name, "kind": "namespaces"}
            raise Forbidden(f'namespaces "{name}" is forbidden: this namespace may not be deleted', details=details)

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        sentence = "name is neither a standard finalizer name nor is it fully qualified"
        return [
            invalid("spec.finalizers", finalizer, sentence)
            for finalizer in obj["spec"].get("finalizers") or []
            if finalizer != "kubernetes" and "/" not in finalizer
        ]


def end_namespace(obj: Object, context: WriteContext) -> None:
    """The first step of the deletion of a namespace."""
    obj["status"] = {**obj.get("status", {}), "phase": "Terminating"}


class ServiceAccountStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        found: list[FieldProblem] = []
        for place, secret in enumerate(obj.get("secrets") or []):
            if secret.get("name"):
                found += every(f"secrets[{place}].name", secret["name"], dns_subdomain(secret["name"]))
        return found


STRATEGIES: dict[str, type[BuiltinStrategy]] = {
    "core.Secret": SecretStrategy,
    "core.ConfigMap": ConfigMapStrategy,
    "core.Namespace": NamespaceStrategy,
    "core.ServiceAccount": ServiceAccountStrategy,
}
