"""2.2.3: the changes to objects before they are applied, in their order."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.modules.manifests.world import config_map, deployment

from hortus.domains.modules.manifests.images import image_name
from hortus.domains.modules.manifests.placing import check_places
from hortus.domains.modules.manifests.rendering import id_of, parse
from hortus.domains.modules.manifests.transforms import (
    DISCLAIMER,
    BadObject,
    Transformation,
    localize_images,
    place,
    transform,
)
from hortus.domains.modules.types import ModuleManager
from hortus.kube.objects import Object

GIVEN = Transformation(name="kyma-module-1", namespace="kcp-system")
ADDED_LABELS = {
    "operator.kyma-project.io/managed-by": "kyma",
    "app.kubernetes.io/component": "kyma-module-1",
    "app.kubernetes.io/part-of": "Kyma",
}
ADDED_ANNOTATIONS = {
    "deprecated-operator.kyma-project.io/owned-by": "kcp-system/kyma-module-1",
    "operator.kyma-project.io/managed-by-reconciler-disclaimer": DISCLAIMER,
}


def added(obj: Object) -> Object:
    """An object with all labels and annotations of the contract."""
    found = copy.deepcopy(obj)
    metadata = found.setdefault("metadata", {})
    metadata["labels"] = {**(metadata.get("labels") or {}), **ADDED_LABELS}
    metadata["annotations"] = {**(metadata.get("annotations") or {}), **ADDED_ANNOTATIONS}
    return found


@pytest.mark.parametrize("name", ["raw-manifest", "template-operator-manifest", "rendered", "valid-yaml"])
def test_1_to_3_every_object_is_marked_and_nothing_else_differs(upstream: Path, name: str) -> None:
    """Compares whole objects of the Go system's sample module."""
    objects = parse((upstream / f"klm/manifests/{name}.yaml").read_bytes())
    assert transform(copy.deepcopy(objects), GIVEN) == [added(obj) for obj in objects]


def test_1_marks_of_the_module_author_give_way() -> None:
    mine = config_map("one")
    mine["metadata"] |= {
        "labels": {"operator.kyma-project.io/managed-by": "me", "app": "x"},
        "annotations": {"deprecated-operator.kyma-project.io/owned-by": "else/where"},
    }
    (found,) = transform([copy.deepcopy(mine)], GIVEN)
    assert found["metadata"]["labels"] == {"app": "x", **ADDED_LABELS}
    assert found["metadata"]["annotations"] == ADDED_ANNOTATIONS


def stateful_set(name: str = "store", image: str = "example.org/store:1.0.0") -> Object:
    return {**deployment(name, image), "kind": "StatefulSet"}


def images_of(obj: Object) -> list[str]:
    spec = obj["spec"]["template"]["spec"]
    return [one["image"] for field in ("initContainers", "containers") for one in spec.get(field, ())]


LOCAL = "registry.local/restricted/operator:1.0.0@sha256:" + "a" * 64


def test_4_images_are_replaced_by_last_segment_and_tag() -> None:
    objects = [
        deployment(),
        stateful_set("store", "docker.io/library/operator:1.0.0"),
        deployment("x", "operator:2.0.0"),
    ]
    objects[0]["spec"]["template"]["spec"]["initContainers"] = [{"name": "init", "image": "operator:1.0.0"}]
    localize_images(objects, [LOCAL])
    assert [images_of(obj) for obj in objects] == [[LOCAL, LOCAL], [LOCAL], ["operator:2.0.0"]]


def test_4_values_of_variables_are_replaced_only_where_they_are_such_references() -> None:
    obj = deployment()
    values = ["example.org/operator:1.0.0", "operator", "not a reference", "1.0.0", "https://x/operator:1.0.0", ""]
    container = obj["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": f"N{n}", "value": value} for n, value in enumerate(values)]
    container["env"].append({"name": "FROM", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}})
    localize_images([obj], [LOCAL])
    assert [one.get("value") for one in container["env"]] == [LOCAL, *values[1:], None]


def test_4_other_kinds_keep_their_images() -> None:
    obj = {**deployment(), "kind": "DaemonSet"}
    localize_images([obj], [LOCAL])
    assert images_of(obj) == ["example.org/operator:1.0.0"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("operator:1.0.0", ("operator", "1.0.0")),
        ("localhost:5000/a/b/operator:1.0.0", ("operator", "1.0.0")),
        ("operator@sha256:" + "0" * 64, ("operator", "sha256:" + "0" * 64)),
        ("operator", None),
        ("Operator:1", None),
        ("a b:1", None),
        ("operator:", None),
        ("a" * 2000 + ":1", None),
        ("https://example.org/operator:1", None),
    ],
)
def test_4_image_names(text: str, name: tuple[str, str] | None) -> None:
    assert image_name(text) == name


