"""The tables of the kind: chart references, values, configuration, bootstrap tokens, verdicts. Pure."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.garden.gardenlets.world import configuration

from hortus.domains.garden.gardenlets import bootstrap, config
from hortus.domains.garden.gardenlets.acceptance import problems
from hortus.domains.garden.gardenlets.health import verdict
from hortus.domains.garden.gardenlets.settings import FLAGS, gardenlet_settings
from hortus.domains.garden.gardenlets.values import TO_GARDEN, chart_values, checksum_of
from hortus.domains.garden.types import Gardenlet, RegisteredSeed
from hortus.engine.flags import FlagError
from hortus.kube.objects import format_time
from hortus.schema import crd, decode

DIGEST = "sha256:" + "a" * 64
NOW = 1_700_000_000.0


def gardenlet(name: str = "one", *, repository: Any = None, config: Any = ..., **parts: Any) -> Gardenlet:
    deployment = {"helm": {"ociRepository": repository or {"ref": "r.example.org/c:1"}}, **parts.pop("deployment", {})}
    spec = {"deployment": deployment, "config": configuration() if config is ... else config}
    metadata = {"name": name, "namespace": "garden", "generation": 3, **parts.pop("metadata", {})}
    document = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "Gardenlet",
        "metadata": metadata,
        "spec": spec,
        **parts,
    }
    return decode(Gardenlet, document)


@pytest.mark.parametrize(
    ("repository", "url"),
    [
        ({"ref": "r.example.org/c:1"}, "r.example.org/c:1"),
        ({"ref": "oci://r.example.org/c:1"}, "r.example.org/c:1"),
        ({"ref": f"r.example.org/c@{DIGEST}", "repository": "x", "tag": "2"}, f"r.example.org/c@{DIGEST}"),
        ({"repository": "r.example.org/c", "tag": "1"}, "r.example.org/c:1"),
        ({"repository": "oci://r.example.org/c", "tag": "1"}, "r.example.org/c:1"),
        ({"repository": "r.example.org/c", "digest": DIGEST}, f"r.example.org/c@{DIGEST}"),
        ({"repository": "r.example.org/c", "digest": DIGEST, "tag": "1"}, f"r.example.org/c@{DIGEST}"),
        ({"repository": "r.example.org/c"}, "r.example.org/c"),
    ],
)
def test_the_reference_wins_over_the_digest_and_that_over_the_tag(repository: dict[str, str], url: str) -> None:
    assert gardenlet(repository=repository).chart == url


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"config": None}, "spec.config: is needed"),
        ({"config": {"apiVersion": "v1", "kind": "Pod", "seedConfig": {"spec": {}}}}, "GardenletConfiguration of"),
        ({"config": configuration() | {"seedConfig": {}}}, "spec.config.seedConfig: is needed"),
        ({"config": configuration() | {"seedConfig": {"spec": {}, "metadata": []}}}, ""),
        ({"config": configuration() | {"seedConfig": {"spec": {}, "metadata": "a"}}}, "metadata: must be an object"),
        ({"config": configuration() | {"gardenClientConnection": "a"}}, "gardenClientConnection: must be an object"),
        ({"config": configuration() | {"gardenClientConnection": {"kubeconfigSecret": "a"}}}, "must be objects"),
        ({"config": configuration(backup="a")}, "seedConfig.spec.backup"),
        ({"metadata": {"namespace": "default"}}, "metadata.namespace: must be garden"),
        ({"name": "self-hosted-shoot-x"}, "self-hosted-shoot-"),
        ({"name": "x" * 64}, "DNS label"),
        ({"name": "Seed"}, "DNS label"),
        ({"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}}, "must be one of reconcile"),
    ],
)
def test_a_broken_rule_is_named_with_its_field(changes: dict[str, Any], says: str) -> None:
    found = "; ".join(problems(gardenlet(**changes)))
    assert (says in found) if says else found == ""


@given(
    st.recursive(
        st.none() | st.booleans() | st.text(max_size=5),
        lambda of: st.dictionaries(
            st.sampled_from(
                [
                    "seedConfig",
                    "spec",
                    "metadata",
                    "name",
                    "backup",
                    "settings",
                    "gardenClientConnection",
                    "kubeconfigSecret",
                    "bootstrapKubeconfig",
                    "leaderElection",
                ]
            ),
            of,
            max_size=4,
        ),
    )
)
def test_no_configuration_that_passes_fails_to_be_computed(found: Any) -> None:
    given_config = {**configuration(), **found} if isinstance(found, dict) else configuration()
    if not list(config.config_problems(given_config, "one")):
        made = config.computed(given_config, "one", address="https://api.example.org", bootstrap="kubeconfig")
        assert made["seedConfig"]["metadata"]["name"] == "one"
        assert made["leaderElection"]["resourceNamespace"] == "garden"


def test_the_configuration_gets_what_the_operator_knows() -> None:
    given_config = configuration() | {"leaderElection": {"leaderElect": True}, "gardenClientConnection": {"qps": 100}}
    made = config.computed(given_config, "one", address="https://api.example.org", bootstrap="kubeconfig")
    assert made["leaderElection"] == {"leaderElect": True, "resourceNamespace": "garden"}
    assert made["gardenClientConnection"] == {
        "qps": 100,
        "gardenClusterAddress": "https://api.example.org",
        "kubeconfigSecret": {"name": "gardenlet-kubeconfig", "namespace": "garden"},
        "bootstrapKubeconfig": {
            "name": "gardenlet-kubeconfig-bootstrap",
            "namespace": "garden",
            "kubeconfig": "kubeconfig",
        },
    }
    assert "bootstrapKubeconfig" not in config.computed(made, "one", address="", bootstrap="")["gardenClientConnection"]


def test_names_and_addresses_of_the_configuration_are_kept() -> None:
    connection = {
        "gardenClusterAddress": "https://mine",
        "kubeconfigSecret": {"name": "mine"},
        "bootstrapKubeconfig": {"name": "begin", "namespace": "there"},
    }
    given_config = configuration() | {"gardenClientConnection": connection}
    made = config.computed(given_config, "one", address="https://other", bootstrap="k")["gardenClientConnection"]
    assert made["gardenClusterAddress"] == "https://mine"
    assert made["kubeconfigSecret"] == {"name": "mine", "namespace": "garden"}
    assert made["bootstrapKubeconfig"] == {"name": "begin", "namespace": "there", "kubeconfig": "k"}


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({}, True),
        ({"verticalPodAutoscaler": {"enabled": True}}, True),
        ({"verticalPodAutoscaler": {"enabled": False}}, False),
    ],
)
def test_a_seed_has_an_autoscaler_by_default(settings: dict[str, Any], wanted: bool) -> None:
    assert config.wants_vpa(configuration(settings=settings)) is wanted


def test_values_are_those_of_the_chart_and_left_out_where_the_chart_decides() -> None:
    assert chart_values(gardenlet(), {"a": 1}) == {
        "replicaCount": 2,
        "revisionHistoryLimit": 2,
        "enableHealthProbes": True,
        "config": {"a": 1},
    }
    full = gardenlet(
        deployment={
            "replicaCount": 0,
            "revisionHistoryLimit": 1,
            "enableHealthProbes": False,
            "serviceAccountName": "other",
            "image": {"repository": "r", "tag": "t", "pullPolicy": "Always"},
            "resources": {"limits": {"cpu": "1"}},
            "podLabels": {"a": "b"},
            "podAnnotations": {"c": "d"},
            "additionalVolumes": [{"name": "v"}],
            "additionalVolumeMounts": [{"name": "v", "mountPath": "/v"}],
            "env": [{"name": "E", "value": "1"}],
            "tolerations": [{"operator": "Exists"}],
            "imageVectorOverwrite": "images: []",
            "componentImageVectorOverwrite": "components: []",
        }
    )
    assert chart_values(full, {}, backup="backup-12345678", in_garden=True) == {
        "replicaCount": 0,
        "revisionHistoryLimit": 1,
        "enableHealthProbes": False,
        "serviceAccountName": "other",
        "image": {"repository": "r", "tag": "t", "pullPolicy": "Always"},
        "resources": {"limits": {"cpu": "1"}},
        "podLabels": {"a": "b", TO_GARDEN: "allowed"},
        "podAnnotations": {"c": "d", "checksum/seed-backup-secret": "backup-12345678"},
        "additionalVolumes": [{"name": "v"}],
        "additionalVolumeMounts": [{"name": "v", "mountPath": "/v"}],
        "env": [{"name": "E", "value": "1"}],
        "tolerations": [{"operator": "Exists"}],
        "imageVectorOverwrite": "images: []",
        "componentImageVectorOverwrites": "components: []",
        "config": {},
    }


def test_a_checksum_follows_the_data_and_not_its_order() -> None:
    assert checksum_of("b", {"a": "1", "c": "2"}) == checksum_of("b", {"c": "2", "a": "1"})
    assert checksum_of("b", {"a": "1"}) != checksum_of("b", {"a": "2"})
    assert re.fullmatch("b-[0-9a-f]{8}", checksum_of("b", {}))


def test_the_identifier_of_a_token_follows_from_the_name() -> None:
    # printf 'garden--my-seed' | sha256sum
    assert bootstrap.token_id("garden", "my-seed") == "88264c"
    assert bootstrap.token_id("garden", "other") != bootstrap.token_id("garden", "my-seed")


def encoded(**data: str) -> dict[str, str]:
    names = {key.replace("_", "-"): value for key, value in data.items()}
    return {key: base64.b64encode(value.encode()).decode() for key, value in names.items()}


SECRET = "0123456789abcdef"


@pytest.mark.parametrize(
    ("found", "kept", "expires"),
    [
        pytest.param(None, False, NOW + 86400, id="none"),
        pytest.param(encoded(token_secret=SECRET, expiration=format_time(NOW + 60)), True, NOW + 60, id="alive"),
        pytest.param(encoded(token_secret=SECRET, expiration=format_time(NOW - 60)), True, NOW + 86400, id="expired"),
        pytest.param(encoded(token_secret=SECRET, expiration=format_time(NOW)), True, NOW + 86400, id="just-expired"),
        pytest.param(encoded(token_secret=SECRET, expiration="soon"), True, NOW + 86400, id="no-time"),
        pytest.param(encoded(token_secret=SECRET), True, NOW + 86400, id="no-expiration"),
        pytest.param(encoded(token_secret="SHORT", expiration=format_time(NOW + 60)), False, NOW + 86400, id="wrong"),
        pytest.param({"token-secret": "%", "expiration": "%"}, False, NOW + 86400, id="no-base64"),
    ],
)
def test_a_token_is_reused_while_it_lives(found: dict[str, str] | None, kept: bool, expires: float) -> None:
    token = bootstrap.next_token("garden", "one", found, NOW)
    assert (token.secret.reveal() == SECRET) is kept
    assert re.fullmatch("[0-9a-z]{16}", token.secret.reveal())
    assert token.expires == expires
    again = bootstrap.token_secret(token, "garden", "one")["data"]
    assert bootstrap.next_token("garden", "one", again, NOW) == token


def test_the_secret_of_a_token_is_read_by_kubernetes() -> None:
    made = bootstrap.token_secret(bootstrap.next_token("garden", "one", None, NOW), "garden", "one")
    data = {key: base64.b64decode(value).decode() for key, value in made["data"].items()}
    assert made["type"] == "bootstrap.kubernetes.io/token"
    assert made["metadata"] == {"name": f"bootstrap-token-{data['token-id']}", "namespace": "kube-system"}
    assert data["usage-bootstrap-authentication"] == data["usage-bootstrap-signing"] == "true"
    assert "Gardenlet garden/one" in data["description"]


def conditions(*found: tuple[str, str, str]) -> list[dict[str, str]]:
    stamp = format_time(NOW - 10)
    return [
        {"type": kind, "status": status, "message": message, "lastUpdateTime": stamp, "lastTransitionTime": stamp}
        for kind, status, message in found
    ]


def seed(*found: tuple[str, str]) -> RegisteredSeed:
    status = {"conditions": [{"type": kind, "status": value} for kind, value in found]}
    return decode(RegisteredSeed, {"metadata": {"name": "one"}, "status": status})


WELL = seed(("GardenletReady", "True"), ("SeedSystemComponentsHealthy", "Progressing"))
APPLIED = ("GardenletReconciled", "True", "")
SETTLING = ("SeedHealthy", "Progressing", "Generation 3 is applied; the Seed has to stay well for {} s.")


@pytest.mark.parametrize(
    ("status", "found", "settle", "expected"),
    [
        pytest.param({}, WELL, 0, ("Progressing", "NotApplied"), id="new"),
        pytest.param(
            {"observedGeneration": 2, "conditions": conditions(APPLIED)},
            WELL,
            0,
            ("Progressing", "NotApplied"),
            id="older-generation",
        ),
        pytest.param(
            {"observedGeneration": 3, "conditions": conditions(("GardenletReconciled", "False", "x"))},
            WELL,
            0,
            ("False", "GardenletRefused"),
            id="refused",
        ),
        pytest.param(
            {"observedGeneration": 3, "conditions": conditions(APPLIED)}, WELL, 0, ("True", "SeedWell"), id="well"
        ),
        pytest.param(
            {"observedGeneration": 3, "conditions": conditions(APPLIED)}, None, 0, ("False", "SeedUnwell"), id="no-seed"
        ),
        pytest.param(
            {"observedGeneration": 3, "conditions": conditions(APPLIED)},
            seed(),
            0,
            ("False", "SeedUnwell"),
            id="silent",
        ),
        pytest.param(
            {"observedGeneration": 3, "conditions": conditions(APPLIED)},
            seed(("GardenletReady", "Unknown")),
            0,
            ("False", "SeedUnwell"),
            id="unknown",
        ),
        pytest.param(
            {"observedGeneration": 3, "conditions": conditions(APPLIED)},
            WELL,
            60,
            ("Progressing", "Settling"),
            id="begins-to-settle",
        ),
        pytest.param(
            {"observedGeneration": 3, "conditions": conditions(APPLIED, SETTLING)},
            WELL,
            60,
            ("Progressing", "Settling"),
            id="settles",
        ),
        pytest.param(
            {"observedGeneration": 3, "conditions": conditions(APPLIED, SETTLING)},
            WELL,
            5,
            ("True", "SeedWell"),
            id="has-settled",
        ),
    ],
)
def test_a_change_counts_once_the_seed_stayed_well(
    status: dict[str, Any], found: RegisteredSeed | None, settle: float, expected: tuple[str, str]
) -> None:
    for one in status.get("conditions", ()):
        one["message"] = one["message"].format(settle)
    judged = verdict(gardenlet(status=status), found, settle=settle, now=NOW)
    assert (judged.status, judged.reason) == expected
    assert judged.message.startswith("Generation 3 ")
    assert (judged.after is not None) is (judged.reason == "Settling")


@pytest.mark.parametrize(
    ("flag", "value", "says"),
    [
        ("gardenlet-self-upgrade", "*", "--gardenlet-seed-kubeconfigs"),
        ("gardenlet-ctrl-workers-cnt", 0, "1 or more"),
        ("gardenlet-settle-duration", -1.0, "negative"),
    ],
)
def test_flags_that_cannot_be_used_are_named(flag: str, value: Any, says: str) -> None:
    values = {one.name: one.default for one in FLAGS}
    assert gardenlet_settings(values).settle == 60.0
    with pytest.raises(FlagError, match=says):
        gardenlet_settings(values | {flag: value})


def test_registries_are_local_or_plain() -> None:
    values = {one.name: one.default for one in FLAGS}
    found = gardenlet_settings(values | {"gardenlet-registry-hosts": "http://a:1, b"})
    assert (found.plain_registries, found.local_registries) == ({"a:1"}, {"a:1", "b"})


def test_the_kind_has_the_defaults_of_gardener() -> None:
    schema = crd(Gardenlet)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    deployment = schema["deployment"]["properties"]
    defaults = {name: found["default"] for name, found in deployment.items() if "default" in found}
    assert defaults == {"replicaCount": 2, "revisionHistoryLimit": 2, "enableHealthProbes": True}
