"""The RBAC rules of modules next to those of Kyma's lifecycle-manager: what differs is named here, with its reason."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from hortus.domains.modules import rbac
from hortus.domains.modules.watching.rbac import ISTIO
from hortus.engine.deputies import IMPERSONATES, REVIEWS
from hortus.engine.rbac import Permission
from hortus.kube import yaml

READ = {"get", "list", "watch"}
KINDS = ("kymas", "manifests", "modulereleasemetas", "moduletemplates", "watchers")


class Use(NamedTuple):
    """One verb on one resource."""

    group: str
    resource: str
    verb: str


def ours(permissions: Iterable[Permission]) -> set[Use]:
    return {Use(one.group, name, verb) for one in permissions for name in one.resources for verb in one.verbs}


def theirs(path: Path) -> set[Use]:
    rules = [rule for document in yaml.load_all(path.read_bytes()) if document for rule in document["rules"]]
    return {
        Use(group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


OWN = "operator.kyma-project.io"
NOT_ASKED_FOR = {
    # Patches and server-side apply stand in for updates.
    *(Use(OWN, name, "update") for name in (*KINDS, "kymas/status", "manifests/status", "watchers/status")),
    *(Use(OWN, f"{name}/finalizers", "update") for name in KINDS),
    *(Use(OWN, name, "get") for name in ("kymas/status", "manifests/status", "watchers/status")),
    *(Use(OWN, "moduletemplates", verb) for verb in ("get", "patch")),
    Use(OWN, "kymas/status", "watch"),
    Use("networking.istio.io", "gateways", "get"),
    Use("networking.istio.io", "virtualservices", "update"),
    # Secrets of the control plane are read only.
    *(Use("", "secrets", verb) for verb in ("create", "delete", "update")),
    # Nothing reads these.
    *(Use("", name, verb) for name in ("configmaps", "services") for verb in READ),
    # Events are created in the core group, by the rules that all controllers share.
    *(Use("events.k8s.io", "events", verb) for verb in ("create", "patch", *READ)),
}
NEWLY_ASKED_FOR = {
    # Central configuration is an addition.
    *(Use("fleet.hortus.dev", "moduleconfigurations", verb) for verb in ("list", "watch")),
    Use(OWN, "modulereleasemetas", "patch"),
    Use("networking.istio.io", "gateways", "watch"),
    Use("networking.istio.io", "virtualservices", "patch"),
    Use("networking.istio.io", "virtualservices", "watch"),
}
ISTIO_NOT = {Use("", "secrets", "update"), Use("cert-manager.io", "certificates/status", "update")}
ISTIO_NEW = {Use("", "secrets", "patch"), Use("cert-manager.io", "certificates/status", "patch")}


def test_in_the_namespace_of_kymas_a_patch_is_asked_for_in_place_of_an_update(upstream: Path) -> None:
    theirs_ = theirs(upstream / "klm" / "rbac" / "manager_role.yaml")
    assert theirs_ - ours(rbac.CONTROL) == NOT_ASKED_FOR
    assert ours(rbac.CONTROL) - theirs_ == NEWLY_ASKED_FOR


def test_in_the_namespace_of_certificates_only_the_other_issuer_s_kind_is_new(upstream: Path) -> None:
    theirs_ = theirs(upstream / "klm" / "rbac" / "certmanager_role.yaml")
    mine = {use for use in ours(ISTIO) if use.group != "cert.gardener.cloud"}
    assert (theirs_ - mine, mine - theirs_) == (ISTIO_NOT, ISTIO_NEW)


def test_of_crds_only_the_status_is_written(upstream: Path) -> None:
    theirs_ = theirs(upstream / "klm" / "rbac" / "crd_cluster_role.yaml")
    group = "apiextensions.k8s.io"
    written = {Use(group, "customresourcedefinitions/status", verb) for verb in ("update", "patch")}
    deputies = ours((IMPERSONATES, REVIEWS))
    assert theirs_ ^ ours(rbac.WIDE) == written | {Use(group, "customresourcedefinitions", "get")} | deputies


def test_kymas_templates_releases_and_watchers_are_created_and_deleted_by_others_alone() -> None:
    forbidden = {
        Use(OWN, name, verb)
        for name in KINDS
        if name != "manifests"
        for verb in ("create", "delete", "deletecollection")
    }
    assert ours(rbac.CONTROL) & forbidden == set()
