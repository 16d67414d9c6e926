"""The law of adoption: a Shoot and the Runtime built from it differ in nothing but what is listed."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.clusters.shoot.documents import authentication, patch_for, shoot_for
from tests.domains.clusters.shoot.samples import CONFIG, CONTEXT, LABELS, TENANT, ZONES, lived, pool, runtime
from tests.domains.clusters.shoot.test_laws import LAW, SLOWER, VALID

from hortus.domains.clusters.adoption import Adoption, Holder, identity_of, runtime_from
from hortus.domains.clusters.shoot import Context, LiveShoot
from hortus.domains.clusters.types import Annotation, Runtime
from hortus.kube import Object
from hortus.schema import Structural, crd

HOLDER = Holder("GardenerCluster kcp-system/rt-1", {**LABELS, "kyma-project.io/platform-region": "cf-eu11"})
LEGACY = Context(tenant=TENANT)


def adopted(shoot: Object, context: Context = CONTEXT, *, like: Object | None = None) -> Adoption:
    """The adoption of a Shoot; its structured authentication is that of the Runtime `like`."""
    structured = authentication(like, CONFIG) if like is not None else None
    identity = identity_of(LiveShoot(shoot), [HOLDER], administrators=["admin@example.org"])
    return runtime_from(LiveShoot(shoot), CONFIG, context, identity=identity, structured=structured)


def paths(adoption: Adoption) -> list[str]:
    return [difference.path for difference in adoption.differences]


@st.composite
def aged(draw: st.DrawFn, shoot: Object) -> Object:
    """A Shoot some months later: defaults of the garden, raised versions, extensions and fields of others."""
    live = lived(shoot, finalizers=["gardener"])
    spec = live["spec"]
    if draw(st.booleans()):
        # Gardener raises no Shoot with oidcConfig beyond 1.31.
        later = [] if "oidcConfig" in spec["kubernetes"]["kubeAPIServer"] else ["1.32.2", "1.33.0"]
        spec["kubernetes"]["version"] = draw(st.sampled_from(["1.31.7", *later]))
    for worker in spec["provider"]["workers"]:
        if draw(st.booleans()):
            worker["machine"]["image"]["version"] = draw(st.sampled_from(["1592.9.0", "2000.1.0"]))
        if draw(st.booleans()):
            worker["kubernetes"] = {"version": spec["kubernetes"]["version"]}
    if draw(st.booleans()):
        spec["extensions"] = [{"type": "somebody-elses", "providerConfig": {"a": 1}}, *spec["extensions"]]
    if draw(st.booleans()):
        spec["hibernation"] = {"enabled": False}
        spec["addons"] = {"nginxIngress": {"enabled": False}}
        spec["networking"]["providerConfig"] = {"overlay": {"enabled": True}}
        spec["schedulerName"] = "default-scheduler"
    if draw(st.booleans()):
        spec["kubernetes"]["kubeAPIServer"]["enableAnonymousAuthentication"] = False
        spec["kubernetes"].setdefault("kubelet", {})["maxPods"] = 110
    return live


@given(st.data())
@SLOWER
def test_a_shoot_and_the_runtime_built_from_it_differ_in_nothing(data: st.DataObject) -> None:
    made = data.draw(VALID)
    context = data.draw(st.sampled_from([CONTEXT, LEGACY]))
    live = data.draw(aged(shoot_for(made, CONFIG, context)))
    frozen = orjson.dumps(live)
    adoption = adopted(live, context, like=made)
    assert (adoption.problems, adoption.differences) == ((), ())
    assert orjson.dumps(live) == frozen
    patch = patch_for(adoption.runtime, live, CONFIG, context)
    assert (patch.pools, patch.replacement) == (None, None)


@given(VALID)
@LAW
def test_what_is_built_is_admitted_as_it_is(made: Object) -> None:
    adoption = adopted(lived(shoot_for(made, CONFIG, CONTEXT)), like=made)
    schema = Structural.compile(crd(Runtime)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    built = orjson.loads(orjson.dumps(adoption.runtime))
    assert schema.prune(built) == []
    assert schema.validate(built) == []
    assert built["metadata"]["annotations"] == {
        Annotation.SUSPEND_PATCH: "true",
        Annotation.ADOPTION: "locked",
    }
    assert built["metadata"]["labels"].items() >= made["metadata"]["labels"].items()


@pytest.mark.parametrize("provider", sorted(ZONES))
def test_the_runtime_of_a_fresh_shoot_is_the_one_it_was_made_from(provider: str) -> None:
    made = runtime(provider, region="eu-de-1" if provider == "openstack" else "eu-central-1")
    spec = adopted(lived(shoot_for(made, CONFIG, CONTEXT)), like=made).runtime["spec"]
    [built] = spec["shoot"]["provider"].pop("workers")
    [given_] = made["spec"]["shoot"]["provider"].pop("workers")
    assert spec.pop("security") == made["spec"].pop("security")
    assert spec["shoot"].pop("kubernetes") == {"version": "1.31"}
    assert spec == made["spec"]
    assert built.items() >= {**given_, "machine": built["machine"]}.items()


CHANGES: list[tuple[str, list[str], Any]] = [
    ("spec.maintenance.autoUpdate.kubernetesVersion", ["maintenance", "autoUpdate", "kubernetesVersion"], False),
    ("spec.maintenance.timeWindow.begin", ["maintenance", "timeWindow", "begin"], "030000+0000"),
    ("spec.cloudProfileName", ["cloudProfileName"], "aws-of-our-own"),
    ("spec.provider.workersSettings.sshAccess.enabled", ["provider", "workersSettings", "sshAccess", "enabled"], True),
    (
        "spec.kubernetes.kubeAPIServer.auditConfig.auditPolicy.configMapRef.name",
        ["kubernetes", "kubeAPIServer", "auditConfig", "auditPolicy", "configMapRef", "name"],
        "my-policy",
    ),
]


@pytest.mark.parametrize(("path", "keys", "value"), CHANGES, ids=[path for path, *_ in CHANGES])
def test_what_no_runtime_can_say_is_listed_with_both_values_and_the_reason(
    path: str, keys: list[str], value: Any
) -> None:
    made = runtime()
    live = lived(shoot_for(made, CONFIG, CONTEXT))
    place = live["spec"]
    for key in keys[:-1]:
        place = place[key]
    before, place[keys[-1]] = place[keys[-1]], value
    [difference] = adopted(live, like=made).differences
    assert (difference.path, difference.live, difference.patched) == (path, value, before)
    assert difference.why != "a Runtime has no field for it"


def test_fields_of_a_pool_that_no_runtime_knows_are_listed() -> None:
    made = runtime()
    live = lived(shoot_for(made, CONFIG, CONTEXT))
    live["spec"]["provider"]["workers"][0] |= {"colour": "green"}
    found = adopted(live, like=made)
    assert paths(found) == ["spec.provider.workers[cpu-worker-0].colour"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"secretBindingName": None}, "spec.credentialsBindingName: Required value"),
        ({"provider": {"type": "metal", "workers": [pool()]}}, 'spec.provider.type: Unsupported value: "metal"'),
        ({"networking": {"nodes": "10.250.0.0/16"}}, "spec.networking.pods: Required value"),
        ({"provider": {"type": "aws"}}, "spec.provider.workers: Required value"),
    ],
)
def test_what_a_runtime_cannot_be_without_is_refused(change: Object, problem: str) -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    live["spec"] |= change
    assert any(str(found).startswith(problem) for found in adopted(live).problems)


def test_missing_labels_are_all_listed_and_may_be_given() -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    identity = identity_of(LiveShoot(live))
    assert [problem.path for problem in identity.problems] == [
        f"metadata.labels[{key}]"
        for key in (
            "kyma-project.io/instance-id",
            "operator.kyma-project.io/kyma-name",
            "kyma-project.io/broker-plan-id",
            "kyma-project.io/broker-plan-name",
            "kyma-project.io/platform-region",
        )
    ]
    assert identity_of(LiveShoot(live), given=HOLDER.labels).problems == ()


def test_two_sources_that_disagree_are_nobodys_to_decide() -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    identity = identity_of(
        LiveShoot(live), [HOLDER, Holder("Kyma kcp-system/k", {"kyma-project.io/runtime-id": "rt-2"})]
    )
    [problem] = identity.problems
    assert str(problem) == (
        'metadata.labels[kyma-project.io/runtime-id]: Invalid value: "rt-2": Kyma kcp-system/k says so, but the shoot '
        "says rt-1"
    )


def test_a_shoot_of_nobody_is_taken_over_by_its_uid_and_only_marked() -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    live["metadata"]["annotations"], live["metadata"]["labels"] = {}, {}
    found = adopted(live, like=runtime())
    assert (found.problems, found.differences) == ((), ())
    assert found.runtime["metadata"]["annotations"][Annotation.ADOPT] == "u-1"


def test_a_moved_account_is_a_difference() -> None:
    live = lived(shoot_for(runtime(), CONFIG, CONTEXT))
    live["metadata"]["labels"]["account"] = "ga-of-old"
    [difference] = adopted(live, like=runtime()).differences
    assert (difference.path, difference.live, difference.patched) == ("metadata.labels.account", "ga-of-old", "ga-1")