MANAGER = ModuleManager(group="apps", version="v1", kind="Deployment", name="operator", namespace="kyma-system")
WITH_SECRET = Transformation(name="m", namespace="n", pull_secret="pull", manager=MANAGER)


def test_5_workloads_pull_with_the_secret_and_the_manager_knows_its_name() -> None:
    objects = [deployment(), stateful_set(), config_map("one")]
    objects[1]["spec"]["template"]["spec"]["imagePullSecrets"] = [{"name": "own"}]
    first, second, third = transform(objects, WITH_SECRET)
    assert first["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "pull"}]
    assert second["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "own"}, {"name": "pull"}]
    env = [{"name": "SKR_IMG_PULL_SECRET", "value": "pull"}]
    assert first["spec"]["template"]["spec"]["containers"][0]["env"] == env
    assert "env" not in second["spec"]["template"]["spec"]["containers"][0]
    assert "spec" not in third


def test_5_without_a_manager_every_workload_knows_the_name() -> None:
    given = Transformation(name="m", namespace="n", pull_secret="pull")
    for obj in transform([deployment(), stateful_set()], given):
        env = [{"name": "SKR_IMG_PULL_SECRET", "value": "pull"}]
        assert obj["spec"]["template"]["spec"]["containers"][0]["env"] == env


def test_5_a_manager_that_sets_the_variable_itself_is_refused() -> None:
    obj = deployment()
    obj["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": "SKR_IMG_PULL_SECRET", "value": "x"}]
    with pytest.raises(BadObject, match="Deployment kyma-system/operator: container manager has the variable"):
        transform([obj], WITH_SECRET)


def secret(name: str, *, asks: str = "true") -> Object:
    annotations = {"operator.kyma-project.io/inject-data-from-kcp": asks}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "kyma-system", "annotations": annotations},
        "stringData": {"key": "placeholder"},
    }


def test_6_secrets_that_ask_get_the_data_of_the_control_plane() -> None:
    given = Transformation(name="m", namespace="n", injected={"one": {"key": "dmFsdWU="}})
    asking, silent = transform([secret("one"), secret("two", asks="True")], given)
    assert asking["data"] == {"key": "dmFsdWU="}
    assert "stringData" not in asking
    assert silent["stringData"] == {"key": "placeholder"}
    (other,) = transform([secret("one")], GIVEN)
    assert other["stringData"] == {"key": "placeholder"}, "a module that gets none"


def test_6_a_secret_without_data_in_the_control_plane_is_refused() -> None:
    with pytest.raises(BadObject, match=r"asks for the data of a Secret one of the control plane .* create it"):
        transform([secret("one")], Transformation(name="m", namespace="n", injected={}))


def test_last_namespaces_follow_the_scope_of_kinds() -> None:
    def obj(kind: str, namespace: str | None) -> Object:
        metadata = {"name": "x", **({"namespace": namespace} if namespace else {})}
        return {"apiVersion": "v1", "kind": kind, "metadata": metadata}

    objects = [obj("ConfigMap", None), obj("ConfigMap", "mine"), obj("Namespace", "mine"), obj("Unknown", "mine")]
    objects.append(obj("Unknown", None))
    place(objects, lambda one: {"ConfigMap": True, "Namespace": False}.get(one.kind))
    assert [id_of(one).namespace for one in objects] == ["default", "mine", "", "mine", ""]


def test_objects_in_forbidden_namespaces_are_refused_but_for_roles() -> None:
    forbidden = frozenset(("kube-system",))
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"namespace": "kube-system"},
    }
    check_places([role, config_map("one")], forbidden)
    there = config_map("one")
    there["metadata"]["namespace"] = "kube-system"
    with pytest.raises(BadObject, match=r"ConfigMap kube-system/one: metadata\.namespace is kube-system"):
        check_places([there], forbidden)


_values: Any = st.recursive(
    st.none() | st.booleans() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
_objects: Any = st.fixed_dictionaries(
    {"apiVersion": st.sampled_from(["v1", "apps/v1"]), "kind": st.sampled_from(["Deployment", "Secret"])},
    optional={
        "spec": _values | st.fixed_dictionaries({"template": _values}),
        "metadata": st.fixed_dictionaries({}, optional={"name": st.text(max_size=3)}),
    },
)


@given(st.lists(_objects, max_size=3))
def test_transforms_of_the_same_objects_twice_change_nothing_more(objects: list[Any]) -> None:
    given = Transformation(name="m", namespace="n", images=(LOCAL,))
    once = transform(copy.deepcopy(objects), given)
    assert transform(copy.deepcopy(once), given) == once
    assert len(once) == len(objects)
