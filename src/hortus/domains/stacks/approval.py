"""Approval of releases by StackPolicies.

A release that no StackPolicy of its namespace is about is approved, so that a namespace without StackPolicies is as
with the Go operator. Otherwise one of these policies must list its version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hortus.domains.stacks.names import ReleaseName, parse_minor
from hortus.domains.stacks.types import StackPolicy, StackPolicySpec
from hortus.engine import Cache, read
from hortus.kube.objects import key_of


class Approvals:
    """The approvals of all namespaces. `policies` is the cache of StackPolicies."""

    def __init__(self, policies: Cache) -> None:
        self._policies = policies

    def approves(self, namespace: str, name: ReleaseName) -> bool:
        """Reports whether a release of `namespace` is approved for any namespace. Raises NotReadable."""
        return is_approved(self._specs(namespace), name)

    def _specs(self, namespace: str) -> Iterator[StackPolicySpec]:
        for obj in self._policies.values():
            if key_of(obj).namespace == namespace:
                yield read(StackPolicy, obj).spec


def is_approved(policies: Iterable[StackPolicySpec], name: ReleaseName, *, user: str = "") -> bool:
    """Reports whether the StackPolicies of a release's namespace approve it: for `user`, a namespace, or for any."""
    about = [spec for spec in policies if _concerns(spec, name)]
    return not about or any(_lists(spec, name, user) for spec in about)


def refusal(namespace: str, name: ReleaseName, *, user: str = "") -> str:
    """The report for a release of `namespace` that is not approved, with the fix."""
    whom = f" for namespace {user}" if user else ""
    version = name.version.dot
    return (
        f"release {name.tag} is not approved{whom}: no StackPolicy of namespace {namespace} lists {version}; "
        f"choose an approved version, or add {version} to the versions of a StackPolicy"
    )


def _concerns(spec: StackPolicySpec, name: ReleaseName) -> bool:
    return (
        spec.provider == name.provider
        and spec.name in ("", name.stack)
        and (not spec.kubernetes_version or parse_minor(spec.kubernetes_version) == name.kubernetes)
    )


def _lists(spec: StackPolicySpec, name: ReleaseName, user: str) -> bool:
    return name.version.dot in spec.versions and (not user or not spec.namespaces or user in spec.namespaces)
