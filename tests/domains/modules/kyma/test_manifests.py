"""Manifests of modules (docs/modules/contract.md, 2.1.4 and 2.1.5)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.domains.modules.kyma.documents import as_manifest, kyma, template

from hortus.domains.modules.kyma.manifests import UnusableComponent, is_update_needed, manifest_for, manifest_name
from hortus.domains.modules.kyma.resolution import ResolvedModule
from hortus.domains.modules.kyma.status import module_status
from hortus.domains.modules.names import Annotation, Label
from hortus.domains.modules.registry import Component, ComponentDescriptor
from hortus.domains.modules.types import InstallSource, ModuleManager, ModuleTemplate

COMPONENT = "kyma-project.io/module/istio"
LAYER = InstallSource(repo="registry.example/modules", name=COMPONENT, ref="sha256:" + "1" * 64, type="oci-dir")


def component(version: str = "1.0.0", **fields: Any) -> Component:
    values: dict[str, Any] = {
        "digest": "sha256:" + "0" * 64,
        "descriptor": ComponentDescriptor(name=COMPONENT, version=version),
        "install": LAYER,
        "default_cr": None,
        "config": None,
        "localized_images": ("local.example/istio:1.0.0",),
    }
    return Component(**(values | fields))


def resolved(found: ModuleTemplate | None = None, **module: Any) -> ResolvedModule:
    (one,) = kyma({"name": "istio", **module}).spec.modules
    return ResolvedModule(one, "regular", "1.0.0", found or template("istio", "1.0.0"), COMPONENT)


def made(module: ResolvedModule, source: Component | None = None, *, mandatory: bool = False) -> dict[str, Any]:
    return manifest_for(kyma(), module, source or component(), sync_namespace="kyma-system", mandatory=mandatory)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("kyma-project.io/module/some-module", "default-id-some-module-1831772875"),
        ("example.org/some-module", "default-id-some-module-1457091198"),
        ("simple-component", "default-id-simple-component-3590401810"),
    ],
)
def test_names_have_the_hash_of_component_and_module(name: str, expected: str) -> None:
    assert manifest_name("default-id", name, "module1") == expected


def test_a_long_name_is_cut_to_62_characters_without_a_dash_at_its_end() -> None:
    short = manifest_name("k" * 20, "a.io/b", "c")
    assert manifest_name("k" * (20 + 62 - len(short)), "a.io/b", "c").endswith(short[20:])
    assert len(manifest_name("k" * 80, "a.io/b", "c")) == 62
    assert manifest_name("k" * 61, "a.io/b", "c") == "k" * 61


def test_a_manifest_holds_the_layer_the_default_resource_and_the_images() -> None:
    data = {"apiVersion": "operator.kyma-project.io/v1alpha1", "kind": "Istio", "metadata": {"name": "default"}}
    manager = {"group": "apps", "version": "v1", "kind": "Deployment", "name": "istio-manager", "namespace": "a"}
    found = made(resolved(template("istio", "1.0.0", data=data, manager=manager), customResourcePolicy="Ignore"))
    assert found == {
        "apiVersion": "operator.kyma-project.io/v1beta2",
        "kind": "Manifest",
        "metadata": {
            "name": manifest_name("default-id", COMPONENT, "istio"),
            "namespace": "kcp-system",
            "labels": {
                "operator.kyma-project.io/kyma-name": "default-id",
                "operator.kyma-project.io/module-name": "istio",
                "operator.kyma-project.io/channel": "regular",
                "operator.kyma-project.io/managed-by": "lifecycle-manager",
            },
            "annotations": {
                "operator.kyma-project.io/fqdn": COMPONENT,
                "operator.kyma-project.io/ocm-component-name": COMPONENT,
            },
            "ownerReferences": [
                {
                    "apiVersion": "operator.kyma-project.io/v1beta2",
                    "kind": "Kyma",
                    "name": "default-id",
                    "uid": "uid-1",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "spec": {
            "customResourcePolicy": "Ignore",
            "remote": False,
            "version": "1.0.0",
            "install": {
                "name": "raw-manifest",
                "source": {
                    "repo": "registry.example/modules",
                    "name": COMPONENT,
                    "ref": "sha256:" + "1" * 64,
                    "type": "oci-dir",
                },
            },
            "resource": {**data, "metadata": {"name": "default", "namespace": "kyma-system"}},
            "manager": manager,
            "localizedImages": ["local.example/istio:1.0.0"],
        },
    }


def test_the_default_resource_gets_a_name_and_the_template_keeps_none() -> None:
    source = template("istio", "1.0.0", data={"apiVersion": "a.io/v1", "kind": "A"})
    found = made(resolved(source))
    assert found["spec"]["resource"]["metadata"] == {"name": found["metadata"]["name"], "namespace": "kyma-system"}
    assert source.spec.data == {"apiVersion": "a.io/v1", "kind": "A"}


def test_the_controllers_name_is_copied_and_empty_where_other_labels_are() -> None:
    assert Label.CONTROLLER_NAME not in made(resolved())["metadata"]["labels"]
    for labels, expected in (({Label.CONTROLLER_NAME: "x"}, "x"), ({"a": "b"}, "")):
        found = made(resolved(template("istio", "1.0.0", labels=labels)))
        assert found["metadata"]["labels"][Label.CONTROLLER_NAME] == expected


def test_a_mandatory_module_has_no_channel() -> None:
    labels = made(resolved(), mandatory=True)["metadata"]["labels"]
    assert Label.CHANNEL not in labels
    assert labels[Label.MANDATORY_MODULE] == "true"


def test_a_component_without_objects_is_refused() -> None:
    with pytest.raises(UnusableComponent, match=r"istio:1\.0\.0 has no resource raw-manifest"):
        made(resolved(), component(install=None))


def test_an_optional_layer_of_a_type_that_the_kind_refuses_is_left_out() -> None:
    assert "config" not in made(resolved(), component(config=LAYER))["spec"]
    other = InstallSource(repo="r", name="n", ref="f", type="oci-ref")
    assert made(resolved(), component(config=other))["spec"]["config"]["type"] == "oci-ref"


def needed(change: dict[str, Any], *, generation: int = 1, unmanaged: bool = False) -> bool:
    """Reports the decision for a Manifest in the cluster that differs from the wanted one by `change`."""
    source = template("istio", "1.0.0")
    wanted = made(resolved(source, managed=not unmanaged))
    current = made(resolved(source))
    for path, value in change.items():
        *parents, last = path.split("/")
        place = current
        for name in parents:
            place = place[name]
        place[last] = value
    status = module_status(resolved(template("istio", "1.0.0")), as_manifest(current))
    seen = seen_at(status, generation)
    return is_update_needed(as_manifest(current), as_manifest(wanted), source, seen)


def seen_at(status: Any, generation: int) -> Any:
    metadata = msgspec.structs.replace(status.template.metadata, generation=generation)
    return msgspec.structs.replace(status, template=msgspec.structs.replace(status.template, metadata=metadata))


def test_a_manifest_is_written_when_version_channel_layer_or_template_differ() -> None:
    assert not needed({})
    assert needed({"spec/version": "0.9.0"})
    assert needed({"metadata/labels": {Label.CHANNEL: "fast"}})
    assert needed({"metadata/labels": {}})
    assert needed({"spec/install": {"name": "raw-manifest", "source": {"ref": "sha256:" + "2" * 64}}})
    assert needed({}, generation=2)
    assert not needed({"spec/localizedImages": ["edited"]}), "an edit alone stays"
    assert not needed({"spec/customResourcePolicy": "Ignore"})


def test_an_unmanaged_module_is_written_once_and_never_created() -> None:
    wanted = made(resolved(managed=False))
    assert wanted["metadata"]["annotations"][Annotation.IS_UNMANAGED] == "true"
    assert not is_update_needed(None, as_manifest(wanted), template("istio", "1.0.0"), None)
    assert is_update_needed(None, as_manifest(made(resolved())), template("istio", "1.0.0"), None)
    assert needed({}, unmanaged=True)
    assert not is_update_needed(as_manifest(wanted), as_manifest(made(resolved())), template("istio", "1.0.0"), None)


def test_the_manager_may_have_no_namespace() -> None:
    manager = {"group": "apps", "version": "v1", "kind": "Deployment", "name": "istio-manager"}
    assert made(resolved(template("istio", "1.0.0", manager=manager)))["spec"]["manager"] == manager
    assert ModuleManager("apps", "v1", "Deployment", "m").namespace == ""
