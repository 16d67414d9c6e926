"""Grants of what a GardenerCluster may ask for beyond its own: any shoot, and Secrets in other namespaces.

The controller may read every shoot's kubeconfig and write Secrets wherever it is allowed, and an editor of a
GardenerCluster makes it do so. In the home namespace, where the Go system has all its objects, any shoot may be named.
Elsewhere the operator allows it by a flag; a shoot also allows it itself, by an annotation that only those can write
who may change Shoots in the garden. Secrets in other namespaces are the operator's to allow.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

from hortus.domains.credentials.types import HOME, Annotation, GardenerCluster

SHOOTS_FLAG = "allowed-shoots"
SECRETS_FLAG = "allowed-secret-namespaces"


class Grants(msgspec.Struct, frozen=True):
    """The operator's choices."""

    home: str = HOME
    """The namespace whose GardenerClusters may name any shoot."""
    shoots: tuple[tuple[str, str], ...] = ()
    """Namespaces of GardenerClusters, with names of shoots; `*` in either stands for any text."""
    secrets: tuple[tuple[str, str], ...] = ()
    """Namespaces of GardenerClusters, with namespaces of their Secrets; as above."""

    @classmethod
    def parse(cls, *, home: str, shoots: str, secrets: str) -> Grants:
        """Reads `team-a/a-*,team-b/b-1`. Raises ValueError."""
        return cls(home, tuple(_pairs(shoots)), tuple(_pairs(secrets)))

    def shoot_refusal(self, cluster: GardenerCluster, allowed: Iterable[str]) -> str:
        """The reason why the cluster may not have the kubeconfig of its shoot; empty when it may.

        `allowed` are the namespaces that the shoot itself allows. A shoot that does not exist is refused alike, so
        that nobody learns which ones there are.
        """
        namespace, shoot = cluster.metadata.namespace, cluster.shoot
        if namespace in (self.home, *allowed) or _granted(self.shoots, namespace, shoot):
            return ""
        return (
            f"GardenerClusters of namespace {namespace} may not have the kubeconfig of shoot {shoot} (operator: allow "
            f"{namespace}/{shoot} with --{SHOOTS_FLAG}, or annotate the shoot with "
            f"{Annotation.ALLOWED_NAMESPACES}={namespace})"
        )

    def secret_refusal(self, cluster: GardenerCluster) -> str:
        """The reason why the cluster may not keep its Secret where it says; empty when it may."""
        here, there = cluster.metadata.namespace, cluster.secret.namespace
        if cluster.is_at_home or _granted(self.secrets, here, there):
            return ""
        return (
            f"GardenerClusters of namespace {here} may not keep Secrets in namespace {there} (cluster owner: name "
            f"{here} in spec.kubeconfig.secret.namespace; or operator: allow {here}/{there} with --{SECRETS_FLAG})"
        )


def _granted(pairs: Iterable[tuple[str, str]], one: str, other: str) -> bool:
    return any(fnmatchcase(one, first) and fnmatchcase(other, second) for first, second in pairs)


def _pairs(text: str) -> Iterable[tuple[str, str]]:
    for entry in filter(None, (part.strip() for part in text.split(","))):
        first, slash, second = entry.partition("/")
        if not first or not slash or not second or set(entry) & set("/[?]") - {"/"} or "/" in second:
            raise ValueError(f"{entry!r} is not of the form namespace/name, where * stands for any text")
        yield first, second
