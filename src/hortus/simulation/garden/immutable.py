"""Rules of a Shoot that need nothing but the Shoot: what pools and networks look like, and what never changes.

Pure; asked together with the schema, so nothing of what is looked at may be taken for granted. The rest of the rules
compares with a CloudProfile (`offers`).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from itertools import combinations
from typing import Any, Final

import orjson

from hortus.apiserver.resources.definition import FieldProblem
from hortus.kube.objects import Object

GARDEN_NAMESPACE = "garden"
"""The namespace of Gardener's own project."""
MOST_NODES: Final = 10_000
"""The most nodes of a shoot (ours). There are names for a million of a pool: for more, the search of names would not
end."""
_PURPOSES = ("evaluation", "testing", "development", "production")
_OIDC_END = (1, 32)
"""The first version of Kubernetes for which `oidcConfig` is refused."""
_NETWORKS = ("nodes", "pods", "services")
_FIXED = (
    "provider.type",
    "networking.type",
    "networking.pods",
    "networking.services",
    "networking.nodes",
    "controlPlane.highAvailability.failureTolerance.type",
)
"""Paths below spec; the last three may be set once where they were not."""
_SETTABLE = frozenset(("networking.nodes", "controlPlane.highAvailability.failureTolerance.type"))


def own_problems(shoot: Object) -> list[FieldProblem]:
    """Problems of a Shoot by itself, in the words of Gardener 1.117."""
    spec = shoot["spec"]
    return [
        *_purpose_problems(shoot),
        *_authentication_problems(spec),
        *_pool_problems(spec),
        *_network_problems(spec.get("networking") or {}),
    ]


def change_problems(shoot: Object, old: Object) -> list[FieldProblem]:
    """The changes of an update that are not allowed."""
    spec, before = shoot["spec"], old["spec"]
    return [*_fixed_problems(spec, before), *_version_problems(spec, before)]


def _purpose_problems(shoot: Object) -> Iterator[FieldProblem]:
    purpose = shoot["spec"].get("purpose")
    home = shoot["metadata"].get("namespace") == GARDEN_NAMESPACE
    allowed = sorted([*_PURPOSES, "infrastructure"] if home else _PURPOSES)
    if purpose and purpose not in allowed:
        words = ", ".join(f'"{one}"' for one in allowed)
        text = f'Unsupported value: "{purpose}": supported values: {words}'
        yield FieldProblem("spec.purpose", text, "FieldValueNotSupported")


def _authentication_problems(spec: Object) -> Iterator[FieldProblem]:
    api_server = (spec.get("kubernetes") or {}).get("kubeAPIServer") or {}
    oidc = api_server.get("oidcConfig")
    if oidc is not None and _numbers(_at(spec, "kubernetes.version") or "")[:2] >= _OIDC_END:
        text = "for Kubernetes versions >= 1.32, oidcConfig field is no longer supported"
        shown = orjson.dumps(oidc, option=orjson.OPT_SORT_KEYS).decode()
        yield FieldProblem("spec.kubernetes.kubeAPIServer.oidcConfig", f"Invalid value: {shown}: {text}")


def _pool_problems(spec: Object) -> Iterator[FieldProblem]:
    seen: set[str] = set()
    total = sum(least for worker in _workers(spec) if isinstance(least := worker.get("minimum"), int))
    if total > MOST_NODES:
        text = f"Invalid value: {total}: the simulation has {MOST_NODES} nodes at most for a shoot"
        yield FieldProblem("spec.provider.workers", text)
    for index, worker in enumerate(_workers(spec)):
        path, name = f"spec.provider.workers[{index}]", str(worker.get("name", ""))
        if name in seen:
            yield FieldProblem(f"{path}.name", f'Duplicate value: "{name}"', "FieldValueDuplicate")
        seen.add(name)
        least, most = worker.get("minimum"), worker.get("maximum")
        if isinstance(least, int) and isinstance(most, int) and most < least:
            text = "Forbidden: maximum value must not be less than minimum value"
            yield FieldProblem(f"{path}.maximum", text, "FieldValueForbidden")
        surge, unavailable = str(worker.get("maxSurge", 1)), str(worker.get("maxUnavailable", 0))
        if surge.rstrip("%") == "0" and unavailable.rstrip("%") == "0":
            text = f"Invalid value: {unavailable}: may not be 0 when maxSurge is 0"
            yield FieldProblem(f"{path}.maxUnavailable", text)


def _workers(spec: Object) -> list[Object]:
    return (spec.get("provider") or {}).get("workers") or []


def _network_problems(networking: Object) -> Iterator[FieldProblem]:
    found: dict[str, Any] = {}
    for name in _NETWORKS:
        text = networking.get(name)
        if not text:
            continue
        try:
            found[name] = ipaddress.ip_network(str(text))
        except ValueError:
            yield FieldProblem(f"spec.networking.{name}", f'Invalid value: "{text}": must be a valid CIDR')
    for one, other in combinations(found, 2):
        if found[one].version == found[other].version and found[one].overlaps(found[other]):
            text = (
                f'Invalid value: "{networking[other]}": must not overlap with "spec.networking.{one}" ("{found[one]}")'
            )
            yield FieldProblem(f"spec.networking.{other}", text)


def _fixed_problems(spec: Object, before: Object) -> Iterator[FieldProblem]:
    for path in _FIXED:
        had, has = _at(before, path), _at(spec, path)
        if has != had and not (had is None and path in _SETTABLE):
            yield FieldProblem(f"spec.{path}", f'Invalid value: "{"" if has is None else has}": field is immutable')


def _version_problems(spec: Object, before: Object) -> Iterator[FieldProblem]:
    had, has = (_numbers(_at(one, "kubernetes.version") or "") for one in (before, spec))
    text = ""
    if had and has < had:
        text = "Forbidden: kubernetes version downgrade is not supported"
    elif had and has and (has[0] != had[0] or has[1] > had[1] + 1):
        text = "Forbidden: kubernetes version upgrade cannot skip a minor version"
    if text:
        yield FieldProblem("spec.kubernetes.version", text, "FieldValueForbidden")


def _numbers(version: str) -> tuple[int, ...]:
    parts = str(version).split(".")
    return tuple(int(part) for part in parts) if len(parts) >= 2 and all(part.isdecimal() for part in parts) else ()


def _at(spec: Object, path: str) -> Any:
    found: Any = spec
    for name in path.split("."):
        found = (found or {}).get(name)
    return found
