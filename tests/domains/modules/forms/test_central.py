"""Central configuration takes precedence over the users'; it is validated first, and the refused part is shown."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.domains.modules.forms.world import CONFIG_MAPS, CRDS, HOME, OneCluster
from tests.domains.modules.registry.shelves import component, directory
from tests.scenarios.running import hortus

from hortus.domains.modules.central.enforcing import MANAGER
from hortus.domains.modules.types import (
    KYMAS,
    MANIFESTS,
    MODULE_CONFIGURATIONS,
    MODULE_RELEASE_METAS,
    MODULE_TEMPLATES,
    ModuleConfiguration,
)
from hortus.kube import Resource, yaml
from hortus.kube.objects import Object
from hortus.testing.clusters import install
from hortus.testing.waiting import wait_for

SERVED = ("--module-configurations", "--manifest-requeue-success-interval=500ms")
CR = "dial"
DIALS = Resource("operator.kyma-project.io", "v1alpha1", "dials", "Dial")
_ADMISSION = ("admissionregistration.k8s.io", "v1")
POLICIES = Resource(*_ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False)
POLICY_BINDINGS = Resource(
    *_ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)


async def configure(here: OneCluster, name: str, *modules: Object, **spec: Any) -> None:
    made = {
        "apiVersion": MODULE_CONFIGURATIONS.api_version,
        "kind": MODULE_CONFIGURATIONS.kind,
        "metadata": {"name": name, "namespace": HOME},
        "spec": {"modules": list(modules), **spec},
    }
    await here.client.apply(MODULE_CONFIGURATIONS, made, field_manager="operator")


def dials(**spec: Any) -> Object:
    return {"name": "dials", "resource": {"spec": spec}}


async def served(here: OneCluster, *modules: str) -> None:
    await here.become_control_plane()
    await install(here.client, ModuleConfiguration)
    await publish_dials(here)
    await here.kyma(*modules)


async def cr_is(here: OneCluster, says: Callable[[Object], bool]) -> Object:
    return await wait_for(here.client, DIALS, CR, HOME, until=lambda obj: says(obj.get("spec") or {}))


async def condition_is(here: OneCluster, reason: str) -> str:
    """The message of the condition Configuration once it has this reason."""

    def found(obj: Object) -> list[Object]:
        listed = (obj.get("status") or {}).get("conditions") or ()
        return [one for one in listed if one["type"] == "Configuration" and one["reason"] == reason]

    [manifest] = await here.manifests()
    last = await wait_for(
        here.client, MANIFESTS, manifest["metadata"]["name"], HOME, until=lambda obj: bool(found(obj))
    )
    return str(found(last)[0]["message"])


async def user_sets(here: OneCluster, **fields: Any) -> None:
    await here.client.patch(DIALS, CR, {"spec": fields}, HOME, field_manager="user")


async def publish_dials(here: OneCluster) -> None:
    """Publish a module whose kind has several fields, one of them with a limit."""
    properties = {
        "greeting": {"type": "string"},
        "replicas": {"type": "integer", "maximum": 5},
        "note": {"type": "string"},
    }
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    names = {"kind": DIALS.kind, "plural": DIALS.plural, "singular": "dial", "listKind": "DialList"}
    version = {"name": DIALS.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    definition = {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{DIALS.plural}.{DIALS.group}"},
        "spec": {"group": DIALS.group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    name = "kyma-project.io/module/dials"
    made = component("1.0.0", name=name, resources=[directory("raw-manifest", "raw-manifest.yaml")])
    await here.shelf.publish(made, manifest=yaml.dump(definition).encode())
    data = {"apiVersion": DIALS.api_version, "kind": DIALS.kind, "metadata": {"name": CR}, "spec": {"note": "default"}}
    template = {"moduleName": "dials", "version": "1.0.0", "descriptor": {}, "data": data}
    channels = [{"channel": "regular", "version": "1.0.0"}]
    release = {"moduleName": "dials", "ocmComponentName": name, "channels": channels}
    for kind, called, spec in (
        (MODULE_TEMPLATES, "dials-1.0.0", template),
        (MODULE_RELEASE_METAS, "dials", release),
    ):
        typed = {"apiVersion": kind.api_version, "kind": kind.kind}
        await here.client.create(kind, {**typed, "metadata": {"name": called, "namespace": HOME}, "spec": spec})


async def test_a_users_edit_of_a_configured_field_is_reset_and_other_fields_stay_the_users(here: OneCluster) -> None:
    await served(here, "dials")
    await configure(here, "production", dials(greeting="central"))
    async with here.controllers(*SERVED):
        await here.kyma_is("Ready")
        await cr_is(here, lambda spec: spec.get("greeting") == "central")
        await user_sets(here, greeting="user", note="mine")
        found = await cr_is(here, lambda spec: spec.get("greeting") == "central" and spec.get("note") == "mine")
        owners = {one["manager"]: one["fieldsV1"] for one in found["metadata"]["managedFields"]}
        assert owners[MANAGER] == {"f:spec": {"f:greeting": {}}}
        assert await condition_is(here, "Applied") == "all configured fields are enforced"
        await here.client.delete(MODULE_CONFIGURATIONS, "production", HOME)
        await condition_is(here, "Released")
        await user_sets(here, greeting="user")
    found = await here.client.get(DIALS, CR, HOME)
    assert found["spec"] == {"greeting": "user", "note": "mine"}


async def test_a_field_that_the_schema_refuses_is_shown_and_the_rest_is_enforced(here: OneCluster) -> None:
    await served(here, "dials")
    async with here.controllers(*SERVED):
        await here.kyma_is("Ready")
        await configure(here, "production", dials(greeting="central", replicas=3))
        await cr_is(here, lambda spec: spec.get("replicas") == 3)
        await configure(here, "production", dials(greeting="later", replicas=9, colour="red"))
        found = await cr_is(here, lambda spec: spec.get("greeting") == "later")
        assert found["spec"] == {"greeting": "later", "replicas": 3, "note": "default"}, "the last accepted value stays"
        message = await condition_is(here, "Refused")
        assert "ModuleConfiguration kyma-system/production: spec.colour: unknown field" in message
        assert "ModuleConfiguration kyma-system/production: spec.replicas: Invalid value: 9" in message
        kyma = await wait_for(here.client, KYMAS, "default", HOME, until=lambda obj: "message" in _first_module(obj))
        assert kyma["status"]["modules"][0]["message"] == message
        words = ("module", "why", "default", "dials", "-n", HOME)
        why = await asyncio.to_thread(hortus, "--kubeconfig", str(here.kubeconfig), *words)
        assert "spec.replicas: Invalid value: 9" in why.stdout
        assert "operator: correct that field of the ModuleConfiguration" in why.stdout


async def test_admission_that_refuses_keeps_the_last_accepted_fields(here: OneCluster) -> None:
    await served(here, "dials")
    await configure(here, "production", dials(greeting="central"))
    async with here.controllers(*SERVED):
        await here.kyma_is("Ready")
        await cr_is(here, lambda spec: spec.get("greeting") == "central")
        rule = {"apiGroups": [DIALS.group], "apiVersions": ["*"], "operations": ["UPDATE"], "resources": ["dials"]}
        spec = {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "object.spec.greeting != 'rude'", "message": "be polite"}],
        }
        await here.client.create(POLICIES, {"metadata": {"name": "polite"}, "spec": spec})
        bound = {"policyName": "polite", "validationActions": ["Deny"]}
        await here.client.create(POLICY_BINDINGS, {"metadata": {"name": "polite"}, "spec": bound})
        await configure(here, "production", dials(greeting="rude"))
        message = await condition_is(here, "Refused")
        assert "ModuleConfiguration kyma-system/production: spec: " in message and "be polite" in message
        found = await here.client.get(DIALS, CR, HOME)
        assert found["spec"]["greeting"] == "central"


async def test_a_required_module_is_there_whatever_the_user_lists_and_its_channel_is_the_operators(
    here: OneCluster,
) -> None:
    await served(here)
    other = {"name": "greeter", "required": True}
    await configure(here, "all", {"name": "greeter", "required": True, "channel": "fast"})
    await configure(here, "others", other | {"name": "brittle"}, kymaSelector={"matchLabels": {"stage": "test"}})
    async with here.controllers(*SERVED):
        await wait_for(here.client, CONFIG_MAPS, "greeter", HOME)
        kyma = await here.kyma_is("Ready")
        assert [(one["name"], one["channel"]) for one in kyma["status"]["modules"]] == [("greeter", "fast")]
        assert not kyma["spec"].get("modules"), "the user's list is not written"
        await configure(here, "all", {"name": "greeter", "required": True, "channel": "slow"})
        found = await wait_for(here.client, KYMAS, "default", HOME, until=lambda obj: "message" in _first_module(obj))
    [module] = found["status"]["modules"]
    assert module["message"] == (
        "ModuleConfiguration kyma-system/all: spec.modules[name=greeter].channel 'slow' is refused: the module's "
        "channels are fast, regular"
    )
    assert module["state"] == "Ready"
    assert await here.client.list(MODULE_TEMPLATES, HOME)


async def test_a_configuration_that_is_in_effect_costs_no_write(here: OneCluster) -> None:
    await served(here, "dials")
    await configure(here, "production", dials(greeting="central"))
    async with here.controllers(*SERVED):
        await here.kyma_is("Ready")
        await condition_is(here, "Applied")
        before = await cr_is(here, lambda spec: spec.get("greeting") == "central")
    async with here.controllers(*SERVED):
        await here.client.patch(KYMAS, "default", {"metadata": {"labels": {"stage": "test"}}}, HOME)
        await here.kyma_is("Ready")
        await condition_is(here, "Applied")
    after = await here.client.get(DIALS, CR, HOME)
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


async def make_dial(here: OneCluster, **fields: Any) -> None:
    made = {"apiVersion": DIALS.api_version, "kind": DIALS.kind, "metadata": {"name": CR, "namespace": HOME}}
    await here.client.create(DIALS, {**made, "spec": fields}, field_manager="user")


async def test_a_resource_that_its_user_makes_again_is_enforced_again(here: OneCluster) -> None:
    await served(here, "dials")
    await configure(here, "production", dials(greeting="central"))
    async with here.controllers(*SERVED):
        await here.kyma_is("Ready")
        await condition_is(here, "Applied")
        await here.client.delete(DIALS, CR, HOME)
        message = await condition_is(here, "ResourceAbsent")
        assert message == (
            f"Dial {HOME}/{CR} does not exist, and is not made again; its configured fields are enforced once it does"
        )
        await wait_for(here.client, KYMAS, "default", HOME, until=lambda obj: message in str(_first_module(obj)))
        await make_dial(here, greeting="user", note="mine")
        found = await cr_is(here, lambda spec: spec.get("greeting") == "central")
        assert found["spec"] == {"greeting": "central", "note": "mine"}
        await condition_is(here, "Applied")
        await here.client.delete(DIALS, CR, HOME)
        await condition_is(here, "ResourceAbsent")
    await make_dial(here, greeting="user")
    async with here.controllers(*SERVED):
        await cr_is(here, lambda spec: spec.get("greeting") == "central")
        await condition_is(here, "Applied")


async def test_a_configuration_that_ends_while_the_resource_is_absent_is_released(here: OneCluster) -> None:
    await served(here, "dials")
    await configure(here, "production", dials(greeting="central"))
    async with here.controllers(*SERVED):
        await here.kyma_is("Ready")
        await condition_is(here, "Applied")
        await here.client.delete(DIALS, CR, HOME)
        await condition_is(here, "ResourceAbsent")
        await here.client.delete(MODULE_CONFIGURATIONS, "production", HOME)
        await condition_is(here, "Released")


async def test_a_resource_with_the_policy_ignore_is_left_alone(here: OneCluster) -> None:
    await served(here, "dials")
    await configure(here, "production", dials(greeting="central"))

    async def choose(policy: str) -> None:
        listed = {"name": "dials", "managed": True, "customResourcePolicy": policy}
        await here.client.patch(KYMAS, "default", {"spec": {"modules": [listed]}}, HOME)

    async with here.controllers(*SERVED):
        await here.kyma_is("Ready")
        await condition_is(here, "Applied")
        await choose("Ignore")
        assert (
            await condition_is(here, "Released") == "the module's customResourcePolicy is Ignore: no field is enforced"
        )
        await user_sets(here, greeting="user")
    async with here.controllers(*SERVED):
        await here.kyma_is("Ready")
        await configure(here, "production", dials(greeting="later"), {"name": "greeter", "required": True})
        await wait_for(here.client, CONFIG_MAPS, "greeter", HOME)
        found = await here.client.get(DIALS, CR, HOME)
        assert found["spec"]["greeting"] == "user"
        assert MANAGER not in {one["manager"] for one in found["metadata"]["managedFields"]}
        await choose("CreateAndDelete")
        await cr_is(here, lambda spec: spec.get("greeting") == "later")


def _first_module(kyma: Object) -> Object:
    """The first module in a status; empty while there is none."""
    found: list[Object] = (kyma.get("status") or {}).get("modules") or [{}]
    return found[0]
