"""The binding of a Shoot, and the fields that end with a version of Kubernetes, on creation and on patches."""

from __future__ import annotations

import pytest
from tests.domains.clusters.shoot.documents import patch_for, problems_of, remarks_of, shoot_for
from tests.domains.clusters.shoot.samples import CONFIG, CONTEXT, configuration, lived, runtime, with_context

from hortus.kube import Object
from hortus.kube.patches import apply_merge_patch

KEY = configuration(gardener__enableCredentialBinding=True)
BINDINGS = ("secretBindingName", "credentialsBindingName")


def _of(version: str, **shoot: object) -> Object:
    return runtime(kubernetes={"version": version}, **shoot)


def _named(shoot: Object) -> Object:
    return {name: shoot["spec"][name] for name in BINDINGS if name in shoot["spec"]}


@pytest.mark.parametrize("version", ["1.31", "1.33.9", "1.34", "1.34.0", "1.35.2", "1.36.0"])
@pytest.mark.parametrize("config", [CONFIG, KEY], ids=["without the key", "with the key"])
def test_a_new_shoot_names_its_binding_by_the_version_or_by_the_key(version: str, config: object) -> None:
    made = shoot_for(_of(version), config, CONTEXT)  # type: ignore[arg-type]
    is_new = config is KEY or version >= "1.34"
    assert _named(made) == {BINDINGS[is_new]: "sb-1"}


@pytest.mark.parametrize(("config", "version"), [(CONFIG, "1.34.1"), (KEY, "1.33.5")])
def test_a_patch_replaces_a_secret_binding_before_the_apply(config: object, version: str) -> None:
    live = lived(shoot_for(_of("1.33.5"), CONFIG, CONTEXT))
    patch = patch_for(_of(version), live, config, CONTEXT)  # type: ignore[arg-type]
    assert patch.replacement == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"secretBindingName": None, "credentialsBindingName": "sb-1"},
    }
    assert _named(patch.shoot) == {"credentialsBindingName": "sb-1"}
    after = apply_merge_patch(live, patch.replacement)
    assert patch_for(_of(version), after, config, CONTEXT).replacement is None  # type: ignore[arg-type]


def test_the_credentials_binding_of_the_same_secret_is_taken_where_it_has_another_name() -> None:
    live = lived(shoot_for(_of("1.33.5"), CONFIG, CONTEXT))
    patch = patch_for(_of("1.34.1"), live, CONFIG, with_context(credentials_binding="force-migrated-sb-1"))
    assert patch.replacement is not None
    assert _named(patch.shoot) == {"credentialsBindingName": "force-migrated-sb-1"}
    assert patch.replacement["spec"] == {"secretBindingName": None, "credentialsBindingName": "force-migrated-sb-1"}


@pytest.mark.parametrize("version", ["1.33.5", "1.34.1"])
@pytest.mark.parametrize(
    ("name", "remarked"), [("sb-1", False), ("force-migrated-sb-1", False), ("of-a-workload-identity", True)]
)
def test_a_credentials_binding_of_a_live_shoot_stays(version: str, name: str, remarked: bool) -> None:
    live = lived(shoot_for(_of(version), CONFIG, CONTEXT))
    live["spec"].pop("secretBindingName", None)
    live["spec"]["credentialsBindingName"] = name
    patch = patch_for(_of(version), live, CONFIG, CONTEXT)
    assert (patch.replacement, _named(patch.shoot)) == (None, {"credentialsBindingName": name})
    remark = (
        f'spec.shoot.secretBindingName: Invalid value: "sb-1": the shoot has the CredentialsBinding {name}, which stays'
    )
    assert (remark in map(str, remarks_of(_of(version), CONFIG, CONTEXT, live=live))) is remarked


def test_a_secret_binding_is_changed_for_a_credentials_binding_alone() -> None:
    live = lived(shoot_for(_of("1.33.5"), CONFIG, CONTEXT))
    refused = 'spec.shoot.secretBindingName: Invalid value: "sb-2": cannot be changed; the shoot has sb-1'
    assert refused in map(str, problems_of(_of("1.33.5", secretBindingName="sb-2"), CONFIG, CONTEXT, live=live))
    assert problems_of(_of("1.34.1", secretBindingName="sb-2"), CONFIG, CONTEXT, live=live) == []
    assert problems_of(_of("1.33.5", secretBindingName="sb-2"), KEY, CONTEXT, live=live) == []


@pytest.mark.parametrize(
    ("version", "reference"),
    [
        ("1.34.3", {"secretName": "dns-cred"}),
        ("1.35.0", {"credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "dns-cred"}}),
    ],
)
def test_dns_providers_name_their_secret_by_the_version(version: str, reference: Object) -> None:
    provider = {"domains": {"include": ["c-1.dev.example.org"]}, "primary": True, "type": "aws-route53", **reference}
    assert shoot_for(_of(version), CONFIG, CONTEXT)["spec"]["dns"]["providers"] == [provider]


def test_an_upgrade_moves_dns_providers_in_one_request_with_the_version() -> None:
    """Below 1.35 the garden writes `secretName` again."""
    live = lived(shoot_for(_of("1.34.3"), CONFIG, CONTEXT))
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "dns-cred"}
    live["spec"]["dns"]["providers"][0]["credentialsRef"] = reference
    live["spec"]["dns"]["providers"].append({"type": "unmanaged"})
    assert patch_for(_of("1.34.3"), live, CONFIG, CONTEXT).replacement is None
    patch = patch_for(_of("1.35.0"), live, CONFIG, CONTEXT)
    provider = {"domains": {"include": ["c-1.dev.example.org"]}, "primary": True, "type": "aws-route53"}
    assert patch.replacement == {
        "metadata": {"resourceVersion": "7"},
        "spec": {
            "dns": {"providers": [{**provider, "credentialsRef": reference}, {"type": "unmanaged"}]},
            "kubernetes": {"version": "1.35.0"},
        },
    }
    assert "dns" not in patch.shoot["spec"]
    after = apply_merge_patch(live, patch.replacement)
    assert patch_for(_of("1.35.0"), after, CONFIG, CONTEXT).replacement is None


def test_all_that_ends_is_replaced_by_one_request() -> None:
    """A Shoot may lag behind by several fields, such as one that another system made."""
    live = lived(shoot_for(_of("1.34.3"), CONFIG, CONTEXT))
    spec = live["spec"]
    spec["secretBindingName"] = spec.pop("credentialsBindingName")
    spec["kubernetes"]["kubeAPIServer"]["oidcConfig"] = {"clientID": "c", "issuerURL": "https://login.example.org"}
    patch = patch_for(_of("1.35.0"), live, CONFIG, CONTEXT)
    assert patch.replacement is not None
    asked = patch.replacement["spec"]
    assert (asked["secretBindingName"], asked["credentialsBindingName"]) == (None, "sb-1")
    assert asked["kubernetes"] == {"version": "1.35.0", "kubeAPIServer": {"oidcConfig": None}}
