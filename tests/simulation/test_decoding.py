"""Values of another type, unknown fields and fractions in a Shoot, over the wire, in Gardener's words."""

from __future__ import annotations

import copy
import subprocess
from contextlib import suppress
from typing import Any

import pytest
from tests.gardener.shoots.corpus import cases
from tests.simulation.garden import NAMESPACE
from tests.simulation.shoots import small_shoot

from hortus.kube import Client, Resource
from hortus.kube.errors import BadRequest, Forbidden, Invalid, KubeError
from hortus.kube.objects import Object
from hortus.simulation.garden.kinds import SHOOTS, WORKLOAD_IDENTITIES
from hortus.testing.apiserver import TestServer

PREFIX = 'Shoot in version "v1beta1" cannot be handled as a Shoot: '
BASTIONS = Resource("operations.gardener.cloud", "v1alpha1", "bastions", "Bastion")
INTERNAL_SECRETS = Resource("core.gardener.cloud", "v1beta1", "internalsecrets", "InternalSecret")


def shoot(name: str, **spec: Any) -> Object:
    made = small_shoot("demo", 3)
    made["metadata"]["name"] = name
    made["spec"] |= copy.deepcopy(spec)
    return made


_WRONG = {
    "kubernetes": (5, "number into Go struct field ShootSpec.spec.kubernetes of type v1beta1.Kubernetes"),
    "provider": (5, "number into Go struct field ShootSpec.spec.provider of type v1beta1.Provider"),
    "networking": (5, "number into Go struct field ShootSpec.spec.networking of type v1beta1.Networking"),
    "dns": (5, "number into Go struct field ShootSpec.spec.dns of type v1beta1.DNS"),
    "maintenance": (5, "number into Go struct field ShootSpec.spec.maintenance of type v1beta1.Maintenance"),
    "hibernation": (
        {"enabled": "yes"},
        "string into Go struct field Hibernation.spec.hibernation.enabled of type bool",
    ),
}


@pytest.mark.parametrize("field", _WRONG)
async def test_a_value_of_another_type_is_refused_in_the_words_of_go(garden: Client, field: str) -> None:
    value, words = _WRONG[field]
    with pytest.raises(BadRequest) as refused:
        await garden.create(SHOOTS, shoot("no", **{field: value}))
    assert refused.value.message == f"{PREFIX}json: cannot unmarshal {words}"


@pytest.mark.parametrize("worker", ["w", 5, []])
async def test_a_pool_that_is_no_object_is_refused(garden: Client, worker: object) -> None:
    with pytest.raises(BadRequest, match=r"Provider\.spec\.provider\.workers of type v1beta1\.Worker"):
        await garden.create(SHOOTS, shoot("no", provider={"type": "aws", "workers": [worker]}))


async def test_a_fraction_of_a_node_is_refused_at_once(garden: Client) -> None:
    made = shoot("no")
    made["spec"]["provider"]["workers"][0] |= {"minimum": 1.5, "maximum": 3.5}
    with pytest.raises(BadRequest, match=r"number 1\.5 into Go struct field Worker\.spec\.provider\.workers\.minimum"):
        await garden.create(SHOOTS, made)


async def test_each_measured_shoot_that_cannot_be_decoded_gets_gardeners_answer(garden: Client) -> None:
    wrong = [case for case in cases() if "decoding" in case.expected]
    assert len(wrong) == 9
    for case in wrong:
        with pytest.raises(BadRequest) as refused:
            await garden.create(SHOOTS, {**case.shoot, "metadata": {"name": "no", "namespace": NAMESPACE}})
        assert refused.value.message == f"{PREFIX}{case.expected['decoding']}", case.id


async def test_unknown_fields_are_dropped_and_refused_where_a_client_is_strict(garden: Client) -> None:
    strict = [case for case in cases() if "strictDecoding" in case.expected]
    assert len(strict) == 10
    for case in strict:
        body = {**case.shoot, "metadata": {"name": "strange", "namespace": NAMESPACE}}
        with pytest.raises(BadRequest) as refused:
            await garden.create(SHOOTS, body, validation="Strict", dry_run=True)
        assert refused.value.message == f"{PREFIX}{case.expected['strictDecoding']}", case.id
        with suppress(Forbidden, Invalid):  # admission and rules have their say
            made = await garden.create(SHOOTS, body, validation="Ignore", dry_run=True)
            assert "bogusField" not in str(made["spec"])


async def test_a_kubeconfig_request_of_the_other_sort_is_refused(garden: Client) -> None:
    await garden.create(SHOOTS, shoot("sorts"))
    body = {"apiVersion": "authentication.gardener.cloud/v1alpha1", "kind": "ViewerKubeconfigRequest", "spec": {}}
    with pytest.raises(BadRequest) as refused:
        await garden.create_subresource(SHOOTS, "sorts", "adminkubeconfig", body, NAMESPACE)
    assert refused.value.message == (
        'ViewerKubeconfigRequest in version "v1alpha1" cannot be handled as a AdminKubeconfigRequest: converting '
        "(v1alpha1.ViewerKubeconfigRequest) to (v1alpha1.AdminKubeconfigRequest): unknown conversion"
    )


