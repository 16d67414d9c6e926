"""The status of a Kyma (docs/modules/contract.md, 2.1.6, 2.1.9 and 2.1.10)."""

from __future__ import annotations

import msgspec
import pytest
from tests.domains.modules.kyma.documents import as_manifest, kyma, template
from tests.domains.modules.kyma.test_manifests import COMPONENT, made, resolved

from hortus.domains.modules.kyma.changes import WAITS
from hortus.domains.modules.kyma.modules import manifest_matters
from hortus.domains.modules.kyma.resolution import ModuleRefusal, RefusedModule
from hortus.domains.modules.kyma.status import (
    MESSAGES,
    KymaCondition,
    are_modules_ready,
    kyma_state,
    mirrored,
    module_status,
    refused_status,
    required_conditions,
    unmanaged_status,
)
from hortus.domains.modules.names import Annotation, State
from hortus.domains.modules.types import ModuleStatus
from hortus.engine.cache import Change
from hortus.kube.objects import Object, ObjectKey

DATA = {"apiVersion": "operator.kyma-project.io/v1alpha1", "kind": "Istio", "metadata": {"name": "default"}}


def seen(state: str, operation: str = "", **metadata: object) -> Object:
    """A Manifest as the watch shows it."""
    last = {"operation": operation, "lastUpdateTime": "2026-01-01T00:00:00Z"}
    return {
        "apiVersion": "operator.kyma-project.io/v1beta2",
        "kind": "Manifest",
        "metadata": {"name": "m", "namespace": "kcp-system", "generation": 1, **metadata},
        "status": {"state": state, "lastOperation": last},
    }


def _matters(old: Object, new: Object) -> bool:
    return manifest_matters(Change(ObjectKey("kcp-system", "m"), old, new))


def test_a_kyma_follows_what_it_shows_of_a_manifest_and_not_each_step_on_the_way() -> None:
    """2.1.6: state, generation, labels, two annotations, and the operation where somebody has to act."""
    before = seen("Processing", "applying")
    assert not _matters(before, seen("Processing", "waiting for resources to become ready"))
    assert not _matters(before, seen("Processing", annotations={"sync-oci-ref": "sha256:1"}, finalizers=["a/b"]))
    assert _matters(before, seen("Ready"))
    assert _matters(before, seen("Processing", generation=2))
    assert _matters(before, seen("Processing", labels={"operator.kyma-project.io/channel": "fast"}))
    assert _matters(before, seen("Processing", annotations={WAITS: "1.1.0"}))
    assert _matters(before, seen("Processing", annotations={Annotation.IS_UNMANAGED: "true"}))
    assert _matters(seen("Error", "no such image"), seen("Error", "the quota is exceeded"))


def status(state: str) -> ModuleStatus:
    return ModuleStatus(name=state or "none", state=state)


def test_an_installed_module_shows_its_manifest_its_template_and_its_resource() -> None:
    module = resolved(template("istio", "1.0.0", data=DATA))
    manifest = as_manifest(made(module), state="Warning")
    assert msgspec.to_builtins(module_status(module, manifest)) == {
        "name": "istio",
        "state": "Warning",
        "fqdn": COMPONENT,
        "ocmComponentName": COMPONENT,
        "channel": "regular",
        "version": "1.0.0",
        "manifest": {
            "apiVersion": "operator.kyma-project.io/v1beta2",
            "kind": "Manifest",
            "metadata": {"name": manifest.metadata.name, "namespace": "kcp-system"},
        },
        "template": {
            "apiVersion": "operator.kyma-project.io/v1beta2",
            "kind": "ModuleTemplate",
            "metadata": {"name": "istio-1.0.0", "namespace": "kcp-system", "generation": 1},
        },
        "resource": {
            "apiVersion": "operator.kyma-project.io/v1alpha1",
            "kind": "Istio",
            "metadata": {"name": "default", "namespace": "kyma-system"},
        },
    }


def test_a_module_that_needs_somebody_shows_the_last_step_of_its_manifest() -> None:
    module = resolved()
    operation = {"operation": "waits", "lastUpdateTime": "2026-01-01T00:00:00Z"}
    for state, message in (("Error", "waits"), ("Warning", "waits"), ("Ready", ""), ("Processing", "")):
        assert module_status(module, as_manifest(made(module), state=state, lastOperation=operation)).message == message


