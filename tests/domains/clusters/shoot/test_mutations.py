"""Sections 3.0 to 3.4: what each field of a Runtime and of the configuration adds to the Shoot."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.clusters.shoot.documents import authentication, patch_for, shoot_for
from tests.domains.clusters.shoot.samples import (
    CONFIG,
    CONTEXT,
    OIDC,
    TENANT,
    ZONES,
    configuration,
    lived,
    pool,
    runtime,
    with_context,
)

from hortus.domains.clusters.configuration import AuditTenant
from hortus.domains.clusters.shoot import Context
from hortus.kube import Object, yaml

BARE = Context()


def _spec(given: Object, context: Context = CONTEXT, **config: Any) -> Object:
    made: Object = shoot_for(given, configuration(**config), context)["spec"]
    return made


def _extension(spec: Object, type_: str) -> Object | None:
    return next((one for one in spec["extensions"] if one["type"] == type_), None)


# 3.1


@pytest.mark.parametrize(
    ("provider", "profile", "exposure"),
    [
        ("aws", "aws", None),
        ("azure", "az", None),
        ("gcp", "gcp", None),
        ("openstack", "converged-cloud-kyma", "converged-cloud-internet"),
        ("alicloud", "alicloud", None),
    ],
)
def test_each_provider_has_its_cloud_profile_and_exposure(provider: str, profile: str, exposure: str | None) -> None:
    spec = _spec(runtime(provider))
    assert spec["cloudProfileName"] == profile
    assert spec.get("exposureClassName") == exposure


def test_from_kubernetes_1_34_on_the_cloud_profile_is_a_reference() -> None:
    spec = _spec(runtime(kubernetes={"version": "1.34.1"}))
    assert spec["cloudProfile"] == {"kind": "CloudProfile", "name": "aws"}
    assert "cloudProfileName" not in spec


@pytest.mark.parametrize("enforced", [None, False])
def test_a_seed_is_selected_only_when_its_location_is_enforced(enforced: bool | None) -> None:
    assert "seedSelector" not in _spec(runtime(enforceSeedLocation=enforced))


@pytest.mark.parametrize(("region", "restricted"), [("cf-eu11", True), ("cf-ch20", True), ("cf-us10", False)])
def test_european_platform_regions_restrict_access(region: str, restricted: bool) -> None:
    assert ("accessRestrictions" in _spec(runtime(platformRegion=region))) is restricted


def test_one_region_needs_a_toleration_and_only_at_creation() -> None:
    given = runtime("gcp", region="me-central2", pool=pool(zones=["me-central2-a"]))
    made = shoot_for(given, CONFIG, CONTEXT)
    assert made["spec"]["tolerations"] == [{"key": "ksa-assured-workload"}]
    assert "tolerations" not in patch_for(given, lived(made), CONFIG, CONTEXT).shoot["spec"]
    assert "tolerations" not in _spec(runtime())


@pytest.mark.parametrize(("licence", "expected"), [("Partner", "Partner"), ("", None), (None, None)])
def test_the_licence_is_an_annotation_when_there_is_one(licence: str | None, expected: str | None) -> None:
    made = shoot_for(runtime(licenceType=licence), CONFIG, CONTEXT)
    annotations = made["metadata"]["annotations"]
    assert annotations.get("infrastructuremanager.kyma-project.io/licence-type") == expected


@pytest.mark.parametrize(
    ("wanted", "live", "asked"),
    [
        ("1.28", "1.30", "1.30"),
        ("1.28", "1.27", "1.28"),
        (None, "1.28.3", "1.29"),
        (None, "1.30.0", "1.30.0"),
        ("", "1.29", "1.29"),
        ("1.30.4", "1.30", "1.30.4"),
        ("1.30.0", "1.30", "1.30"),
        ("1.30", "1.30.4", "1.30.4"),
        ("1.30", "1.30.0", "1.30.0"),
    ],
)
def test_kubernetes_is_never_taken_back(wanted: str | None, live: str, asked: str) -> None:
    config = configuration(kubernetes__defaultVersion="1.29")
    given = runtime(kubernetes={"version": wanted})
    shoot = lived(shoot_for(given, config, CONTEXT))
    shoot["spec"]["kubernetes"]["version"] = live
    assert patch_for(given, shoot, config, CONTEXT).shoot["spec"]["kubernetes"]["version"] == asked


def test_without_a_version_a_new_shoot_has_the_default() -> None:
    assert _spec(runtime(), kubernetes__defaultVersion="1.29")["kubernetes"]["version"] == "1.29"


@pytest.mark.parametrize(
    ("changes", "has_window"),
    [({}, True), ({"purpose": "evaluation"}, False), ({"region": "eu-west-1"}, False)],
)
def test_a_maintenance_window_is_for_productive_clusters_of_listed_regions(changes: Object, has_window: bool) -> None:
    main = pool(zones=[f"{changes.get('region', 'eu-central-1')}a"])
    assert ("timeWindow" in _spec(runtime(pool=main, **changes))["maintenance"]) is has_window


def test_labels_and_generation_follow_the_runtime_on_a_patch() -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    given = runtime()
    given["metadata"]["generation"] = 2
    given["metadata"]["labels"]["kyma-project.io/global-account-id"] = "ga-2"
    metadata = patch_for(given, live, CONFIG, CONTEXT).shoot["metadata"]
    assert metadata["annotations"]["infrastructuremanager.kyma-project.io/runtime-generation"] == "2"
    assert metadata["labels"] == {"account": "ga-2", "subaccount": "sa-1"}


# 3.2


def test_without_a_dns_provider_the_domain_is_gardeners() -> None:
    spec = _spec(runtime(), dns=None)
    assert "dns" not in spec
    assert _extension(spec, "shoot-dns-service") == {
        "type": "shoot-dns-service",
        "providerConfig": {
            "apiVersion": "service.dns.extensions.gardener.cloud/v1alpha1",
            "kind": "DNSConfig",
            "providers": None,
            "syncProvidersFromShootSpecDNS": True,
        },
    }


def test_dns_and_audit_credentials_are_set_at_creation_only() -> None:
    made = shoot_for(runtime(), CONFIG, CONTEXT)
    live = lived(made)
    del live["spec"]["resources"]
    patched = patch_for(runtime(), live, CONFIG, CONTEXT).shoot["spec"]
    assert "dns" in made["spec"]
    assert "dns" not in patched
    assert "resources" not in patched


def test_resources_of_the_live_shoot_are_kept() -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    live["spec"]["resources"].append({"name": "mine"})
    assert patch_for(runtime(), live, CONFIG, CONTEXT).shoot["spec"]["resources"] == live["spec"]["resources"]


# 3.3


@pytest.mark.parametrize(
    ("egress", "ingress", "expected"),
    [
        (True, None, {"disabled": False}),
        (True, False, {"disabled": False}),
        (True, True, {"disabled": False, "providerConfig": {"egressFilter": {"blackholingEnabled": True}}}),
        (False, True, {"disabled": True}),
        (False, None, {"disabled": True}),
    ],
)
def test_the_network_filter_follows_egress_and_then_ingress(
    egress: bool, ingress: bool | None, expected: Object
) -> None:
    given = runtime()
    rules: Object = {"egress": {"enabled": egress}}
    given["spec"]["security"]["networking"]["filter"] = rules
    if ingress is not None:
        rules["ingress"] = {"enabled": ingress}
    assert _extension(_spec(given), "shoot-networking-filter") == {"type": "shoot-networking-filter", **expected}


def test_without_an_audit_tenant_nothing_of_audit_logging_is_set() -> None:
    spec = _spec(runtime(), with_context(tenant=None))
    assert _extension(spec, "shoot-auditlog-service") is None
    assert "resources" not in spec
    assert "auditConfig" not in spec["kubernetes"]["kubeAPIServer"]


def _patched_extensions(live: list[Object], context: Context = BARE, **spec: Any) -> list[Object]:
    shoot = lived(shoot_for(runtime(), CONFIG, BARE))
    shoot["spec"]["extensions"] = live
    given = runtime()
    given["spec"] |= spec
    found: list[Object] = patch_for(given, shoot, CONFIG, context).shoot["spec"]["extensions"]
    return found


FILTER = {"type": "shoot-networking-filter", "disabled": False}
UNKNOWN = {"type": "somebodys", "providerConfig": {"a": 1}}
CERTIFICATES = {"type": "shoot-cert-service", "providerConfig": {"old": True}}


def test_a_patch_keeps_the_live_list_and_its_order() -> None:
    live = [UNKNOWN, {"type": "shoot-networking-filter", "disabled": True}, CERTIFICATES]
    assert _patched_extensions(live) == [UNKNOWN, FILTER, CERTIFICATES]


def test_a_patch_appends_what_is_missing_and_leaves_created_extensions_alone() -> None:
    found = _patched_extensions([UNKNOWN], Context(tenant=TENANT))
    assert [one["type"] for one in found] == ["somebodys", "shoot-auditlog-service", "shoot-networking-filter"]


def test_audit_log_is_replaced_in_its_place_and_left_alone_without_data() -> None:
    other = AuditTenant(tenant_id="T2", service_url="https://audit.example.org", secret_name="s")
    live = _patched_extensions([UNKNOWN], Context(tenant=TENANT))
    replaced = _patched_extensions(live, Context(tenant=other))
    assert [one["type"] for one in replaced] == [one["type"] for one in live]
    assert replaced[1]["providerConfig"]["tenantID"] == "T2"
    assert _patched_extensions(live, BARE) == live


CACHE = {
    "upstream": "docker.io",
    "remoteURL": "https://registry-1.docker.io",
    "volume": {"size": "100Gi", "storageClassName": "fast"},
    "garbageCollection": {"ttl": "168h"},
    "secretReferenceName": "cred",
    "proxy": {"httpProxy": "http://proxy", "httpsProxy": ""},
    "http": {"tls": True},
}
MADE_CACHE = {name: value for name, value in CACHE.items() if name != "http"}


def _registry(caches: list[Object], disabled: bool = False) -> Object:
    head = {"apiVersion": "registry.extensions.gardener.cloud/v1alpha3", "kind": "RegistryConfig"}
    return {"type": "registry-cache", "disabled": disabled, "providerConfig": {**head, "caches": caches}}


@pytest.mark.parametrize(
    ("wanted", "given", "live", "expected"),
    [
        ({"enabled": True}, (CACHE,), [], [_registry([MADE_CACHE])]),
        ({"enabled": True}, ({"upstream": "quay.io"},), [], [_registry([{"upstream": "quay.io"}])]),
        ({"enabled": True}, (), [], []),
        ({"enabled": False}, (CACHE,), [_registry([MADE_CACHE])], [_registry([MADE_CACHE], True)]),
        ({"enabled": True}, (), [_registry([MADE_CACHE])], [_registry([MADE_CACHE], True)]),
        (None, (CACHE,), [], []),
        ([{"name": "a", "config": CACHE}], (), [], [_registry([MADE_CACHE])]),
        ([], (), [_registry([MADE_CACHE])], [_registry([MADE_CACHE], True)]),
    ],
)
def test_registry_caches_come_as_a_switch_or_as_a_list_and_are_never_taken_off(
    wanted: Any, given: tuple[Object, ...], live: list[Object], expected: list[Object]
) -> None:
    found = _patched_extensions([FILTER, *live], Context(caches=given), imageRegistryCache=wanted)
    assert found == [FILTER, *expected]


def _with_acl(provider: str, cidrs: list[str] | None) -> Object:
    acl = {} if cidrs is None else {"acl": {"allowedCIDRs": cidrs}}
    return runtime(provider, kubernetes={"kubeAPIServer": acl})


@pytest.mark.parametrize("provider", ["aws", "azure"])
def test_an_acl_lets_in_the_user_the_operator_and_the_management_cluster(provider: str) -> None:
    context = with_context(acl=True, operator_cidrs=("198.51.100.0/24", "203.0.113.0/24"), nat_address="192.0.2.7")
    spec = _spec(_with_acl(provider, ["203.0.113.0/24"]), context)
    assert _extension(spec, "acl") == {
        "type": "acl",
        "disabled": False,
        "providerConfig": {
            "rule": {
                "action": "ALLOW",
                "type": "remote_ip",
                "cidrs": ["203.0.113.0/24", "198.51.100.0/24", "192.0.2.7/32"],
            }
        },
    }


def test_an_empty_acl_is_switched_off_and_no_acl_is_none() -> None:
    context = with_context(acl=True)
    assert _extension(_spec(_with_acl("aws", []), context), "acl") == {"type": "acl", "disabled": True}
    assert _extension(_spec(_with_acl("aws", None), context), "acl") is None


def test_an_acl_that_was_taken_away_is_switched_off() -> None:
    live = {"type": "acl", "disabled": False, "providerConfig": {"rule": {"cidrs": ["203.0.113.0/24"]}}}
    assert _patched_extensions([FILTER, live], Context(acl=True)) == [FILTER, {**live, "disabled": True}]
    assert _patched_extensions([FILTER, live], BARE) == [FILTER, live]


def test_nvidia_openshell_is_an_extension_on_request() -> None:
    wanted = {"type": "shoot-nvidia-openshell", "disabled": False}
    assert _extension(_spec(runtime(enableNvidiaOpenshell=True)), wanted["type"]) == wanted  # type: ignore[arg-type]
    assert _patched_extensions([FILTER, wanted]) == [FILTER, {**wanted, "disabled": True}]


def test_token_bounds_gates_and_runtime_config_come_from_the_configuration() -> None:
    kubernetes = _spec(
        runtime(),
        kubernetes__kubeApiServer={
            "maxTokenExpiration": "1h",
            "featureGates": {"ContainerCheckpoint": True},
            "runtimeConfig": {"batch/v1beta1": False},
        },
        kubernetes__kubelet={"featureGates": {"NodeSwap": False}},
    )["kubernetes"]
    assert kubernetes["kubelet"] == {"featureGates": {"NodeSwap": False}}
    api_server = kubernetes["kubeAPIServer"]
    assert api_server["serviceAccountConfig"] == {"extendTokenExpiration": False, "maxTokenExpiration": "720h0m0s"}
    assert api_server["featureGates"] == {"ContainerCheckpoint": True}
    assert api_server["runtimeConfig"] == {"batch/v1beta1": False}


# 3.4

OWN = {
    "clientID": "mine",
    "issuerURL": "https://mine.example.org",
    "groupsClaim": "g",
    "groupsPrefix": "p:",
    "usernameClaim": "email",
    "signingAlgs": ["ES256"],
    "requiredClaims": {"a": "b"},
    "caBundle": "PEM",
    "clientAuthentication": {"secret": "s"},
}


def _with_oidc(oidc: Object | None) -> Object:
    return runtime(kubernetes={"kubeAPIServer": {"oidcConfig": oidc}})


@pytest.mark.parametrize(
    ("oidc", "expected"),
    [
        (None, OIDC),
        ({}, OIDC),
        ({"groupsClaim": "g"}, OIDC),
        ({"clientID": "mine"}, {"clientID": "mine"}),
        (OWN, {name: value for name, value in OWN.items() if name != "clientAuthentication"}),
    ],
)
def test_oidc_of_old_takes_the_default_when_client_and_issuer_are_missing(oidc: Any, expected: Object) -> None:
    spec = _spec(_with_oidc(oidc), BARE)
    assert spec["kubernetes"]["kubeAPIServer"] == {"oidcConfig": expected}


@pytest.mark.parametrize(
    ("oidc", "issuer", "username", "groups"),
    [
        ({"clientID": "mine"}, "https://default.example.org", {"claim": "sub", "prefix": "-"}, ("groups", "")),
        (OWN, "https://mine.example.org", {"claim": "email"}, ("g", "p:")),
    ],
)
def test_structured_authentication_takes_the_default_when_either_is_missing(
    oidc: Object, issuer: str, username: Object, groups: tuple[str, str]
) -> None:
    document = yaml.load(authentication(_with_oidc(oidc), CONFIG)["data"]["config.yaml"])
    (entry,) = document["jwt"]
    assert entry["issuer"]["url"] == issuer
    assert entry["claimMappings"] == {
        "username": username,
        "groups": {"claim": groups[0], "prefix": groups[1]},
    }


def test_old_oidc_fields_are_taken_off_where_structured_authentication_comes() -> None:
    live = lived(shoot_for(runtime(), CONFIG, BARE))
    patch = patch_for(runtime(), live, CONFIG, CONTEXT)
    assert patch.replacement == {
        "metadata": {"resourceVersion": "7"},
        "spec": {"kubernetes": {"kubeAPIServer": {"oidcConfig": None}}},
    }
    assert "oidcConfig" not in patch.shoot["spec"]["kubernetes"]["kubeAPIServer"]
    assert patch_for(runtime(), live, CONFIG, BARE).replacement is None


@pytest.mark.parametrize("provider", ZONES)
def test_a_patch_holds_what_creation_set_but_for_what_is_set_only_then(provider: str) -> None:
    made = shoot_for(runtime(provider), CONFIG, CONTEXT)
    patched = patch_for(runtime(provider), lived(made), CONFIG, CONTEXT).shoot
    expected = {**made, "spec": {key: value for key, value in made["spec"].items() if key != "dns"}}
    assert patched == expected