async def test_a_seed_is_given_by_the_binding_alone_and_takes_the_pending_operation_away(garden: Client) -> None:
    await garden.create(SHOOTS, shoot("bound"))
    pending = {
        "type": "Create",
        "state": "Pending",
        "progress": 0,
        "description": "waits",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }
    await garden.patch(SHOOTS, "bound", {"status": {"lastOperation": pending}}, NAMESPACE, subresource="status")
    found = await garden.patch(SHOOTS, "bound", {"spec": {"seedName": "aws-1"}}, NAMESPACE, subresource="binding")
    assert found["spec"]["seedName"] == "aws-1"
    assert found["metadata"]["generation"] == 2
    assert "lastOperation" not in found["status"]
    # Care writes its own label, shoot.gardener.cloud/status, when it comes to the Shoot.
    assert found["metadata"]["labels"]["name.seed.gardener.cloud/aws-1"] == "true"
    assert found["spec"]["dns"] == {"domain": "bound.demo.shoot.example.org"}
    assert (
        found["spec"]["networking"] | {"pods": "100.96.0.0/11", "services": "100.64.0.0/13"}
        == found["spec"]["networking"]
    )


OIDC = {"clientID": "c", "issuerURL": "https://login.example.org", "signingAlgs": ["RS256"]}


def with_oidc(name: str, version: str, oidc: Any) -> Object:
    made = shoot(name, kubernetes={"version": version, "kubeAPIServer": {"oidcConfig": oidc}})
    return {**made, "apiVersion": SHOOTS.api_version, "kind": "Shoot"}


async def test_oidc_config_is_kept_below_the_version_that_ends_it(garden: Client) -> None:
    made = await garden.create(SHOOTS, with_oidc("old", "1.31.13", OIDC))
    assert made["spec"]["kubernetes"]["kubeAPIServer"]["oidcConfig"] == OIDC
    changed = with_oidc("old", "1.31.13", {**OIDC, "usernameClaim": "sub"})
    applied = await garden.apply(SHOOTS, changed, field_manager="kim", force=True)
    assert applied["spec"]["kubernetes"]["kubeAPIServer"]["oidcConfig"] == {**OIDC, "usernameClaim": "sub"}
    with pytest.raises(Invalid, match=r"oidcConfig: Forbidden: for Kubernetes versions >= 1\.32"):
        await garden.apply(SHOOTS, with_oidc("old", "1.32.9", OIDC), field_manager="kim", force=True)
    raised = await garden.patch(SHOOTS, "old", {"spec": {"kubernetes": {"version": "1.32.9"}}}, NAMESPACE)
    assert "oidcConfig" not in raised["spec"]["kubernetes"]["kubeAPIServer"]


@pytest.mark.parametrize(
    ("oidc", "error", "says"),
    [
        ({"clientID": "c"}, Invalid, r"oidcConfig\.issuerURL: Invalid value: null: issuerURL must be set"),
        ({"issuerURL": "https://a.b"}, Invalid, r"oidcConfig\.clientID: Invalid value: null: clientID must be set"),
        (5, BadRequest, r"number into Go struct field .*\.oidcConfig of type v1beta1\.OIDCConfig"),
        ({**OIDC, "signingAlgs": "RS256"}, BadRequest, r"signingAlgs of type \[\]string"),
    ],
)
async def test_a_wrong_oidc_config_is_refused(garden: Client, oidc: Any, error: type[KubeError], says: str) -> None:
    with pytest.raises(error, match=says):
        await garden.create(SHOOTS, with_oidc("no", "1.31.13", oidc))


async def test_a_workload_identity_has_a_subject_and_gets_tokens(garden: Client) -> None:
    spec = {"audiences": ["a"], "targetSystem": {"type": "aws"}}
    made = await garden.create(WORKLOAD_IDENTITIES, {"metadata": {"name": "me", "namespace": NAMESPACE}, "spec": spec})
    assert made["status"]["sub"] == f"gardener.cloud:workloadidentity:{NAMESPACE}:me:{made['metadata']['uid']}"
    body = {
        "apiVersion": "security.gardener.cloud/v1alpha1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 600},
    }
    answer = await garden.create_subresource(WORKLOAD_IDENTITIES, "me", "token", body, NAMESPACE)
    assert len(answer["status"]["token"].split(".")) == 3
    with pytest.raises(KubeError, match="may not specify a duration shorter than 10 minutes"):
        body["spec"] = {"expirationSeconds": 5}
        await garden.create_subresource(WORKLOAD_IDENTITIES, "me", "token", body, NAMESPACE)


async def test_further_kinds_are_served(garden: Client) -> None:
    reference = {
        "shootRef": {"name": "a"},
        "sshPublicKey": "ssh-ed25519 x",
        "ingress": [{"ipBlock": {"cidr": "0.0.0.0/0"}}],
    }
    bastion = await garden.create(BASTIONS, {"metadata": {"name": "b", "namespace": NAMESPACE}, "spec": reference})
    assert bastion["spec"] == reference
    secret = {"metadata": {"name": "s", "namespace": NAMESPACE}, "data": {"a": "Yg=="}, "bogus": 1}
    assert "bogus" not in await garden.create(INTERNAL_SECRETS, secret)


def test_explain_shows_the_fields_of_a_shoot(server: TestServer) -> None:
    config = str(server.kubeconfig_for("garden"))
    command = ["kubectl", "--kubeconfig", config, "explain", "shoot.spec.kubernetes.kubelet.evictionHard"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "memoryAvailable\t<string>" in shown