def test_a_resource_without_a_namespace_is_shown_without_one() -> None:
    source = template("istio", "1.0.0", data=DATA)
    source.metadata.annotations[Annotation.IS_CLUSTER_SCOPED] = "true"
    module = resolved(source)
    found = module_status(module, as_manifest(made(module))).resource
    assert found is not None
    assert found.metadata.namespace == ""


def test_a_resource_of_the_user_is_not_shown() -> None:
    module = resolved(template("istio", "1.0.0", data=DATA), customResourcePolicy="Ignore")
    assert module_status(module, as_manifest(made(module))).resource is None


def test_an_unmanaged_module_shows_no_objects() -> None:
    found = unmanaged_status(resolved(managed=False), "1.0.0")
    assert (found.state, found.manifest, found.template, found.resource) == ("Unmanaged", None, None, None)


@pytest.mark.parametrize(
    ("refusal", "state", "version", "maintenance"),
    [
        (ModuleRefusal.WAITS_FOR_WINDOW, "Ready", "1.0.0", True),
        (ModuleRefusal.WINDOW_UNKNOWN, "Error", "1.0.0", False),
        (ModuleRefusal.DOWNGRADE, "Warning", "1.0.0", False),
        (ModuleRefusal.NO_RELEASE, "Warning", "1.0.0", False),
        (ModuleRefusal.WAITS_FOR_MODULES, "Warning", "1.0.0", False),
        (ModuleRefusal.MANDATORY, "Warning", "", False),
        (ModuleRefusal.NOT_ALLOWED, "Error", "", False),
        (ModuleRefusal.NO_VERSION, "Error", "", False),
        (ModuleRefusal.NO_TEMPLATE, "Error", "", False),
        (ModuleRefusal.NO_COMPONENT, "Error", "", False),
    ],
)
def test_a_refused_module_keeps_or_loses_its_status(
    refusal: ModuleRefusal, state: str, version: str, maintenance: bool
) -> None:
    module = resolved()
    before = module_status(module, as_manifest(made(module)))
    refused = RefusedModule(module.module, refusal, "because", "regular", COMPONENT)
    found = refused_status(refused, before)
    assert (found.state, found.version, found.maintenance, found.message) == (state, version, maintenance, "because")
    fresh = refused_status(refused, None)
    assert fresh.state == ("Warning" if refusal is ModuleRefusal.WAITS_FOR_MODULES else "Error")
    assert (fresh.message, fresh.channel, fresh.ocm_component_name) == ("because", "regular", COMPONENT)


@pytest.mark.parametrize(
    ("states", "hold", "expected"),
    [
        (["Ready", "Error", "Warning"], True, State.ERROR),
        (["Ready", "Processing", "Warning"], True, State.WARNING),
        (["Ready", "Processing"], True, State.PROCESSING),
        (["Ready", "Unmanaged"], True, State.READY),
        (["Ready"], False, State.PROCESSING),
        (["Deleting"], False, State.PROCESSING),
        ([], True, State.READY),
    ],
)
def test_the_worst_module_decides_then_the_conditions(states: list[str], hold: bool, expected: State) -> None:
    assert kyma_state(map(status, states), conditions_hold=hold) is expected


def test_modules_are_ready_when_each_is_ready_or_unmanaged() -> None:
    assert are_modules_ready([status("Ready"), status("Unmanaged")])
    assert not are_modules_ready([status("Ready"), status("Deleting")])


def test_conditions_depend_on_the_operators_choices() -> None:
    assert required_conditions(watcher=True, pull_secret=False) == (
        KymaCondition.CRDS_SYNC,
        KymaCondition.MODULES,
        KymaCondition.MODULE_CATALOG,
        KymaCondition.SKR_WEBHOOK,
    )
    assert required_conditions(watcher=False, pull_secret=True)[-1] is KymaCondition.PULL_SECRET_SYNC
    assert {frozenset(messages) for messages in MESSAGES.values()} == {frozenset(("True", "False", "Unknown"))}


def test_the_status_in_the_cluster_names_no_manifest_and_its_own_templates() -> None:
    module = resolved()
    found = kyma("istio")
    one = module_status(module, as_manifest(made(module)))
    found = msgspec.structs.replace(found, status=msgspec.structs.replace(found.status, modules=(one,)))
    (shown,) = mirrored(found, "kyma-system")["modules"]  # type: ignore[misc, attr-defined]
    assert "manifest" not in shown
    assert shown["template"]["metadata"]["namespace"] == "kyma-system"
